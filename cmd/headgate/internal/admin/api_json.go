package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A fault is what is wrong with a request, and in which of its fields: "charges[1].limit"; "" = the request as a whole.
type fault struct{ field, text string }

// Error returns the field and what is wrong with it.
func (f *fault) Error() string {
	if f.field == "" {
		return f.text
	}
	return f.field + " " + f.text
}

// A reader walks through a JSON document. It is strict: a field that is not known, one that comes twice, and text that is not what was
// sent are faults. The errors of its methods are faults.
type reader struct {
	tokens *json.Decoder
	known  map[string]bool // the fields asked for on the way, such as "charges[].key"; nil = not noted
}

// newReader returns a reader of data, which is one JSON document.
func newReader(data []byte) (*reader, error) {
	if !utf8.Valid(data) {
		return nil, &fault{text: "The body is not text in UTF-8."}
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, &fault{text: fmt.Sprintf("The body is not JSON: %v, at byte %d.", syntax, syntax.Offset)}
		}
		return nil, &fault{text: "The body is not JSON."}
	}
	tokens := json.NewDecoder(bytes.NewReader(data))
	tokens.UseNumber()
	return &reader{tokens: tokens}, nil
}

// A member is a field that an object may have.
type member struct {
	name string
	read func(field string) error
}

// object reads an object at field: each member by its read.
func (r *reader) object(field string, members ...member) error {
	for _, m := range members {
		if r.known != nil {
			r.known[shape(join(field, m.name))] = true
		}
	}
	if err := r.open(field, '{', "an object"); err != nil {
		return err
	}
	seen := make(map[string]bool, len(members))
	for r.tokens.More() {
		name, err := r.text(field)
		if err != nil {
			return err
		}
		m := find(members, name)
		switch {
		case m == nil:
			return &fault{join(field, excerpt(name)), "is not known, want " + names(members) + "."}
		case seen[name]:
			return &fault{join(field, name), "comes twice."}
		}
		seen[name] = true
		if err := m.read(join(field, name)); err != nil {
			return err
		}
	}
	_, err := r.next(field)
	return err
}

// array reads an array at field: each item by read.
func (r *reader) array(field string, read func(field string) error) error {
	if err := r.open(field, '[', "an array"); err != nil {
		return err
	}
	for i := 0; r.tokens.More(); i++ {
		if err := read(field + "[" + strconv.Itoa(i) + "]"); err != nil {
			return err
		}
	}
	_, err := r.next(field)
	return err
}

func (r *reader) open(field string, delimiter json.Delim, want string) error {
	t, err := r.next(field)
	if err != nil {
		return err
	}
	if t != delimiter {
		return unlike(field, t, want)
	}
	return nil
}

// text reads a string. Half of a surrogate pair, which JSON can write and no text holds, comes out of the decoder as U+FFFD; two keys
// that differ in such would become one, so it is refused.
func (r *reader) text(field string) (string, error) {
	t, err := r.next(field)
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	switch {
	case !ok:
		return "", unlike(field, t, "a string")
	case strings.ContainsRune(s, utf8.RuneError):
		return "", &fault{field, "holds U+FFFD or half of a surrogate pair, which stands for text that was lost."}
	}
	return s, nil
}

// integer reads a whole number that fits 64 bits, written as one.
func (r *reader) integer(field string) (int64, error) {
	t, err := r.next(field)
	if err != nil {
		return 0, err
	}
	number, ok := t.(json.Number)
	if !ok {
		return 0, unlike(field, t, "a whole number")
	}
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil {
		return 0, unlike(field, t, "a whole number that fits 64 bits")
	}
	return n, nil
}

func (r *reader) next(field string) (json.Token, error) {
	t, err := r.tokens.Token()
	if err != nil {
		return nil, &fault{field, "cannot be read."}
	}
	return t, nil
}

// unlike says what was found instead. It repeats no text, which may be a key.
func unlike(field string, t json.Token, want string) error {
	is := "null"
	switch v := t.(type) {
	case json.Delim:
		is = map[json.Delim]string{'{': "an object", '[': "an array"}[v]
	case string:
		is = "a string"
	case json.Number:
		is = "the number " + excerpt(v.String())
	case bool:
		is = strconv.FormatBool(v)
	}
	if field == "" {
		return &fault{text: "The body is " + is + ", want " + want + "."}
	}
	return &fault{field, "is " + is + ", want " + want + "."}
}

func find(members []member, name string) *member {
	for i := range members {
		if members[i].name == name {
			return &members[i]
		}
	}
	return nil
}

func names(members []member) string {
	list := make([]string, len(members))
	for i, m := range members {
		list[i] = m.name
	}
	return strings.Join(list, ", ")
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

// shape is a field without the numbers of its items.
func shape(field string) string {
	var b strings.Builder
	for part := range strings.SplitAfterSeq(field, "[") {
		if i := strings.IndexByte(part, ']'); i >= 0 {
			part = part[i:]
		}
		b.WriteString(part)
	}
	return b.String()
}

// excerpt is as much of s as belongs into an error.
func excerpt(s string) string {
	const most = 40
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
