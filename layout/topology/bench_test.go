package topology_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/internal/testgraph"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// benchStore writes in-lists of 2^20 nodes and 8 M edges, and features of 128 f32 for 2^17.
func benchStore(b *testing.B, blockBytes int) *layout.Store {
	b.Helper()
	const nodes, edges = 1 << 20, 8 << 20
	fs, dir := vfs.Default, b.TempDir()
	pairs := make([]uint64, 0, edges)
	for _, e := range testgraph.Random(1, nodes, edges) {
		pairs = append(pairs, uint64(e.Dst)<<32|uint64(e.Src))
	}
	slices.Sort(pairs)
	if err := fs.MkdirAll(fs.PathJoin(dir, "topology"), 0o755); err != nil {
		b.Fatal(err)
	}
	w, err := listfile.NewWriter(fs, fs.PathJoin(dir, "topology", "in"),
		listfile.Spec{Nodes: nodes, BlockBytes: blockBytes})
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range pairs {
		if err := w.AddEdge(layout.NodeID(p>>32),
			listfile.Edge{Nbr: layout.NodeID(p)}); err != nil {
			b.Fatal(err)
		}
	}
	files, err := w.Finish()
	if err != nil {
		b.Fatal(err)
	}
	return layout.NewStore(fs, dir, &kv.Meta{Nodes: nodes, Edges: edges, BlockBytes: blockBytes,
		Directions: []string{"in"}, Coded: true, Files: files})
}

// frontier draws n nodes, and up to 10 positions of each.
func frontier(n int, nodes uint64) []layout.NodeID {
	r := rand.New(rand.NewPCG(7, 7))
	out := make([]layout.NodeID, n)
	for i := range out {
		out[i] = layout.NodeID(r.Uint64N(nodes))
	}
	return out
}

func BenchmarkSession(b *testing.B) {
	s, ctx := benchStore(b, 4096), context.Background()
	for _, c := range []struct {
		name string
		opt  topology.Options
	}{
		{"reader=plain", topology.Options{Resident: true}},
		{"reader=packed", topology.Options{Resident: true, Form: topology.Packed}},
		{"reader=compact", topology.Options{Resident: true, Form: topology.Compact}},
		{"reader=paged,cache=all", topology.Options{CacheBytes: 1 << 30}},
		{"reader=paged,cache=8MiB", topology.Options{CacheBytes: 8 << 20}},
		{"reader=paged,cache=1MiB", topology.Options{CacheBytes: 1 << 20}},
	} {
		b.Run(c.name, func(b *testing.B) {
			topo := mustTopology(b, s, layout.In, c.opt)
			ses := topo.NewSession()
			defer ses.Release()
			nodes := frontier(20000, s.Meta().Nodes)
			deg, off := make([]uint32, len(nodes)), []uint32{0}
			if err := ses.Degrees(ctx, nodes, deg); err != nil {
				b.Fatal(err)
			}
			r, pos := rand.New(rand.NewPCG(1, 1)), []uint32{}
			for _, d := range deg {
				for range min(d, 10) {
					pos = append(pos, r.Uint32N(d))
				}
				off = append(off, uint32(len(pos)))
			}
			out := make([]layout.NodeID, len(pos))
			b.ReportAllocs()
			for b.Loop() {
				if err := ses.Degrees(ctx, nodes, deg); err != nil {
					b.Fatal(err)
				}
				if err := ses.Gather(ctx, off, pos, out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(pos))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
}

func BenchmarkLoadResident(b *testing.B) {
	for _, block := range []int{4096, 65536} {
		b.Run(fmt.Sprintf("block=%d", block), func(b *testing.B) {
			s := benchStore(b, block)
			b.SetBytes(s.Meta().Files[0].Size)
			for b.Loop() {
				topo, err := topology.Open(context.Background(), s, layouttest.Device(b), layout.In,
					topology.Options{Resident: true})
				if err != nil {
					b.Fatal(err)
				}
				if err := topo.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
