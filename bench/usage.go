package bench

import "fmt"

// UsageError is an option that makes no sense, found before anything was done.
type UsageError struct{ what string }

// Error says what makes no sense.
func (e *UsageError) Error() string { return e.what }

// usagef is a UsageError.
func usagef(format string, args ...any) error {
	return &UsageError{what: fmt.Sprintf(format, args...)}
}
