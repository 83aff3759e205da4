package httplimit

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strings"
)

// HeaderKey returns a key function for the request header field of this name, such as "X-Tenant": a digest of its value, so that neither
// the store nor a log ever sees it. (The digest of a value that can be guessed can be guessed too.)
//
// Only a field that an authenticating layer in front sets, and takes away from what callers send, says who pays. A field that callers
// choose lets each of them be as many as they like. Authorization is not fit: one token can be written in several ways.
//
// A request without it gets 401 and [ErrNoIdentity], and one that has it twice gets 400, since then it is not known which was the layer's.
// The error of HeaderKey matches [headgate.ErrInvalidConfig].
func HeaderKey(name string) (func(*http.Request) (string, error), error) {
	if name == "" || strings.ContainsFunc(name, notToken) {
		return nil, invalid("header %q, want the name of a field", name)
	}
	name = http.CanonicalHeaderKey(name)
	return func(r *http.Request) (string, error) {
		switch values := r.Header[name]; {
		case len(values) == 0 || len(values) == 1 && values[0] == "":
			return "", &StatusError{Status: http.StatusUnauthorized, Err: ErrNoIdentity}
		case len(values) > 1:
			return "", &StatusError{Status: http.StatusBadRequest, Detail: "The field that says who the request comes from occurs twice."}
		default:
			return JoinKey(name, values[0]), nil
		}
	}, nil
}

// notToken says whether c may not stand in the name of a field (RFC 9110, token).
func notToken(c rune) bool {
	return c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
}

// JoinKey makes one key of several parts: 43 characters, whatever the parts hold. Two lists of parts have the same key only if they
// are the same: ("a", "bc") is not ("ab", "c"), and ("a") is not ("a", ""). It is a SHA-256 digest of the parts, each after its length.
func JoinKey(parts ...string) string {
	var buf [256]byte
	b := buf[:0]
	for _, part := range parts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	sum := sha256.Sum256(b)
	var text [43]byte
	base64.RawURLEncoding.Encode(text[:], sum[:])
	return string(text[:])
}

// ComposeKeys returns a key function that joins the keys of several as [JoinKey] does, such as client and route. It fails with
// the first error of one of them. The error of ComposeKeys matches [headgate.ErrInvalidConfig].
func ComposeKeys(keys ...func(*http.Request) (string, error)) (func(*http.Request) (string, error), error) {
	if len(keys) == 0 {
		return nil, invalid("no key functions to compose")
	}
	for i, key := range keys {
		if key == nil {
			return nil, invalid("key function %d is nil", i+1)
		}
	}
	keys = append([]func(*http.Request) (string, error)(nil), keys...)
	return func(r *http.Request) (string, error) {
		parts := make([]string, len(keys))
		for i, key := range keys {
			part, err := key(r)
			if err != nil {
				return "", err
			}
			parts[i] = part
		}
		return JoinKey(parts...), nil
	}, nil
}
