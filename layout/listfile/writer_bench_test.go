package listfile_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/layout"
	"gdb/layout/listfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func BenchmarkTopologyWriter(b *testing.B) {
	w, err := listfile.NewWriter(vfs.Default, vfs.Default.PathJoin(b.TempDir(), "in"),
		listfile.Spec{Nodes: 1 << 32})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		e := listfile.Edge{Nbr: layout.NodeID(n % 16)}
		if err := w.AddEdge(layout.NodeID(n/16), e); err != nil {
			b.Fatal(err)
		}
		n++
	}
	if _, err := w.Finish(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAddEdges codes 2^18 lists with degrees as R-MAT has them.
func BenchmarkAddEdges(b *testing.B) {
	const nodes = 1 << 22
	r, l := rand.New(rand.NewPCG(1, 1)), listfile.Lists{Off: []uint64{0}}
	for range 1 << 18 {
		n := min(int(math.Exp(r.NormFloat64()*2+1))+1, 1<<16)
		from := len(l.Nbrs)
		for range n {
			l.Nbrs = append(l.Nbrs, layout.NodeID(r.Uint32N(nodes)))
		}
		slices.Sort(l.Nbrs[from:])
		l.Off = append(l.Off, uint64(len(l.Nbrs)))
	}
	dir := vfs.Default.PathJoin(b.TempDir(), "in")
	for b.Loop() {
		w, err := listfile.NewWriter(vfs.Default, dir, listfile.Spec{Nodes: nodes})
		if err != nil {
			b.Fatal(err)
		}
		for i := range len(l.Off) - 1 {
			if err := w.AddEdges(layout.NodeID(i), &l, l.Off[i], l.Off[i+1], true); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Abort(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(l.Nbrs)), "ns/edge")
}
