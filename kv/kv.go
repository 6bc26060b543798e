// Package kv defines the schema of a store: the records of its catalog, such as Meta and RunMeta,
// and the errors of everything that is looked up by a key. Package kv/catalog keeps the records,
// and package kv/ids the external ids of nodes.
package kv

import (
	"errors"
	"fmt"

	"gdb/internal/message"
)

// Errors of the catalog and of the dictionary of external ids.
var (
	// ErrNotFound says that a record, set or id does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNoStore says that the directory holds no catalog: it is not a store.
	ErrNoStore = errors.New("not a gdb store")
	// ErrNoSnapshot says that a store never had a snapshot, or that its files are gone.
	ErrNoSnapshot = errors.New("there is no such snapshot")

	// ErrExists says that the directory holds a catalog already.
	ErrExists = errors.New("a store is here already")
	// ErrBusy says that another process held the catalog for all of LockWait.
	ErrBusy = errors.New("catalog is busy")
	// ErrDamaged says that bytes of the catalog or the dictionary are not the bytes that were
	// written.
	ErrDamaged = errors.New("damaged")
	// ErrFormat says that the store was written by another version of the format.
	ErrFormat = errors.New("unknown store format")
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
