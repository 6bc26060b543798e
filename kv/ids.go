package kv

import (
	"context"

	"gdb/blockdev"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// IDs maps between external ids and node ids. It may be used from any goroutine.
type IDs interface {
	// Internal returns the node of an external id, or an error that wraps ErrNotFound and names it.
	Internal(ctx context.Context, external string) (NodeID, error)
	// External appends the external id of each node to dst. A node out of range is ErrNotFound.
	External(ctx context.Context, nodes []NodeID, dst []string) ([]string, error)
	Close() error
}

// OpenIDs opens the id dictionary of a store: for dense ids no file is read.
func OpenIDs(ctx context.Context, dev blockdev.Device, fs vfs.FS, dir string,
	m *Meta) (IDs, error) {
	panic("BUG: kv: OpenIDs is missing")
}

// HashID is the hash by which the forward dictionary is sorted. Two ids with one hash are both
// kept: a lookup compares the strings.
func HashID(seed uint64, external []byte) uint64 { panic("BUG: kv: HashID is missing") }

// ForwardWriter writes the external-to-internal file from entries in ascending order of (hash,
// external id). Memory: one block, and 8 bytes per block for the index.
type ForwardWriter struct{}

// NewForwardWriter starts ids/forward.ids at path, for the store uuid and hash seed.
func NewForwardWriter(fs vfs.FS, path string, uuid UUID, seed uint64) (*ForwardWriter, error) {
	panic("BUG: kv: NewForwardWriter is missing")
}

// Add appends one entry.
func (w *ForwardWriter) Add(hash uint64, external []byte, id NodeID) error {
	panic("BUG: kv: Add is missing")
}

// Finish writes the index, syncs and closes, and returns the record of the file.
func (w *ForwardWriter) Finish() (FileMeta, error) { panic("BUG: kv: Finish is missing") }

// Abort closes the file without finishing it.
func (w *ForwardWriter) Abort() error { panic("BUG: kv: Abort is missing") }

// ReverseWriter writes the internal-to-external file: the external id of node 0, 1, 2, ….
type ReverseWriter struct{}

// NewReverseWriter starts ids/reverse.ids at path.
func NewReverseWriter(fs vfs.FS, path string, uuid UUID) (*ReverseWriter, error) {
	panic("BUG: kv: NewReverseWriter is missing")
}

// Add appends the external id of the next node.
func (w *ReverseWriter) Add(external []byte) error { panic("BUG: kv: Add is missing") }

// Finish writes the index, syncs and closes, and returns the record of the file.
func (w *ReverseWriter) Finish() (FileMeta, error) { panic("BUG: kv: Finish is missing") }

// Abort closes the file without finishing it.
func (w *ReverseWriter) Abort() error { panic("BUG: kv: Abort is missing") }

// VerifyIDs checks every block of the dictionary files, and with full also that each external id
// of one file leads back in the other.
func VerifyIDs(ctx context.Context, dev blockdev.Device, fs vfs.FS, dir string, m *Meta,
	full bool) ([]Finding, error) {
	panic("BUG: kv: VerifyIDs is missing")
}
