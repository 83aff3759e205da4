package config

import (
	"encoding/hex"

	"go.yaml.in/yaml/v4"
)

// plans reads the mapping of plans by name.
func (d *decoder) plans(n *yaml.Node, c *Config) {
	d.entries(n, "plans", func(key, value *yaml.Node) {
		name, ok := d.name(key, "the name of a plan")
		if !ok {
			return
		}
		p := Plan{Name: name, line: key.Line}
		d.objectAs(value, "plans."+name, "plans.*", field{name: "limits", example: `["100/s"]`, read: func(v *yaml.Node) {
			p.Limits = d.limits(v, "plans."+name+".limits", name)
		}})
		c.Plans = append(c.Plans, p)
	})
}

func (d *decoder) tenants(n *yaml.Node, c *Config) {
	d.list(n, "tenants", `a list of tenants such as {name: acme, plan: pro, api_key_sha256: "<hex>"}`, func(item *yaml.Node) {
		t := Tenant{line: item.Line, mapping: item.Line}
		d.object(item, "tenants[]",
			field{name: "name", example: `acme`, read: func(v *yaml.Node) { t.Name, _ = d.name(v, "tenants[].name"); t.line = v.Line }},
			field{name: "plan", example: `free`, read: func(v *yaml.Node) { t.Plan, _ = d.name(v, "tenants[].plan"); t.planLine = v.Line }},
			field{name: "api_key_sha256", read: func(v *yaml.Node) { d.digests(v, &t); t.keySeen = true }})
		t.keySeen = t.keySeen || item.Kind != yaml.MappingNode // one problem is enough
		c.Tenants = append(c.Tenants, t)
	})
	if n.Kind != yaml.SequenceNode {
		c.Tenants = []Tenant{} // named by one problem is enough
	}
}

// digests reads one digest or a list of them: while a key is being replaced, a tenant has two.
func (d *decoder) digests(n *yaml.Node, t *Tenant) {
	const path = "tenants[].api_key_sha256"
	if n.Kind != yaml.SequenceNode {
		d.digest(n, path, t)
		return
	}
	if len(n.Content) == 0 {
		d.fault(n.Line, "%s is an empty list, want the SHA-256 of an API key in hex", path)
	}
	for _, item := range n.Content {
		d.digest(item, path+"[]", t)
	}
}

func (d *decoder) digest(n *yaml.Node, path string, t *Tenant) {
	if key, ok := d.sha256(n, path, "an API key"); ok {
		t.Keys = append(t.Keys, key)
		t.keyLines = append(t.keyLines, n.Line)
	}
}

// sha256 reads 64 hex digits, also those that YAML would take for a number. It does not repeat what it read: it may be what was to be digested.
func (d *decoder) sha256(n *yaml.Node, path, of string) (sum [32]byte, ok bool) {
	want := "the SHA-256 of " + of + " in 64 hex digits (headgate keygen prints one)"
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.fault(n.Line, "%s is %s, want %s", path, describe(n), want)
		return sum, false
	}
	if len(n.Value) != 64 {
		d.fault(n.Line, "%s has %d characters, want %s", path, len(n.Value), want)
		return sum, false
	}
	if _, err := hex.Decode(sum[:], []byte(n.Value)); err != nil {
		d.fault(n.Line, "%s has a character that is no hex digit, want %s", path, want)
		return sum, false
	}
	return sum, true
}
