package admin_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/headgate/headgate/cmd/headgate/internal/admin"
)

var openAPI = sync.OnceValues(func() (*openapi3.T, error) { return openapi3.NewLoader().LoadFromData(admin.OpenAPI()) })

func load(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := openAPI()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestDocumentIsValid(t *testing.T) {
	if err := load(t).Validate(context.Background()); err != nil {
		t.Error(err)
	}
	if !load(t).IsOpenAPI31OrLater() {
		t.Error("not OpenAPI 3.1")
	}
}

func TestDocumentIsServed(t *testing.T) {
	s := start(t, strings.Replace(file, "plans:", "api: {token_sha256: TOKEN}\nplans:", 1), nil)
	a := s.send(t, "GET", "/v1/openapi.json", "")
	if a.StatusCode != 200 || a.body != string(admin.OpenAPI()) {
		t.Errorf("%d, and %d bytes, want 200 and the document without a token", a.StatusCode, len(a.body))
	}
	if a := s.send(t, "HEAD", "/v1/openapi.json", ""); a.StatusCode != 200 || a.body != "" {
		t.Errorf("HEAD: %d %q", a.StatusCode, a.body)
	}
}

// Every path, method and field of the code is in the document, and no other.
func TestDocumentIsComplete(t *testing.T) {
	doc := load(t)
	code := admin.Endpoints()
	for path, methods := range code {
		item := doc.Paths.Value(path)
		if item == nil {
			t.Errorf("%s is not in the document", path)
			continue
		}
		same(t, path, slices.Collect(maps.Keys(item.Operations())), methods)
	}
	for path := range doc.Paths.Map() {
		if code[path] == nil {
			t.Errorf("%s is in the document only", path)
		}
	}
	for name, form := range admin.Forms {
		fields := make(map[string]bool)
		collect(schema(t, name), "", fields)
		same(t, name, slices.Collect(maps.Keys(fields)), slices.Collect(maps.Keys(admin.Fields(form))))
	}
	for name, fields := range admin.AnswerFields() {
		same(t, name, slices.Collect(maps.Keys(schema(t, name).Properties)), fields)
	}
}

func schema(t *testing.T, name string) *openapi3.Schema {
	t.Helper()
	ref := load(t).Components.Schemas[name]
	if ref == nil || ref.Value == nil {
		t.Fatalf("no schema %s", name)
	}
	return ref.Value
}

// collect lists the fields of a schema, those within its arrays too.
func collect(s *openapi3.Schema, within string, to map[string]bool) {
	for name, p := range s.Properties {
		to[within+name] = true
		if p.Value.Items != nil {
			collect(p.Value.Items.Value, within+name+"[].", to)
		}
	}
}

func same(t *testing.T, what string, document, code []string) {
	t.Helper()
	slices.Sort(document)
	slices.Sort(code)
	if !slices.Equal(document, code) {
		t.Errorf("%s: the document has %q, the code %q", what, document, code)
	}
}

// checkPair holds an answer to the document, and the request too where it was accepted: what is accepted is what is described.
func checkPair(t testing.TB, a *answer, body string) {
	t.Helper()
	doc := load(t)
	sent := a.Request
	item := doc.Paths.Value(sent.URL.Path)
	if item == nil || item.GetOperation(sent.Method) == nil {
		return // 404 and 405, which belong to no operation
	}
	request := sent.Clone(context.Background())
	request.Body = io.NopCloser(strings.NewReader(body))
	in := &openapi3filter.RequestValidationInput{
		Request: request, Route: &routers.Route{Spec: doc, Path: sent.URL.Path, PathItem: item, Method: sent.Method, Operation: item.GetOperation(sent.Method)},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, SkipSettingDefaults: true},
	}
	if a.StatusCode == http.StatusOK {
		if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil {
			t.Errorf("%s %s %s was accepted, and is not as the document says: %v", sent.Method, sent.URL.Path, body, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: a.StatusCode, Header: a.Header, Options: in.Options}
	if err := openapi3filter.ValidateResponse(context.Background(), out.SetBodyBytes([]byte(a.body))); err != nil {
		t.Errorf("%s %s: the answer %d %s is not as the document says: %v", sent.Method, sent.URL.Path, a.StatusCode, a.body, err)
	}
}
