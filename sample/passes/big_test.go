package passes

import (
	"context"
	"os"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/layout/topology"
	"gdb/sample"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestBig(t *testing.T) {
	dir := os.Getenv("BIG")
	if dir == "" {
		t.Skip()
	}
	ctx := context.Background()
	st, err := layout.Open(ctx, vfs.Default, dir)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		t.Fatal(err)
	}
	topo, err := topology.Open(ctx, st, dev, layout.In, topology.Options{CacheBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var seeds []sample.NodeID
	for i := range 42000 {
		seeds = append(seeds, sample.NodeID(i*397+11))
	}
	for r := range 2 {
		w, ok, err := topology.NewWindows(topo, 128<<20)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		g, err := New(Config{Windows: w, Order: func(e uint64) (*sample.Order, error) {
			return sample.EpochOrder(seeds, 3, e, 1000)
		}, PerEpoch: 42, End: 84, Workers: 2, Room: 512 << 20,
			Sampler: func(t topology.Reader) (*sample.Sampler, error) {
				return sample.NewSampler([]topology.Reader{t}, sample.Config{Fanout: []int{10, 10, 10}, Seed: uint64(r)})
			}})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		var d sample.Dense
		edges := 0
		for i := range uint64(42) {
			if ok, err := g.Take(ctx, 0, i, &d); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if edges += len(d.Nbrs); i == 0 {
				t.Log("first", time.Since(begun), len(g.drawn), g.room.Bytes()>>20, w.Count())
			}
		}
		t.Log(time.Since(begun), edges, w.Stats())
		g.Close()
	}
}
