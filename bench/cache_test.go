package bench

import (
	"context"
	"errors"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/mem"
	"gdb/layout/layouttest"
	"gdb/sample/cachesim"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestCache(t *testing.T) {
	g := layouttest.Random(1, 500, 4000)
	g.Dim, g.Splits = 8, layouttest.Splits(500)
	g.Features = layouttest.Features(500, 8)
	fs := vfs.NewMem()
	opt := CacheOptions{Epochs: 2, Workload: Workload{Store: layouttest.Build(t, fs, "store", g),
		Device: mustDevice(t), Fanout: []int{3, 2}, Batch: 20, Seed: 1}}
	r, err := Cache(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	want := append(cachesim.PolicyNames(), "khop-2", "khop-4", "khop-8")
	if r.Bench != "cache" || len(r.Rows) != 4*len(want) {
		t.Fatalf("%d rows of %s", len(r.Rows), r.Bench)
	}
	for i, row := range r.Rows {
		ratio := row["hit_ratio"].(float64)
		if row["policy"] != want[i/4] || ratio < 0 || ratio > 1 || row["capacity_bytes"] !=
			[]int64{800, 1600, 3200, 6400}[i%4] {
			t.Errorf("row %d: %v", i, row)
		}
		if row["bytes_read"].(uint64)%(4*8) != 0 || row["bytes_read"].(uint64) == 0 {
			t.Errorf("row %d: %v: not the bytes of whole rows", i, row)
		}
		if row["seconds"].(float64) <= 0 || row["ns_per_request"].(float64) <= 0 {
			t.Errorf("row %d: %v: took no time", i, row)
		}
	}
	opt.Memory = programBytes + 5000
	var full *mem.LimitError
	if _, err := Cache(context.Background(), opt); !errors.As(err, &full) {
		t.Errorf("in too little memory: %v", err)
	}
}

func mustDevice(t *testing.T) blockdev.Device {
	t.Helper()
	return devtest.Open(t, blockdev.Options{Backend: blockdev.Memory})
}
