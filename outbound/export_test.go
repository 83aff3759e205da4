package outbound

// Known returns of how many keys something is remembered.
func (t *Transport) Known() int {
	t.facts.mu.Lock()
	defer t.facts.mu.Unlock()
	return len(t.facts.byKey)
}
