package input

import (
	"errors"
	"fmt"
)

// ErrUsage says that options contradict each other or the source.
var ErrUsage = errors.New("usage")

// usageError is an ErrUsage that says which options are wrong.
type usageError struct{ error }

// Is makes it an ErrUsage.
func (e usageError) Is(target error) bool { return target == ErrUsage }

// Unwrap is what is wrong.
func (e usageError) Unwrap() error { return e.error }

// Usage is an ErrUsage with this text.
func Usage(format string, args ...any) error {
	return usageError{fmt.Errorf("ingest: "+format, args...)}
}
