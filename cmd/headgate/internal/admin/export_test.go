package admin

import (
	"reflect"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
)

// Endpoints returns the methods of each path of the API.
func Endpoints() map[string][]string {
	list := make(map[string][]string)
	for _, e := range endpoints() {
		list[e.path] = e.methods
	}
	return list
}

// Forms are the requests of the API, by the name of their schema.
var Forms = map[string]form{"TakeRequest": takeForm, "PeekRequest": peekForm, "RefundRequest": refundForm, "ResetRequest": resetForm}

// Fields returns the fields that a request of the form may have, such as "charges[].key".
func Fields(f form) map[string]bool {
	b := body{known: make(map[string]bool)}
	_, _ = b.read([]byte(`{"charges":[{}]}`), f, nil) // a charge without a key is a fault, which is found after its fields
	return b.known
}

// AnswerFields returns the fields of the API's answers, by the name of their schema.
func AnswerFields() map[string][]string {
	return map[string][]string{
		"Decision": tags(reflect.TypeFor[decision]()), "State": tags(reflect.TypeFor[state]()), "Done": tags(reflect.TypeFor[done]()),
		// Of httplimit, in the answers to forward-auth.
		"Problem": append(tags(reflect.TypeFor[problem]()), "violated-policies"),
	}
}

func tags(t reflect.Type) []string {
	var list []string
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			list = append(list, name)
		}
	}
	return list
}

// Read reads a request of the form, and returns what is asked for.
func Read(data []byte, f form, p *policy.Policy) ([]headgate.Charge, error) {
	b := body{}
	q, err := b.read(data, f, p)
	return q.charges, err
}

// OpenAPI is the document.
func OpenAPI() []byte { return openAPI }
