package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Bounds of a key set.
const (
	maxKeySet  = 1 << 20 // bytes
	maxKeys    = 100
	minRSABits = 2048
)

// A keyList is a JSON Web Key Set: those of its keys with which signatures can be verified. It never changes.
type keyList struct {
	at   time.Time
	keys []jose.JSONWebKey
}

// parseKeys reads a JSON Web Key Set. Keys of kinds that are not known, for other uses, secret or too short are left out: a set may
// hold them for others.
func parseKeys(data []byte) (*keyList, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil || set.Keys == nil {
		return nil, errors.New(`no JSON Web Key Set, want {"keys": [...]}`)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("%d keys in a set, want at most %d", len(set.Keys), maxKeys)
	}
	list := new(keyList)
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(raw, &key) == nil && verifies(key) {
			list.keys = append(list.keys, key)
		}
	}
	return list, nil
}

// verifies says whether signatures may be verified with the key.
func verifies(key jose.JSONWebKey) bool {
	if key.Use != "" && key.Use != "sig" || !key.IsPublic() || !key.Valid() {
		return false
	}
	rsaKey, isRSA := key.Key.(*rsa.PublicKey)
	return !isRSA || rsaKey.N.BitLen() >= minRSABits
}

// find returns the keys of that id, or of any where the token names none, which fit the algorithm. known says whether there is any key
// of that id.
func (l *keyList) find(id, algorithm string) (found []any, known bool) {
	for _, key := range l.keys {
		if id != "" && key.KeyID != id {
			continue
		}
		known = true
		if fits(key, algorithm) {
			found = append(found, key.Key)
		}
	}
	return found, known
}

// fits says whether the key is one for the algorithm: its own kind, and the one that its set restricts it to. So no public key is ever
// taken for the secret of another algorithm.
func fits(key jose.JSONWebKey, algorithm string) bool {
	if key.Algorithm != "" && key.Algorithm != algorithm {
		return false
	}
	switch key.Key.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS")
	case *ecdsa.PublicKey:
		return strings.HasPrefix(algorithm, "ES")
	case ed25519.PublicKey:
		return algorithm == string(jose.EdDSA)
	}
	return false
}

// fromURL reads a key set over HTTP. It does not follow redirects, which could lead from https to anywhere.
func fromURL(url string) func(context.Context) ([]byte, error) {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return func(ctx context.Context) ([]byte, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Accept", "application/jwk-set+json, application/json")
		r.Close = true // one request in minutes: no connection is kept for it
		resp, err := client.Do(r)
		if err != nil {
			return nil, err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("status %d, want 200 and a key set", resp.StatusCode)
		}
		return readAll(resp.Body)
	}
}

func fromFile(path string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		data, err := readAll(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return data, nil
	}
}

// readAll reads what is no longer than a key set may be.
func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxKeySet+1))
	if err == nil && len(data) > maxKeySet {
		err = errors.New("more than 1 MiB, want a key set")
	}
	return data, err
}
