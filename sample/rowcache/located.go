package rowcache

import (
	"context"

	"gdb/internal/mem"
	"gdb/layout"
)

// NoRow stands for a row that is not in memory.
const NoRow = 1<<32 - 1

// Located are Features that tell where rows lie in memory, which others then read in place.
type Located interface {
	Features
	// Memory is that of the rows, and where in it the first one begins, in bytes: nil if there are
	// none.
	Memory() (memory []byte, first int)
	// Hold has the rows in memory stay where they are until Close, or no longer.
	Hold(hold bool)
	// Locate writes to rows which row in memory each node has, or NoRow. Those of rows that are
	// not held are a guess, which Gather knows better.
	Locate(nodes []layout.NodeID, rows []uint32) error
	// Behind reads the other rows.
	Behind() Rows
}

// StoredRows are Rows that can stay in memory as they are stored; *rowfile.Reader is one.
type StoredRows interface {
	GatherStored(ctx context.Context, nodes []layout.NodeID, at []uint32,
		room func(read, bytes int64) ([]byte, error)) (read bool, err error)
}

// LocatedOf are features that tell where their rows lie; nil for a cache whose rows change places.
func LocatedOf(f Features) Located {
	if c, ok := f.(*cached); ok {
		if _, fixed := c.mu.policy.(*static); !fixed {
			return nil
		}
	}
	l, _ := f.(Located)
	return l
}

// Memory is that of all slots, but for memory that was given back.
func (f *cached) Memory() (memory []byte, first int) {
	f.content.RLock()
	defer f.content.RUnlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.slots == 0 {
		return nil, 0
	}
	return f.arena.Bytes()[:f.firstValue+4*f.dim*f.mu.slots], f.firstValue
}

// Hold keeps the cache from giving memory back.
func (f *cached) Hold(hold bool) {
	f.content.Lock()
	defer f.content.Unlock()
	f.held = hold
}

// Locate finds slots whose rows are there. Rows that are not in memory count as asked for, and
// those that are if they are held: else Gather counts them.
func (f *cached) Locate(nodes []layout.NodeID, rows []uint32) error {
	if err := f.background.failed(); err != nil {
		return err
	}
	f.content.RLock()
	defer f.content.RUnlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	found := 0
	for i, v := range nodes {
		rows[i] = NoRow
		if s, ok := f.mu.index.Find(v); ok && s&slotPending == 0 {
			rows[i] = s
			found++
		}
	}
	if f.held {
		f.hits.Add(uint64(found))
		found = 0
	}
	f.requests.Add(uint64(len(nodes) - found))
	return nil
}

// Behind has all rows.
func (f *cached) Behind() Rows { return f.rows }

// Memory is that of all rows.
func (f *resident) Memory() (memory []byte, first int) { return f.arena.Bytes(), 0 }

// Hold has them counted by Locate: they stay where they are in any case.
func (f *resident) Hold(hold bool) { f.held.Store(hold) }

// Locate finds all rows.
func (f *resident) Locate(nodes []layout.NodeID, rows []uint32) error {
	copy(rows, mem.View[uint32](mem.BytesOf(nodes)))
	if f.held.Load() {
		f.requests.Add(uint64(len(nodes)))
	}
	return nil
}

// Behind has all rows.
func (f *resident) Behind() Rows { return f.rows }

// Memory is none.
func (f *direct) Memory() (memory []byte, first int) { return nil, 0 }

// Hold has nothing to keep.
func (f *direct) Hold(bool) {}

// Locate finds no row.
func (f *direct) Locate(nodes []layout.NodeID, rows []uint32) error {
	for i := range nodes {
		rows[i] = NoRow
	}
	f.requests.Add(uint64(len(nodes)))
	return nil
}

// Behind has all rows.
func (f *direct) Behind() Rows { return f.rows }
