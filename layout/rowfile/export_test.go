package rowfile

import (
	"context"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
)

// OpenWith opens a file of rows whose checksums stay on disk or not, whatever the memory.
func OpenWith(ctx context.Context, s *layout.Store, dev blockdev.Device, m kv.RowsMeta, onDisk bool,
	budget *mem.Budget) (*Reader, error) {
	shape, err := NewShape(m, s.Meta().Nodes)
	if err != nil {
		return nil, err
	}
	return openRows(ctx, s, dev, shape, onDisk, budget)
}

// SplitTo is newSplit: pieces of a given width.
var SplitTo = newSplit
