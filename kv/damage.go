package kv

import (
	"errors"
	"fmt"

	"gdb/internal/codec"
)

// Finding is one damaged place that a check found.
type Finding struct {
	Path   string // relative to the store
	Block  int64  // block or page number, -1 if the whole file
	Offset int64  // in bytes, -1 if unknown
	What   string // what is wrong: expectation and what was read
}

// DamageError is a finding that stopped an operation. It wraps ErrDamaged.
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
	return fmt.Sprintf("kv: %s: %v: %s; run gdb check", where, ErrDamaged, e.What)
}

// Unwrap returns ErrDamaged.
func (e *DamageError) Unwrap() error { return ErrDamaged }

// damagedFile is a DamageError about a whole file.
func damagedFile(path, format string, args ...any) *DamageError {
	return &DamageError{Finding{path, -1, -1, fmt.Sprintf(format, args...)}}
}

// damagedBlock is a DamageError about a block of a dictionary file.
func damagedBlock(path string, block uint64, format string, args ...any) *DamageError {
	return &DamageError{Finding{path, int64(block), int64(block) * IDBlockBytes,
		fmt.Sprintf(format, args...)}}
}

// headerError sorts the errors of codec.DecodeHeader for the file path.
func headerError(path string, err error) error {
	if errors.Is(err, codec.ErrVersion) {
		return fmt.Errorf("kv: %s: %w: %w", path, ErrFormat, err)
	}
	return damagedBlock(path, 0, "%v", err)
}

// findingOf returns the finding of an error, if it is a DamageError.
func findingOf(err error) (Finding, bool) {
	var d *DamageError
	if errors.As(err, &d) {
		return d.Finding, true
	}
	return Finding{}, false
}
