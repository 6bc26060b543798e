package gdb

import (
	"context"
	"fmt"

	"gdb/layout/ingest"
	"gdb/layout/live"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Writer collects edges and nodes, and adds them to a store by commits: all that was given since
// the last, or nothing. One goroutine may use it.
type Writer struct {
	db    *DB
	fs    vfs.FS
	batch *live.Batch
	// Memory bounds what a commit takes, in bytes. Default: half of what the process may use.
	Memory int64
}

// Edges are edges to add, by the ids of their ends, with the types, weights and times that those of
// the store have; of a typed store, with a relation and columns.
type Edges = live.Edges

// Nodes are nodes to add, or values that nodes of the store get in place of theirs.
type Nodes = live.Nodes

// Column is a column of nodes or edges of a typed store, as text.
type Column = live.Column

// Writer returns a writer to the store. The DB goes on reading the snapshot that it has open: what
// commits add is read by a DB that is opened later.
func (db *DB) Writer() *Writer {
	return &Writer{db: db, fs: db.store.FS(), batch: live.NewBatch(db.store.Meta())}
}

// AddEdges adds edges to the next commit. The writer keeps the slices until then.
func (w *Writer) AddEdges(e Edges) error {
	if err := w.batch.AddEdges(e); err != nil {
		return fmt.Errorf("gdb: add edges: %w", err)
	}
	return nil
}

// AddNodes adds nodes, and values of nodes, to the next commit. The writer keeps the slices until
// then. A node without values need not be added, if an edge has it.
func (w *Writer) AddNodes(v Nodes) error {
	if err := w.batch.AddNodes(v); err != nil {
		return fmt.Errorf("gdb: add nodes: %w", err)
	}
	return nil
}

// Commit adds what was given since the last commit, and tells of it. That is durable when Commit
// returns, and then the next commit begins empty. On an error nothing was added, and the writer
// keeps what it has.
func (w *Writer) Commit(ctx context.Context) (*live.Added, error) {
	opt := ingest.Options{}
	opt.Memory = w.Memory
	added, err := live.AppendBatch(ctx, w.fs, w.db.store.Dir(), w.batch, opt)
	if err != nil {
		return nil, fmt.Errorf("gdb: %w", err)
	}
	w.batch = live.NewBatch(w.db.store.Meta())
	return added, nil
}
