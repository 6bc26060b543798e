package layout

import (
	"context"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
)

// RowsWith opens a file of rows whose checksums stay on disk or not, whatever the memory.
func (s *Store) RowsWith(ctx context.Context, dev blockdev.Device, m kv.RowsMeta, onDisk bool,
	budget *mem.Budget) (*Rows, error) {
	shape, err := newRowsShape(m, s.meta.Nodes)
	if err != nil {
		return nil, err
	}
	return s.openRows(ctx, dev, shape, onDisk, budget)
}
