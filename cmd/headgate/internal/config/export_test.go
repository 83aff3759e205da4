package config

// Keys returns every key that the schema asked about while it read data, such as "routes[].path".
func Keys(data []byte) map[string]bool {
	d := &decoder{keys: make(map[string]bool)}
	if n := d.root(data); n != nil {
		d.document(n, new(Config))
	}
	return d.keys
}
