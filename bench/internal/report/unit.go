package report

import (
	"math"
	"strconv"
	"strings"
)

// A Unit is what a column's figures count.
type Unit string

// The units, each with the base unit of its figures.
const (
	PerSecond Unit = "per second"
	Seconds   Unit = "seconds"
	Bytes     Unit = "bytes"
	Count     Unit = "count"
	Times     Unit = "times" // a ratio
)

// format writes a figure with three significant digits.
func (u Unit) format(x float64) string {
	switch u {
	case PerSecond:
		return number(x) + "/s"
	case Seconds:
		return duration(x)
	case Bytes:
		return number(x) + " B"
	case Times:
		return ratio(x) + " ×"
	}
	return number(x)
}

// number writes 1234567 as 1,230,000 and 0.01234 as 0.0123.
func number(x float64) string {
	x = significant(x)
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(math.Abs(x), 'f', -1, 64), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if x < 0 {
		return "-" + whole
	}
	return whole
}

// ratio is number, with two digits after the point between 1 and 10.
func ratio(x float64) string {
	if 1 <= x && x < 10 {
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return number(x)
}

func significant(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	if err != nil {
		return x
	}
	return rounded
}

// duration writes seconds in the unit that suits them.
func duration(s float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1, " s"}, {1e-3, " ms"}, {1e-6, " µs"}} {
		if s >= u.size*0.9995 {
			return number(s/u.size) + u.name
		}
	}
	return number(s*1e9) + " ns"
}
