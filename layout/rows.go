package layout

import (
	"context"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Rows reads a file of fixed-width rows, one per node: features (f32, f16, bf16), labels (i32, u8
// bit rows, f32 targets). Every byte that reaches the caller was verified against the checksums of
// the file's .crc companion, which is held in memory: 4 bytes per SumBytes of data. It may be used
// from any goroutine.
type Rows struct{}

// Rows opens a file of rows.
func (s *Store) Rows(ctx context.Context, dev blockdev.Device, m kv.RowsMeta,
	budget *mem.Budget) (*Rows, error) {
	panic("BUG: layout: Rows is missing")
}

// Meta describes the file.
func (r *Rows) Meta() kv.RowsMeta { panic("BUG: layout: Meta is missing") }

// Gather reads the rows of nodes, converted to float32 (f32, f16 and bf16 files), row nodes[i] to
// out[at[i]*Dim:]; at nil means at[i] = i. Nodes may come in any order and repeat: the reads are
// sorted, merged where neighbors are cheaper together, and issued as one batch at full depth.
func (r *Rows) Gather(ctx context.Context, nodes []NodeID, at []uint32, out []float32) error {
	panic("BUG: layout: Gather is missing")
}

// GatherRaw is Gather without conversion, for rows of any type: RowBytes bytes each.
func (r *Rows) GatherRaw(ctx context.Context, nodes []NodeID, at []uint32, out []byte) error {
	panic("BUG: layout: GatherRaw is missing")
}

// Scan reads n consecutive rows from first on, in large sequential reads, converted to float32.
func (r *Rows) Scan(ctx context.Context, first NodeID, n int, out []float32) error {
	panic("BUG: layout: Scan is missing")
}

// BytesRead is the number of bytes read from disk so far.
func (r *Rows) BytesRead() uint64 { panic("BUG: layout: BytesRead is missing") }

// Close closes the file.
func (r *Rows) Close() error { panic("BUG: layout: Close is missing") }

// RowsSpec says what a file of rows holds.
type RowsSpec struct {
	UUID  kv.UUID
	Name  string
	Path  string // relative to the store, for the metadata: "features/NAME.rows"
	DType string
	Dim   int
	Nodes uint64
}

// RowsWriter writes rows in node order.
type RowsWriter struct{}

// NewRowsWriter starts PREFIX.rows and PREFIX.crc.
func NewRowsWriter(fs vfs.FS, prefix string, spec RowsSpec) (*RowsWriter, error) {
	panic("BUG: layout: NewRowsWriter is missing")
}

// Add appends one row of RowBytes bytes, encoded as DType.
func (w *RowsWriter) Add(row []byte) error { panic("BUG: layout: Add is missing") }

// AddF32 appends one row, converted to DType.
func (w *RowsWriter) AddF32(row []float32) error { panic("BUG: layout: AddF32 is missing") }

// Finish pads, writes the checksums, syncs, and returns the metadata and file records.
func (w *RowsWriter) Finish() (kv.RowsMeta, []kv.FileMeta, error) {
	panic("BUG: layout: Finish is missing")
}

// Abort closes the files without finishing them.
func (w *RowsWriter) Abort() error { panic("BUG: layout: Abort is missing") }
