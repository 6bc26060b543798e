package rowcache

import (
	"gdb/internal/mem"
	"gdb/layout"
)

// NoRow stands for a row that is not in memory.
const NoRow = 1<<32 - 1

// Located are Features whose rows stay where they are, and which say where that is, for others to
// read them in place: direct, resident and static ones.
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

// Memory returns the memory of all slots that have memory.
func (f *Cache) Memory() (memory []byte, first int) {
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
func (f *Cache) Hold(hold bool) {
	f.content.Lock()
	defer f.content.Unlock()
	f.held = hold
}

// Locate finds slots that hold the rows of nodes. Rows that are not in memory count as requests.
// Rows in memory count as requests and hits only while they are held, since otherwise Gather counts
// them.
func (f *Cache) Locate(nodes []layout.NodeID, rows []uint32) error {
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
func (f *Cache) Behind() Rows { return f.rows }

// Memory returns the memory of all rows.
func (f *Resident) Memory() (memory []byte, first int) { return f.arena.Bytes(), 0 }

// Hold makes Locate count rows while hold is true. The rows stay where they are in any case.
func (f *Resident) Hold(hold bool) { f.held.Store(hold) }

// Locate finds all rows.
func (f *Resident) Locate(nodes []layout.NodeID, rows []uint32) error {
	copy(rows, mem.View[uint32](mem.BytesOf(nodes)))
	if f.held.Load() {
		f.requests.Add(uint64(len(nodes)))
	}
	return nil
}

// Behind returns what reads all rows.
func (f *Resident) Behind() Rows { return f.rows }

// Memory returns nil, since no row is in memory.
func (f *Direct) Memory() (memory []byte, first int) { return nil, 0 }

// Hold does nothing.
func (f *Direct) Hold(bool) {}

// Locate finds no row.
func (f *Direct) Locate(nodes []layout.NodeID, rows []uint32) error {
	for i := range nodes {
		rows[i] = NoRow
	}
	f.requests.Add(uint64(len(nodes)))
	return nil
}

// Behind returns what reads all rows.
func (f *Direct) Behind() Rows { return f.rows }
