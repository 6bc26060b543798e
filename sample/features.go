package sample

import "context"

// Features gathers rows of one feature file, from disk or a cache. It may be used from any
// goroutine. Row values do not depend on the policy.
type Features interface {
	// Dim is the number of values in a row.
	Dim() int
	// Gather writes the row of nodes[i] to out[i*Dim:].
	Gather(ctx context.Context, nodes []NodeID, out []float32) error
	Stats() CacheStats
	Close() error
}

// CacheStats are monotonic counters of a cache.
type CacheStats struct {
	Policy    string
	Capacity  int64 // bytes
	Used      int64 // bytes
	Requests  uint64
	Hits      uint64
	Evicted   uint64
	BytesRead uint64 // from disk
}
