// Package kv has the schema of a store: the records of its catalog, and the errors of what is kept
// under keys. kv/catalog keeps the records, kv/ids the external ids of nodes.
package kv

import "errors"

// Errors of the catalog and the dictionary.
var (
	// ErrNotFound says that a record, set or id does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNoStore says that the directory holds no catalog: it is not a store.
	ErrNoStore = errors.New("not a gdb store")
	// ErrExists says that a catalog is there already.
	ErrExists = errors.New("a store is here already")
	// ErrBusy says that another process held the catalog for all of LockWait.
	ErrBusy = errors.New("catalog is busy")
	// ErrDamaged says that catalog or dictionary bytes are not those that were written.
	ErrDamaged = errors.New("damaged")
	// ErrFormat says that the store was written by another version of the format.
	ErrFormat = errors.New("unknown store format")
)
