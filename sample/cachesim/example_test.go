package cachesim_test

import (
	"context"
	"fmt"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/cachesim"
	"gdb/sample/rowcache"
)

// ExampleRun replays three batches through two caches that have room for two rows of four floats.
func ExampleRun() {
	var record cachesim.Record
	defer func() { _ = record.Close() }()
	for _, batch := range [][]sample.NodeID{{1, 2}, {3, 1}, {2, 1}} {
		if err := record.Add(batch); err != nil {
			fmt.Println(err)
			return
		}
	}
	lru, err := cachesim.ByName("lru", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	bytes := int64(0)
	for rowcache.RowsIn(bytes, 4, 0) < 2 {
		bytes++
	}
	results, err := cachesim.Run(context.Background(), record.Trace(4),
		[]cachesim.Policy{lru, cachesim.Belady},
		[]cachesim.Capacity{{Bytes: bytes, Dim: 4}}, mem.NewBudget(1<<20))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results {
		fmt.Println(r.Policy, r.Hits, "hits of", r.Requests, "requests")
	}
	// Output:
	// lru 1 hits of 6 requests
	// belady 3 hits of 6 requests
}
