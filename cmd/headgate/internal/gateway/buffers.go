package gateway

import "sync"

// bufferSize is what ReverseProxy passes bodies on by where it makes its buffers itself.
const bufferSize = 32 << 10

// buffers are kept for the bodies that are passed on: to make one for each would be most of what a request allocates. It implements
// [httputil.BufferPool].
type buffers struct{ pool sync.Pool }

// Get returns a buffer that nobody else has.
func (b *buffers) Get() []byte {
	if kept, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return kept[:]
	}
	return make([]byte, bufferSize)
}

// Put takes back what Get returned.
func (b *buffers) Put(buffer []byte) {
	if len(buffer) == bufferSize {
		b.pool.Put((*[bufferSize]byte)(buffer))
	}
}
