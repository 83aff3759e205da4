package config

import (
	"errors"
	"io/fs"
	"os"

	"go.yaml.in/yaml/v4"
)

// maxFile bounds what is read of a file, in bytes.
const maxFile = 16 << 20

// Load reads the file at path. Its error is always [Problems].
func Load(path string) (*Config, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxFile {
		return nil, Problems{{File: path, Text: "the file has more than 16 MiB, want a configuration file"}}
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, Problems{{File: path, Text: "cannot be read: " + err.Error() + "; want the path of a YAML file"}}
	}
	return Parse(path, data)
}

// Parse reads data, which it calls file in its problems. Its error is always [Problems].
func Parse(file string, data []byte) (*Config, error) {
	d := &decoder{file: file, keys: make(map[string]bool)}
	c := &Config{Listen: DefaultListen, Identity: Identity{Header: DefaultHeader}}
	if n := d.root(data); n != nil {
		d.document(n, c)
		if n.Kind == yaml.MappingNode {
			d.check(c)
		}
	}
	if len(d.problems) > 0 {
		return nil, d.problems.sorted()
	}
	return c, nil
}
