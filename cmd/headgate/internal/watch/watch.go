// Package watch notices when the content of files changes. It reads them again and again, in place of asking the system to be told:
// so it sees every way in which files change - written in place, replaced by a rename, removed and made anew, or reached through a
// symbolic link that leads elsewhere now, as in a Kubernetes volume - on every file system, and there is nothing that could be missed
// or overflow. The files are small.
package watch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"time"
)

// Interval is the usual time between two looks.
const Interval = 500 * time.Millisecond

// maxFile bounds what is read of a file, in bytes.
const maxFile = 16 << 20

// Files are some files at one moment.
type Files struct {
	Data [][]byte // the content of each, in order; nil where Err is not
	Hash string   // of all of it: of one file, its SHA-256 in hex
	Err  error    // why one of them could not be read
}

// Read reads the files at paths.
func Read(paths ...string) Files {
	var f Files
	all := sha256.New()
	for _, path := range paths {
		data, err := readFile(path)
		if err != nil {
			return Files{Err: err, Hash: "unreadable: " + err.Error()}
		}
		f.Data = append(f.Data, data)
		sum := sha256.Sum256(data)
		if len(paths) == 1 {
			f.Hash = hex.EncodeToString(sum[:])
			return f
		}
		_, _ = all.Write(sum[:]) // a hash takes whatever is written
	}
	f.Hash = hex.EncodeToString(all.Sum(nil))
	return f
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = errors.New("more than 16 MiB")
	}
	return data, err
}

// A Watcher looks at files.
type Watcher struct {
	paths []string
	every time.Duration
	last  Files         // what was handed on
	seen  string        // the hash of a change that was seen once; "" = there is none
	now   chan struct{} // holds one while a look was asked for
}

// New returns a Watcher of the files at paths, which were read as known.
func New(every time.Duration, known Files, paths ...string) *Watcher {
	return &Watcher{paths: paths, every: every, last: known, now: make(chan struct{}, 1)}
}

// Look asks for a look at once, and for its content to be handed on even if it is what it was. It does not block.
func (w *Watcher) Look() {
	select {
	case w.now <- struct{}{}:
	default: // one is asked for already, and will see what is there by then
	}
}

// Run calls changed with each new content of the files until ctx ends, one call at a time. A change is handed on once two looks in a row
// have seen the same: while somebody writes, nothing is.
func (w *Watcher) Run(ctx context.Context, changed func(Files)) {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.now:
			w.last, w.seen = Read(w.paths...), ""
			changed(w.last)
		case <-tick.C:
			if w.settled() {
				changed(w.last)
			}
		}
	}
}

// settled looks, and says whether there is a change to hand on.
func (w *Watcher) settled() bool {
	found := Read(w.paths...)
	if found.Hash == w.last.Hash {
		w.seen = ""
		return false
	}
	if found.Hash != w.seen {
		w.seen = found.Hash
		return false
	}
	w.last, w.seen = found, ""
	return true
}
