package policy

// Weigh is Route without its way for plain paths.
func (p *Policy) Weigh(escaped string) (*Route, error) { return p.weigh(escaped) }
