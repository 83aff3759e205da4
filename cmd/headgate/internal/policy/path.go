package policy

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

var (
	// ErrNoRoute is a path that no route covers.
	ErrNoRoute = errors.New("policy: no route")
	// ErrAmbiguousPath is a path of which an upstream might see another route than the gateway: it must not dodge that one's limits.
	ErrAmbiguousPath = errors.New("policy: ambiguous path")
)

// maxDecodings is how often an upstream is taken to decode a path.
const maxDecodings = 3

// Route returns the route with the longest path that covers escaped, the path of a URL as it was sent. Routes cover whole segments.
//
// Servers differ in how they read "//", ".", "%2F", "\" and ";". So the path is read in each of these ways, and where they do not all
// lead to the same route, or one of them meets "..", it is ErrAmbiguousPath.
func (p *Policy) Route(escaped string) (*Route, error) {
	if !plain(escaped) {
		return p.weigh(escaped)
	}
	if r := p.root.walk(escaped); r != nil {
		return r, nil
	}
	return nil, ErrNoRoute
}

// plain says whether there is but one way to read the path, as there is for most. What it does not say it of may be plain too.
func plain(path string) bool {
	if path == "" || path[0] != '/' {
		return false
	}
	for i := range len(path) {
		switch path[i] {
		case '%', '\\', ';', 0:
			return false
		case '/':
			if i+1 < len(path) && (path[i+1] == '/' || path[i+1] == '.') {
				return false
			}
		}
	}
	return true
}

// weigh is Route for any path: it reads it in all ways.
func (p *Policy) weigh(escaped string) (*Route, error) {
	if !strings.HasPrefix(escaped, "/") {
		return nil, ErrAmbiguousPath
	}
	raw := strings.Split(escaped[1:], "/")
	literal := make([]string, len(raw))
	for i, seg := range raw {
		s, err := url.PathUnescape(seg)
		if err != nil {
			return nil, ErrAmbiguousPath
		}
		literal[i] = s
	}
	r := p.root.find(literal)
	text := escaped
	for range maxDecodings {
		decoded, err := url.PathUnescape(text)
		if err != nil {
			break // a % that encodes nothing: nobody decodes it further
		}
		if !p.agree(decoded, r) {
			return nil, ErrAmbiguousPath
		}
		if decoded == text {
			break
		}
		text = decoded
	}
	if r == nil {
		return nil, ErrNoRoute
	}
	return r, nil
}

// agree says whether text, read as the most lenient servers do, still leads to r.
func (p *Policy) agree(text string, r *Route) bool {
	if strings.ContainsRune(text, 0) {
		return false
	}
	segments := strings.FieldsFunc(text, func(c rune) bool { return c == '/' || c == '\\' })
	bare := make([]string, 0, len(segments))
	for _, seg := range segments {
		name, _, _ := strings.Cut(seg, ";")
		if name == ".." {
			return false
		}
		if name != "." && name != "" {
			bare = append(bare, name)
		}
	}
	segments = slices.DeleteFunc(segments, func(s string) bool { return s == "." })
	return p.root.find(segments) == r && p.root.find(bare) == r
}

// A node is a segment of the routes' paths.
type node struct {
	route *Route // nil = no route ends here
	below map[string]*node
}

func (n *node) add(segments []string, r *Route) {
	for _, seg := range segments {
		if n.below == nil {
			n.below = make(map[string]*node)
		}
		next := n.below[seg]
		if next == nil {
			next = new(node)
			n.below[seg] = next
		}
		n = next
	}
	n.route = r
}

// find returns the route with the longest path that begins segments, or nil.
func (n *node) find(segments []string) *Route {
	best := n.route
	for _, seg := range segments {
		if n = n.below[seg]; n == nil {
			break
		}
		if n.route != nil {
			best = n.route
		}
	}
	return best
}

// walk is find for the segments of a plain path.
func (n *node) walk(path string) *Route {
	best := n.route
	for seg := range strings.SplitSeq(path[1:], "/") {
		if n = n.below[seg]; n == nil {
			break
		}
		if n.route != nil {
			best = n.route
		}
	}
	return best
}
