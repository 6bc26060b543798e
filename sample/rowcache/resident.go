package rowcache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"gdb/internal/mem"
	"gdb/layout"
)

// Resident holds all rows in memory.
type Resident struct {
	rows     Rows
	arena    *mem.Arena
	table    []float32
	dim      int
	threads  int
	requests atomic.Uint64
	held     atomic.Bool // see Located
	lent     bool
}

// NewResident reads all rows and returns features that gather from memory. They take 4 bytes per
// value of the graph, counted in budget. Gather copies with up to threads goroutines. The caller
// closes rows.
func NewResident(ctx context.Context, rows Rows, nodes uint64, threads int,
	budget *mem.Budget) (*Resident, error) {
	f := &Resident{rows: rows, dim: rows.Meta().Dim, threads: threads}
	var err error
	f.arena, err = mem.NewArena(budget, "resident features", int64(nodes)*int64(f.dim)*4)
	if err != nil {
		return nil, err
	}
	f.table = mem.View[float32](f.arena.Bytes())
	stop := f.arena.Populate()
	err = f.load(ctx, nodes)
	stop()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sample: load features: %w", err), f.arena.Free())
	}
	return f, nil
}

// load reads all rows to memory.
func (f *Resident) load(ctx context.Context, nodes uint64) error {
	return load(ctx, int(nodes), f.dim, func(ctx context.Context, first, n int) error {
		part := f.table[uint64(first)*uint64(f.dim):][:uint64(n)*uint64(f.dim)]
		return f.rows.Scan(ctx, layout.NodeID(first), n, part)
	})
}

// Dim returns the number of values in a row.
func (f *Resident) Dim() int { return f.dim }

// Gather copies the rows of nodes to out.
func (f *Resident) Gather(ctx context.Context, nodes []layout.NodeID, out []float32) error {
	f.requests.Add(uint64(len(nodes)))
	bytes := len(nodes) * f.dim * 4
	Parallel(len(nodes), f.threads, bytes, func(first, end int) {
		CopyRows(out[first*f.dim:], f.table, f.dim, nodes[first:end], nil, bytes)
	})
	return ctx.Err()
}

// Table returns all rows, (nodes, Dim), for others to read. It is valid until Close.
func (f *Resident) Table() []float32 { return f.table }

// Lend makes batches refer to the rows from now on, instead of holding copies.
func (f *Resident) Lend() { f.lent = true }

// Lent returns all rows if they are lent, else nil.
func (f *Resident) Lent() []float32 {
	if !f.lent {
		return nil
	}
	return f.table
}

// Stats returns counters in which every request is a hit.
func (f *Resident) Stats() Stats {
	n := f.requests.Load()
	bytes := int64(len(f.table)) * 4
	return Stats{Policy: "all", Capacity: bytes, Used: bytes, Requests: n, Hits: n,
		BytesRead: f.rows.BytesRead()}
}

// Close frees the memory.
func (f *Resident) Close() error { return f.arena.Free() }

// Direct reads every row from disk.
type Direct struct {
	rows     Rows
	requests atomic.Uint64
}

// NewDirect returns features without a cache. The caller closes rows.
func NewDirect(rows Rows) *Direct { return &Direct{rows: rows} }

// Dim returns the number of values in a row.
func (f *Direct) Dim() int { return f.rows.Meta().Dim }

// Gather reads the rows of nodes to out.
func (f *Direct) Gather(ctx context.Context, nodes []layout.NodeID, out []float32) error {
	f.requests.Add(uint64(len(nodes)))
	return f.rows.GatherParts(ctx, nodes, nil, out, nil)
}

// Lent returns nil, since no row is in memory.
func (f *Direct) Lent() []float32 { return nil }

// Stats returns counters in which every request is a miss.
func (f *Direct) Stats() Stats {
	return Stats{Policy: "none", Requests: f.requests.Load(), BytesRead: f.rows.BytesRead()}
}

// Close does nothing, since the caller owns the rows.
func (f *Direct) Close() error { return nil }

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
