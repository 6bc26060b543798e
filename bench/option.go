package bench

import "fmt"

// OptionError is an option that makes no sense: the caller's to mend, and found before anything was
// done.
type OptionError struct{ what string }

// Error says what makes no sense, and what would.
func (e *OptionError) Error() string { return e.what }

// optionErrorf formats an Error.
func optionErrorf(format string, args ...any) error {
	return &OptionError{what: fmt.Sprintf(format, args...)}
}
