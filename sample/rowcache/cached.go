package rowcache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/rowfile"
)

// Options configure a feature cache.
type Options struct {
	// Bytes is the memory of the cache, including everything: per cached row 4*Dim for the values,
	// 16 to 32 for the index, 4 for the node, and what the policy needs.
	Bytes int64
	// Threads bounds the goroutines that copy rows. Default 1.
	Threads int
	// Budget counts the memory; nil counts none.
	Budget *mem.Budget
	// Sweep, if not nil, is the file from which the rows that the policy starts with are loaded
	// while rows are already gathered; a row that is not loaded yet is missed. Otherwise New loads
	// them before it returns.
	Sweep *rowfile.Reader
}

// Cache keeps some rows in memory, as its policy says.
type Cache struct {
	rows    Rows
	dim     int
	threads int
	bytes   int64
	arena   *mem.Arena
	budget  *mem.Budget
	heap    mem.Account // the policy's memory
	values  []float32   // row of each slot; guarded by content

	// content guards which row a slot holds: it is shared while rows are copied from and to slots,
	// exclusive while slots are given to other rows. It is taken before filling, and filling before
	// mu.
	content sync.RWMutex
	// filling is held while rows are copied to pending slots, which nobody reads.
	filling sync.Mutex
	held    bool // rows must stay where they are: see Located; guarded by content

	mu struct {
		sync.Mutex
		policy Policy
		index  slotIndex
		held   []layout.NodeID // node of each used slot
		used   int             // number of slots used so far
		slots  int             // slots with memory; fewer than len(held) once memory was given back
		free   []*lookup       // scratch memory of earlier gathers
	}
	firstValue int         // where values begin in arena, in bytes
	endRelief  func()      // stops relief calls; nil without a budget
	background *background // nil unless rows are loaded in the background

	requests, hits, evicted atomic.Uint64
}

// lookup is the scratch memory of one gather: where the hits are, and which nodes were missed.
type lookup struct {
	slots, to []uint32 // slots of hits, and their row numbers in the output
	missed    []layout.NodeID
	at        []uint32 // row numbers of the missed in the output
	keep      []uint32 // slot+1 that each missed row goes to; 0 if it is not kept
	arrivals
	account mem.Account
}

func (l *lookup) bytes() int64 {
	return 4 * int64(cap(l.slots)+cap(l.to)+cap(l.missed)+cap(l.at)+cap(l.keep)+cap(l.rows))
}

// LookupBytes returns what a lookup of a number of nodes takes, if some are found and some are not.
func LookupBytes(nodes int64) int64 { return (16 + 24) * nodes }

// New returns features behind a cache whose rows policy chooses. The caller closes rows.
func New(ctx context.Context, rows Rows, policy Policy, opt Options) (*Cache, error) {
	f := &Cache{rows: rows, dim: rows.Meta().Dim, threads: opt.Threads, bytes: opt.Bytes,
		budget: opt.Budget}
	slots := RowsIn(opt.Bytes, f.dim, policy.SlotBytes())
	f.heap = mem.NewAccount(opt.Budget, "feature cache policy")
	if err := f.heap.Add(int64(slots) * int64(policy.SlotBytes())); err != nil {
		return nil, err
	}
	index, values := slotIndexBytes(slots), int64(slots)*int64(f.dim)*4
	arena, err := mem.NewArena(opt.Budget, "feature cache", index+values+int64(slots)*4)
	if err != nil {
		f.heap.Release()
		return nil, err
	}
	f.arena = arena
	b := arena.Bytes()
	f.mu.policy = policy
	f.mu.index = newSlotIndex(mem.View[uint64](b[:index]))
	f.values = mem.View[float32](b[index : index+values])
	f.mu.held = mem.View[layout.NodeID](b[index+values:])
	f.mu.slots, f.firstValue = len(f.mu.held), int(index)
	if err := f.preload(ctx, policy.Start(f.mu.held), opt.Sweep); err != nil {
		return nil, errors.Join(fmt.Errorf("sample: load feature cache: %w", err), f.Close())
	}
	if opt.Budget != nil {
		f.endRelief = opt.Budget.Relieve(f.shrink)
	}
	return f, nil
}

// shrink gives back at least n bytes of values, or all: those of the last slots, where a static
// cache holds its coldest rows. The policy is not told. Rows that it places there later are not
// kept, and are missed when they are asked for again.
func (f *Cache) shrink(n int64) bool {
	f.content.Lock()
	defer f.content.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	row := int64(f.dim) * 4
	if f.held {
		return false
	}
	left := max(0, f.mu.slots-int((n+hugeBytes)/row)-1)
	if left == f.mu.slots {
		return false
	}
	for s := left; s < min(f.mu.slots, f.mu.used); s++ {
		f.mu.index.Remove(f.mu.held[s])
	}
	first, end := f.firstValue+left*int(row), f.firstValue+f.mu.slots*int(row)
	f.mu.slots = left
	return f.arena.Discard(first, end) == nil
}

// hugeBytes is given back beyond n, so that shrink is not called for every small need.
const hugeBytes = 2 << 20

// RowsIn returns how many rows a cache of this many bytes holds, with their index, whose size is a
// power of two. slotBytes is what the policy takes per slot.
func RowsIn(bytes int64, dim, slotBytes int) int {
	row, best := int64(4*dim+4+slotBytes), int64(0)
	for entries := int64(2); 8*entries < bytes && entries <= 1<<32; entries *= 2 {
		best = max(best, min(entries/2, (bytes-8*entries)/row, slotMost))
	}
	return int(best)
}

// Bytes returns the memory of a cache of this number of rows, in bytes. It is the inverse of
// RowsIn.
func Bytes(rows, dim, slotBytes int) int64 {
	return slotIndexBytes(rows) + int64(rows)*int64(4*dim+4+slotBytes)
}

// Dim returns the number of values in a row.
func (f *Cache) Dim() int { return f.dim }

// Gather writes the rows of nodes to out. It reads rows that are not cached in one batch; while
// they are read, it copies the cached rows, gives slots to the rows being read, and copies these to
// their slots as they arrive. So only the lookup comes before the reads, and nothing after them.
func (f *Cache) Gather(ctx context.Context, nodes []layout.NodeID, out []float32) error {
	if err := f.background.failed(); err != nil {
		return err
	}
	f.content.RLock()
	l := f.lookUp(nodes)
	defer f.put(l)
	bytes := l.bytes()
	wait := f.readMissed(ctx, l, out)
	f.tell(l, nodes)
	f.copyHits(l, out)
	f.content.RUnlock()
	held := l.account.AtLeast(bytes) // may shrink the cache, so not while it is locked
	if held == nil && len(l.missed) > 0 {
		f.place(l)
		f.fill(l, out, l.place())
	}
	err := wait()
	if held != nil {
		return held
	}
	f.requests.Add(uint64(len(nodes)))
	f.hits.Add(uint64(len(l.slots)))
	if err != nil {
		return err
	}
	return ctx.Err()
}

// readMissed starts to read rows that are not cached. The caller calls wait.
func (f *Cache) readMissed(ctx context.Context, l *lookup, out []float32) (wait func() error) {
	if len(l.missed) == 0 {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() {
		defer bug.Catch()
		done <- f.read(ctx, l, out)
	}()
	return func() error { return <-done }
}

// read reads rows that are not cached, and copies them to their slots as they arrive.
func (f *Cache) read(ctx context.Context, l *lookup, out []float32) error {
	inParts := false
	err := f.rows.GatherParts(ctx, l.missed, l.at, out, func(keys []uint64) {
		inParts = true
		f.fill(l, out, l.arrive(len(keys), func(k int) uint32 { return uint32(keys[k]) }))
	})
	if err != nil || inParts {
		return err
	}
	f.fill(l, out, l.arrive(len(l.missed), func(k int) uint32 { return uint32(k) }))
	return nil
}

// lookUp finds which nodes are cached.
func (f *Cache) lookUp(nodes []layout.NodeID) *lookup {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &lookup{account: mem.NewAccount(f.budget, "lookups of the feature cache")}
	if n := len(f.mu.free); n > 0 {
		l, f.mu.free = f.mu.free[n-1], f.mu.free[:n-1]
	}
	l.slots, l.to, l.missed, l.at = l.slots[:0], l.to[:0], l.missed[:0], l.at[:0]
	for i, v := range nodes {
		if s, ok := f.mu.index.Find(v); ok && s&slotPending == 0 {
			l.slots, l.to = append(l.slots, s), append(l.to, uint32(i))
		} else {
			l.missed, l.at = append(l.missed, v), append(l.at, uint32(i))
		}
	}
	l.keep = append(l.keep[:0], make([]uint32, len(l.missed))...)
	l.begin(len(l.missed))
	return l
}

// tell tells the policy which rows were asked for and which were found.
func (f *Cache) tell(l *lookup, nodes []layout.NodeID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.policy.Begin(nodes)
	f.mu.policy.Hits(l.slots)
}

// put keeps the scratch memory for the next gather.
func (f *Cache) put(l *lookup) {
	f.mu.Lock()
	f.mu.free = append(f.mu.free, l)
	f.mu.Unlock()
}

func (f *Cache) copyHits(l *lookup, out []float32) {
	n := len(l.slots)
	Parallel(n, f.threads, n*f.dim*4, func(first, end int) {
		CopyRows(out, f.values, f.dim, l.slots[first:end], l.to[first:end], n*f.dim*4)
	})
}

// Lent returns nil, since rows leave the cache.
func (f *Cache) Lent() []float32 { return nil }

// Stats returns the counters of the cache.
func (f *Cache) Stats() Stats {
	f.mu.Lock()
	used, name := f.mu.used, f.mu.policy.Name()
	f.mu.Unlock()
	return Stats{Policy: name, Capacity: f.bytes, Used: int64(used * f.dim * 4),
		Requests: f.requests.Load(), Hits: f.hits.Load(), Evicted: f.evicted.Load(),
		BytesRead: f.rows.BytesRead()}
}

// Close frees the memory. It does not close the rows.
func (f *Cache) Close() error {
	f.background.stop()
	if f.endRelief != nil {
		f.endRelief()
	}
	for _, l := range f.mu.free {
		l.account.Release()
	}
	f.heap.Release()
	return f.arena.Free()
}
