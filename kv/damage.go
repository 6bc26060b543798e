package kv

import (
	"errors"
	"fmt"

	"gdb/internal/message"
)

// Finding describes one damaged place that a check found.
type Finding struct {
	Path   string // relative to the store
	Block  int64  // block or page number, -1 if the whole file
	Offset int64  // in bytes, -1 if unknown
	What   string // what is wrong: expectation and what was read
}

// DamageError is the error of an operation that a finding stopped. It wraps ErrDamaged.
type DamageError struct{ Finding }

// Error names the place, what is wrong there and what to do.
func (e *DamageError) Error() string {
	where := e.Path
	if e.Block >= 0 {
		where += fmt.Sprintf(" block %d", e.Block)
	}
	if e.Offset >= 0 {
		where += fmt.Sprintf(" at offset %d", e.Offset)
	}
	return fmt.Sprintf("kv: %s: %v: %s; run %s check", where, ErrDamaged, e.What,
		message.Program)
}

// Unwrap returns ErrDamaged.
func (e *DamageError) Unwrap() error { return ErrDamaged }

// DamagedFile returns a DamageError about a whole file.
func DamagedFile(path, format string, args ...any) *DamageError {
	return &DamageError{Finding{path, -1, -1, fmt.Sprintf(format, args...)}}
}

// Findings turns an error about damage into a finding, and returns any other.
func Findings(err error) ([]Finding, error) {
	var d *DamageError
	if errors.As(err, &d) {
		return []Finding{d.Finding}, nil
	}
	return nil, err
}
