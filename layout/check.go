package layout

import (
	"context"

	"gdb/blockdev"
	"gdb/kv"
)

// CheckOptions configure Check.
type CheckOptions struct {
	// Full also checks order, degrees, counts, id ranges, and that every listed file is there and
	// nothing else.
	Full bool
	// File limits the check to one file, by its path relative to the store; "" is all.
	File string
	// Progress is called with the bytes verified so far and in all; nil for none.
	Progress func(done, total int64)
}

// CheckReport is the result of a check.
type CheckReport struct {
	Files    int
	Bytes    int64
	Findings []kv.Finding // empty if all is well
}

// Check verifies a store: the catalog, every checksum of every file, and with Full what the bytes
// mean. It goes on after damage, and returns an error only if it could not look.
func Check(ctx context.Context, dev blockdev.Device, s *Store,
	opt CheckOptions) (*CheckReport, error) {
	panic("BUG: layout: Check is missing")
}
