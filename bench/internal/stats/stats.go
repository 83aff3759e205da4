// Package stats has the few statistics that the measurements need.
package stats

import "slices"

// Median returns the middle figure, or the mean of the two in the middle; 0 of none. It leaves figures as they are.
func Median(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(figures))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Ratio returns the median of a[i]/b[i], where a[i] and b[i] were measured in the same round, one shortly after the other: what else the
// machine did in that round weighs on both. Rounds in which b is 0, or that one of them lacks, do not count; without any it returns 0.
func Ratio(a, b []float64) float64 {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			ratios = append(ratios, a[i]/b[i])
		}
	}
	return Median(ratios)
}
