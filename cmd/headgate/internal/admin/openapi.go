package admin

import (
	_ "embed"
	"net/http"
)

// openAPI is the API's description, in OpenAPI 3.1.
//
//go:embed openapi.json
var openAPI []byte

// document answers with the API's description.
func (a *API) document(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(openAPI) // the caller may be gone; nobody else is to be told
	}
}
