package ingest

import (
	"context"
	"errors"

	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Errors of an ingest, besides BadInputError and those of the file system.
var (
	// ErrUnfinished says that an earlier ingest into this store was not finished.
	ErrUnfinished = errors.New("an unfinished ingest is here: go on with --resume, or delete it")
	// ErrExists says that the store exists already.
	ErrExists = errors.New("a store is here already")
	// ErrUsage says that options contradict each other or the source.
	ErrUsage = errors.New("usage")
)

// Open detects the format of the sources and opens them.
func Open(ctx context.Context, fs vfs.FS, opt *Options) (Source, error) {
	panic("BUG: ingest: Open is missing")
}

// Plan is what a dry run prints: what was found, what will be written, memory and disk.
type Plan struct {
	Info         *Info
	Nodes, Edges uint64 // as known; 0: known after reading
	MemoryBytes  int64
	DiskBytes    int64 // of the store
	TempBytes    int64 // of tmp/ at its largest
	Files        []string
	LeastMemory  int64 // the least --memory that would do
}

// DryRun plans an ingest and writes nothing.
func DryRun(ctx context.Context, fs vfs.FS, opt Options) (*Plan, error) {
	panic("BUG: ingest: DryRun is missing")
}

// Run ingests the sources to opt.Out and returns the metadata of the new store. On error nothing
// is left that looks like a store; what Resume needs stays in OUT/tmp unless the input was bad.
func Run(ctx context.Context, fs vfs.FS, opt Options) (*kv.Meta, error) {
	panic("BUG: ingest: Run is missing")
}
