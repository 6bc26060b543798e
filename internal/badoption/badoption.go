// Package badoption has the error of options that make no sense: the caller's to mend, and found
// before
// anything was done.
package badoption

import "fmt"

// Error is an option that makes no sense.
type Error struct{ what string }

// Error says what makes no sense, and what would.
func (e *Error) Error() string { return e.what }

// Errorf formats an Error.
func Errorf(format string, args ...any) error { return &Error{what: fmt.Sprintf(format, args...)} }
