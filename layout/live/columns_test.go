package live

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// columns compares the columns of the list of a node, in parts, with those of the whole list.
func columns(t *testing.T, session topology.Session, v layout.NodeID, weights []float32,
	times []int64) (parts int) {
	t.Helper()
	if err := session.Degrees(t.Context(), []layout.NodeID{v}, []uint32{0}); err != nil {
		t.Fatal(err)
	}
	for _, skips := range []bool{false, true} {
		skip := func(_ int, from uint32) bool { return skips && from%2 == 1 }
		at, n := 0, max(len(weights), len(times))
		err := session.(topology.ColumnReader).Columns(t.Context(), topology.Columns{
			Weights: weights != nil, Times: times != nil, Skip: skip},
			func(p topology.Part) error {
				parts++
				from, to := int(p.From), int(p.From)+max(len(p.Weights), len(p.Times))
				if p.List != 0 || from < at || !skips && from != at || to > n ||
					weights != nil && !slices.Equal(p.Weights, weights[from:to]) ||
					times != nil && !slices.Equal(p.Times, times[from:to]) {
					return fmt.Errorf("part of list %d from %d: %v %v, want %v %v", p.List,
						from, p.Weights, p.Times, weights, times)
				}
				at = to
				return nil
			})
		if err != nil || !skips && at != n {
			t.Errorf("node %d: %d of %d entries: %v", v, at, n, err)
		}
	}
	return parts
}

// TestColumnsOfHubs reads the weights and times of lists in many parts, with entries of levels
// before, between and after the entries of the base, and compares them with the merged list.
func TestColumnsOfHubs(t *testing.T) {
	r, fs := rand.New(rand.NewPCG(4, 4)), vfs.NewMem()
	h := &trial{T: t, fs: fs, r: r}
	text := func(n, first, step int) string {
		b := &strings.Builder{}
		fmt.Fprintln(b, "src,dst,weight,time")
		for i := range n {
			fmt.Fprintf(b, "%d,%d,%d,%d\n", first+i*step, 7+i%2, r.IntN(9), r.IntN(1e6))
		}
		return b.String()
	}
	h.write("e.csv", text(20000, 300, 1))
	opt := h.options(false, true, true)
	opt.Out = "s"
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	for _, some := range []string{text(300, 0, 1), text(4000, 250, 6), text(9, 20290, 1)} {
		h.write("e.csv", some)
		if _, err := Append(t.Context(), fs, "s", h.options(false, true, true)); err != nil {
			t.Fatal(err)
		}
	}
	h.write("e.csv", "src,dst\n300,7\n12001,8\n12001,7\n8000,7\n8001,8\n20299,8\n")
	if _, err := Delete(t.Context(), fs, "s", Deletion{
		Options: h.options(false, false, false)}); err != nil {
		t.Fatal(err)
	}
	s, dev := mustOpenOn(t, fs, "s")
	defer dev.Close()
	for _, resident := range []bool{false, true} {
		top, err := topology.Open(t.Context(), s, dev, layout.In, topology.Options{
			Resident: resident, Weights: true, Times: true})
		if err != nil {
			t.Fatal(err)
		}
		session, most := top.NewSession(), 0
		for v := range layout.NodeID(top.Nodes()) {
			if v%500 > 10 {
				continue
			}
			l, err := session.Lists(t.Context(), []layout.NodeID{v})
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, columns(t, session, v, slices.Clone(l.Weights),
				slices.Clone(l.Times)))
		}
		if most < 4 {
			t.Errorf("the longest list came in %d parts", most)
		}
		session.Release()
		if err := top.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
