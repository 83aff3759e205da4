package config

import (
	"github.com/headgate/headgate"
	"go.yaml.in/yaml/v4"
)

// API says who may ask the decision API, and what they get when the store cannot answer.
type API struct {
	Tokens       [][32]byte           // SHA-256 digests of the tokens; nil = none is asked for on a loopback listener, and elsewhere the API is off
	OnStoreError headgate.FailureMode // of requests that do not say it themselves and name no route
}

func (d *decoder) api(n *yaml.Node, c *Config) {
	const path = "api"
	c.lines[path] = n.Line
	d.object(n, path,
		field{name: "token_sha256", read: func(v *yaml.Node) { d.tokens(v, path+".token_sha256", &c.API) }},
		field{name: "on_store_error", read: func(v *yaml.Node) { d.failureMode(v, path+".on_store_error", &c.API.OnStoreError) }})
}

// tokens reads one digest or a list of them: while a token is being replaced, there are two.
func (d *decoder) tokens(n *yaml.Node, path string, a *API) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		if len(n.Content) == 0 {
			d.fault(n.Line, "%s is an empty list, want the SHA-256 of a token in hex, or the key left out", path)
		}
		items, path = n.Content, path+"[]"
	}
	for _, item := range items {
		if sum, ok := d.sha256(item, path, "a token"); ok {
			a.Tokens = append(a.Tokens, sum)
		}
	}
}

// failureMode reads what happens when the store cannot answer.
func (d *decoder) failureMode(n *yaml.Node, path string, to *headgate.FailureMode) {
	modes := []headgate.FailureMode{headgate.FailOpen, headgate.FailClosed, headgate.FailLocal}
	if i, ok := d.choice(n, path, "open", "closed", "local"); ok {
		*to = modes[i]
	}
}

// checkAPI notes an API that is nowhere.
func (d *decoder) checkAPI(c *Config) {
	if line := c.lines["api"]; line > 0 && c.Admin == "" {
		d.fault(line, "api has no use without an admin listener, want for example admin: 127.0.0.1:9090 beside it")
	}
}
