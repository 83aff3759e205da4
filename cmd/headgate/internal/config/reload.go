package config

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/watch"
)

// A Version says which configuration is in force, and what became of attempts to replace it. Its JSON form is that of the admin listener.
type Version struct {
	Number    int64     `json:"version"`           // 1 at the start, one more with each that comes into force
	Hash      string    `json:"hash"`              // SHA-256 of the file's content; "" = the demo
	File      string    `json:"file"`              // "" = the demo
	Since     time.Time `json:"since"`             // when it came into force
	Failures  int64     `json:"failed_reloads"`    // since the start
	LastError string    `json:"last_error"`        // why the newest content is not in force; "" = it is
	ErrorAt   time.Time `json:"error_at,omitzero"` // when that was found
}

// maxLogged bounds the lines that one file's problems make in the log.
const maxLogged = 10

// A Reloader keeps the running configuration in step with its file. What is not right in the file does not come into force, not even in
// part. Safe for concurrent use.
type Reloader struct {
	watcher *watch.Watcher
	log     *slog.Logger

	mu      sync.Mutex
	version Version
}

// LoadToReload is [Load], and returns what keeps the configuration in step with the file once its Run is called. It looks at the file
// once in every.
func LoadToReload(path string, every time.Duration, log *slog.Logger) (*Config, *Reloader, error) {
	files := watch.Read(path)
	c, err := parseFiles(path, files)
	if err != nil {
		return nil, nil, err
	}
	return c, &Reloader{
		watcher: watch.New(every, files, path), log: log, version: Version{Number: 1, Hash: files.Hash, File: path, Since: time.Now()},
	}, nil
}

// Version returns what is in force.
func (r *Reloader) Version() Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.version
}

// Reload asks for the file to be read at once. It does not wait for that.
func (r *Reloader) Reload() { r.watcher.Look() }

// Run calls apply with each configuration that the file comes to hold, until ctx ends, one call at a time. apply puts it in force as a
// whole, or returns an error and changes nothing.
func (r *Reloader) Run(ctx context.Context, apply func(*Config) error) {
	r.watcher.Run(ctx, func(files watch.Files) { r.consider(files, apply) })
}

func (r *Reloader) consider(files watch.Files, apply func(*Config) error) {
	if files.Err == nil && files.Hash == r.Version().Hash {
		r.change(func(v *Version) { v.LastError, v.ErrorAt = "", time.Time{} })
		r.log.Info("the configuration in force is what the file holds", slog.String("hash", files.Hash))
		return
	}
	c, err := parseFiles(r.Version().File, files)
	if err == nil {
		err = apply(c)
	}
	if err != nil {
		r.refuse(err)
		return
	}
	v := r.change(func(v *Version) {
		v.Number, v.Hash, v.Since, v.LastError, v.ErrorAt = v.Number+1, files.Hash, time.Now(), "", time.Time{}
	})
	r.log.Info("the configuration was reloaded", slog.Int64("version", v.Number), slog.String("hash", v.Hash))
}

// refuse notes what is wrong with the file.
func (r *Reloader) refuse(err error) {
	v := r.change(func(v *Version) { v.Failures, v.LastError, v.ErrorAt = v.Failures+1, err.Error(), time.Now() })
	var problems Problems
	if !errors.As(err, &problems) {
		r.log.Error("the configuration was not reloaded, the running one stays", slog.Int64("version", v.Number), slog.Any("error", err))
		return
	}
	for i, p := range problems {
		if i == maxLogged {
			r.log.Error("there are more problems; headgate check shows all of them", slog.Int("not_logged", len(problems)-i))
			break
		}
		r.log.Error("the configuration was not reloaded, the running one stays", slog.Int64("version", v.Number), slog.String("problem", p.String()))
	}
}

func (r *Reloader) change(how func(*Version)) Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	how(&r.version)
	return r.version
}
