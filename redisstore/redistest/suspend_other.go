//go:build !unix

package redistest

import "errors"

// suspend fails: there is no such signal here.
func suspend(int, bool) error { return errors.ErrUnsupported }
