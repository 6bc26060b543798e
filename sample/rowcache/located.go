package rowcache

import (
	"context"

	"gdb/internal/mem"
	"gdb/layout"
)

// NoRow stands for a row that is not in memory.
const NoRow = 1<<32 - 1

// Located are Features that say where rows lie in memory, for others to read them in place.
type Located interface {
	Features
	// Memory returns the memory of the rows, and where the first row begins in it, in bytes. It
	// returns nil if there is none.
	Memory() (memory []byte, first int)
	// Hold keeps the rows in memory where they are until Close, or no longer if hold is false.
	Hold(hold bool)
	// Locate writes to rows which row in memory each node has, or NoRow. Unless rows are held, they
	// may have moved since: Gather finds them in any case.
	Locate(nodes []layout.NodeID, rows []uint32) error
	// Behind returns what reads the rows that are not in memory.
	Behind() Rows
}

// StoredRows are Rows that can stay in memory as they are stored; *rowfile.Reader does.
type StoredRows interface {
	GatherStored(ctx context.Context, nodes []layout.NodeID, at []uint32,
		room func(read, bytes int64) ([]byte, error)) (read bool, err error)
}

// LocatedOf returns f as Located, or nil if it is a cache whose rows change places.
func LocatedOf(f Features) Located {
	if c, ok := f.(*cached); ok {
		if _, fixed := c.mu.policy.(*static); !fixed {
			return nil
		}
	}
	l, _ := f.(Located)
	return l
}

// Memory returns the memory of all slots that have memory.
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

// Hold keeps the cache from giving memory back while hold is true.
func (f *cached) Hold(hold bool) {
	f.content.Lock()
	defer f.content.Unlock()
	f.held = hold
}

// Locate finds slots that hold the rows of nodes. Rows that are not in memory count as requests.
// Rows in memory count as requests and hits only while they are held, since otherwise Gather counts
// them.
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

// Behind returns what reads all rows.
func (f *cached) Behind() Rows { return f.rows }

// Memory returns the memory of all rows.
func (f *resident) Memory() (memory []byte, first int) { return f.arena.Bytes(), 0 }

// Hold makes Locate count rows while hold is true. The rows stay where they are in any case.
func (f *resident) Hold(hold bool) { f.held.Store(hold) }

// Locate finds all rows.
func (f *resident) Locate(nodes []layout.NodeID, rows []uint32) error {
	copy(rows, mem.View[uint32](mem.BytesOf(nodes)))
	if f.held.Load() {
		f.requests.Add(uint64(len(nodes)))
	}
	return nil
}

// Behind returns what reads all rows.
func (f *resident) Behind() Rows { return f.rows }

// Memory returns nil, since no row is in memory.
func (f *direct) Memory() (memory []byte, first int) { return nil, 0 }

// Hold does nothing.
func (f *direct) Hold(bool) {}

// Locate finds no row.
func (f *direct) Locate(nodes []layout.NodeID, rows []uint32) error {
	for i := range nodes {
		rows[i] = NoRow
	}
	f.requests.Add(uint64(len(nodes)))
	return nil
}

// Behind returns what reads all rows.
func (f *direct) Behind() Rows { return f.rows }
