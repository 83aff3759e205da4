package config

import (
	"errors"
	"io/fs"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/cmd/headgate/internal/watch"
	"github.com/headgate/headgate/lease"
)

// Load reads the file at path. Its error is always [Problems].
func Load(path string) (*Config, error) { return parseFiles(path, watch.Read(path)) }

// parseFiles is Load for what was read.
func parseFiles(path string, files watch.Files) (*Config, error) {
	if err := files.Err; err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, Problems{{File: path, Text: "cannot be read: " + err.Error() + "; want the path of a YAML file"}}
	}
	return Parse(path, files.Data[0])
}

// Parse reads data, which it calls file in its problems. Its error is always [Problems].
func Parse(file string, data []byte) (*Config, error) {
	d := &decoder{file: file, keys: make(map[string]bool)}
	c := &Config{
		Listen: DefaultListen, MaxHeader: DefaultMaxHeader, Drain: DefaultDrain, Lease: lease.DefaultLifetime, Identity: Identity{Header: DefaultHeader},
		file: file, lines: make(map[string]int),
	}
	if n := d.root(data); n != nil {
		d.document(n, c)
		if n.Kind == yaml.MappingNode {
			d.check(c)
		}
	}
	if len(d.problems) > 0 {
		return nil, d.problems.sorted()
	}
	c.Leased = d.leased()
	return c, nil
}
