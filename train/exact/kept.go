package exact

import (
	"context"
	"math"

	"gdb/sample"
	"gdb/sample/loader"
)

// Place says where tables are kept that outlive a computation.
type Place struct {
	// Source has the store and its device, and the budget whose free memory decides which tables
	// are in memory.
	Source *loader.Source
	// Dir is the directory, relative to the store, of tables that do not fit there. Claim is called
	// before the first of them is written; it may be nil.
	Dir   string
	Claim func() error
	// OnDisk writes tables to files even if they fit in memory. Tests set it.
	OnDisk bool
}

// keptRoom is what tables in memory leave of the budget, for the buffers of those in files.
const keptRoom = 16 << 20

// Table is a matrix with a row for each of some nodes, in memory or in a file. It may be read from
// any goroutine. The caller calls Close.
type Table struct{ table }

// Width returns the number of values in a row.
func (t *Table) Width() int { return t.dim() }

// Read writes rows, given by ascending numbers, to out.
func (t *Table) Read(ctx context.Context, rows []sample.NodeID, out []float32) error {
	return t.read(ctx, rows, out)
}

// TableWriter makes a Table.
type TableWriter struct{ w *tableWriter }

// Begin starts a table of rows that are added in order.
func (p Place) Begin(name string, rows, width int) (*TableWriter, error) {
	f := &Inference{Source: p.Source, Dir: p.Dir, Claim: p.Claim}
	room := int64(keptRoom)
	if p.OnDisk {
		room = math.MaxInt64 / 2
	}
	w, err := f.tableIn(name, rows, width, room)
	return &TableWriter{w}, err
}

// Add appends rows.
func (t *TableWriter) Add(rows []float32) error { return t.w.add(rows) }

// Finish returns the table.
func (t *TableWriter) Finish(ctx context.Context) (*Table, error) {
	done, err := t.w.finish(ctx)
	if err != nil {
		return nil, err
	}
	return &Table{done}, nil
}

// Abort frees what was written. It is for a table that is not finished.
func (t *TableWriter) Abort() error { return t.w.abort() }
