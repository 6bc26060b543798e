// Package rowcache gathers rows of features by node: from disk (NewDirect), from memory that holds
// all rows (NewResident), or through a cache of some rows (New), whose Policy chooses them. Which
// rows are kept changes what is read and how long it takes, but no bit of what is gathered. FindHot
// finds the nodes whose rows a static cache keeps. A slot is the place of one row in a cache.
//
// Staged reads rows before batches ask for them: the rows of many batches in one pass over the
// file, in its order, instead of row by row.
//
// CopyRows copies rows in memory by their numbers. Rows of a table that is far larger than the
// caches of the CPU come from memory, and each copy waits for it. So rows are prefetched, and
// results that are too large for the caches are written past them.
package rowcache

import (
	"context"
	"sync"

	"gdb/internal/bug"
	"gdb/kv"
	"gdb/layout"
)

// Features gathers rows of one feature file, from disk or a cache. Any goroutine may use it. Values
// of rows do not depend on the policy.
type Features interface {
	// Dim returns the number of values in a row.
	Dim() int
	// Gather writes the row of nodes[i] to out[i*Dim:].
	Gather(ctx context.Context, nodes []layout.NodeID, out []float32) error
	// Lent returns the rows of all nodes, by node, for batches that refer to rows there instead of
	// holding copies. It is nil if batches hold copies.
	Lent() []float32
	Stats() Stats
	Close() error
}

// Stats are monotonic counters of a cache.
type Stats struct {
	Policy    string
	Capacity  int64 // bytes
	Used      int64 // bytes
	Requests  uint64
	Hits      uint64
	Evicted   uint64
	BytesRead uint64 // from disk
}

// Rows reads the rows of a feature file, as *rowfile.Reader does. Staged rows are read from memory,
// and caches are measured over rows that take no time to read.
type Rows interface {
	Meta() kv.RowsMeta
	// GatherParts writes the row of nodes[i] to out[at[i]*Dim:]; at nil means at[i] = i. If arrived
	// is not nil, it may be called once some rows are in out while others are still read, with
	// node<<32 | index in nodes for each; then it is called for all of them. There is one such call
	// at a time, and none after GatherParts returns.
	GatherParts(ctx context.Context, nodes []layout.NodeID, at []uint32, out []float32,
		arrived func(keys []uint64)) error
	// GatherStored leaves rows in memory as they are stored, if they can be used so: see
	// rowfile.Reader.
	GatherStored(ctx context.Context, nodes []layout.NodeID, at []uint32,
		room func(read, bytes int64) ([]byte, error)) (read bool, err error)
	Scan(ctx context.Context, first layout.NodeID, n int, out []float32) error
	BytesRead() uint64
}

// copyRowsMin is the least number of bytes for which another goroutine that copies is worth it.
const copyRowsMin = 1 << 20

// Parallel calls work with consecutive parts of [0, n) on up to threads goroutines, and returns
// when all are done. bytes is how many bytes are copied in all.
func Parallel(n, threads, bytes int, work func(first, end int)) {
	threads = max(1, min(threads, n, bytes/copyRowsMin))
	var wg sync.WaitGroup
	for t := 1; t < threads; t++ {
		wg.Go(func() {
			defer bug.Catch()
			work(n*t/threads, n*(t+1)/threads)
		})
	}
	work(0, n/threads)
	wg.Wait()
}
