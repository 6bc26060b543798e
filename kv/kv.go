// Package kv defines the schema of a store: the records of its catalog, such as Meta and RunMeta,
// and the errors of everything that is looked up by a key. Package kv/catalog keeps the records,
// and package kv/ids the external ids of nodes.
package kv

import "errors"

// Errors of the catalog and of the dictionary of external ids.
var (
	// ErrNotFound says that a record, set or id does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNoStore says that the directory holds no catalog: it is not a store.
	ErrNoStore = errors.New("not a gdb store")
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
