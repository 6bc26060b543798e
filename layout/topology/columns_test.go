package topology_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// columnsOf collects columns of the lists that a session found last, and checks the order of the
// parts.
func columnsOf(t fatal, s topology.Session, want topology.Columns, n int) (weights [][]float32,
	times [][]int64) {
	t.Helper()
	weights, times = make([][]float32, n), make([][]int64, n)
	err := s.(topology.ColumnReader).Columns(context.Background(), want,
		func(p topology.Part) error {
			size, i := max(len(p.Weights), len(p.Times)), p.List
			switch {
			case size == 0:
				t.Fatalf("list %d: an empty part", i)
			case want.Weights && len(p.Weights) != size || want.Times && len(p.Times) != size:
				t.Fatalf("list %d: %d weights and %d times", i, len(p.Weights), len(p.Times))
			case int(p.From) != max(len(weights[i]), len(times[i])):
				t.Fatalf("list %d: a part from %d after %d weights and %d times", i, p.From,
					len(weights[i]), len(times[i]))
			}
			weights[i], times[i] = append(weights[i], p.Weights...), append(times[i], p.Times...)
			return nil
		})
	if err != nil {
		t.Fatalf("columns: %v", err)
	}
	return weights, times
}

// checkColumns compares weights and times with those in memory, between Degrees and Gather: of all
// lists, or of every third.
func checkColumns(t fatal, s topology.Session, g *layouttest.Graph, lists [][]listfile.Edge,
	nodes []layout.NodeID, r *rand.Rand) {
	t.Helper()
	deg := make([]uint32, len(nodes))
	if err := s.Degrees(context.Background(), nodes, deg); err != nil {
		t.Fatalf("degrees: %v", err)
	}
	columns := topology.Columns{Weights: g.Weighted, Times: g.Timed}
	if r.IntN(2) == 0 {
		columns.Skip = func(i int, _ uint32) bool { return i%3 != 0 }
	}
	weights, times := columnsOf(t, s, columns, len(nodes))
	for i, v := range nodes {
		want := lists[v]
		if columns.Skip != nil && i%3 != 0 {
			want = nil
		}
		if g.Weighted && len(weights[i]) != len(want) || g.Timed && len(times[i]) != len(want) {
			t.Fatalf("node %d has %d weights and %d times, want %d", v, len(weights[i]),
				len(times[i]), len(want))
		}
		for j, e := range want {
			if g.Weighted && weights[i][j] != e.Weight || g.Timed && times[i][j] != e.Time {
				t.Fatalf("node %d entry %d differs from %+v", v, j, e)
			}
		}
	}
	off, pos, want := []uint32{0}, []uint32{}, []layout.NodeID{}
	for i, v := range nodes {
		if deg[i] > 0 {
			p := r.IntN(int(deg[i]))
			pos, want = append(pos, uint32(p)), append(want, lists[v][p].Nbr)
		}
		off = append(off, uint32(len(pos)))
	}
	got := make([]layout.NodeID, len(pos))
	if err := s.Gather(context.Background(), off, pos, got); err != nil {
		t.Fatalf("gather after columns: %v", err)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("gather after columns: entry %d is %d, want %d", i, got[i], want[i])
		}
	}
}

func TestColumnsAreRefusedWithoutThem(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		opt  topology.Options
		want topology.Columns
		give func(g *layouttest.Graph)
	}{
		{"weights", topology.ErrNoWeights, topology.Options{Weights: true},
			topology.Columns{Weights: true}, func(g *layouttest.Graph) { g.Weighted = true }},
		{"times", topology.ErrNoTimes, topology.Options{Times: true},
			topology.Columns{Times: true}, func(g *layouttest.Graph) { g.Timed = true }},
	} {
		none := func(topology.Part) error { return nil }
		g := layouttest.Random(1, 50, 100)
		s := layouttest.Build(t, vfs.NewMem(), "plain", g)
		c.opt.Resident = true
		_, err := topology.Open(t.Context(), s, layouttest.Device(t), layout.In, c.opt)
		if !errors.Is(err, c.err) {
			t.Errorf("%s, resident: %v", c.name, err)
		}
		ses := mustTopology(t, s, layout.In, topology.Options{}).NewSession()
		err = ses.(topology.ColumnReader).Columns(t.Context(), c.want, none)
		if !errors.Is(err, c.err) {
			t.Errorf("%s, paged: %v", c.name, err)
		}
		ses.Release()
		c.give(&g)
		s = layouttest.Build(t, vfs.NewMem(), c.name, g)
		ses = mustTopology(t, s, layout.In, topology.Options{Resident: true}).NewSession()
		err = ses.(topology.ColumnReader).Columns(t.Context(), c.want, none)
		if err == nil || !strings.Contains(err.Error(), "without the "+c.name) {
			t.Errorf("%s, resident, not asked for: %v", c.name, err)
		}
		ses.Release()
	}
}

// An error of the caller ends the reading and comes back as it is, not as damage of a block.
func TestColumnsEndWithTheCallersError(t *testing.T) {
	g := layouttest.Random(2, 300, 9000)
	g.Weighted = true
	s, stop := layouttest.Build(t, vfs.NewMem(), "s", g), errors.New("enough")
	nodes, deg := make([]layout.NodeID, g.Nodes), make([]uint32, g.Nodes)
	for i := range nodes {
		nodes[i] = layout.NodeID(i)
	}
	for _, opt := range readers {
		opt.Weights = opt.Resident
		ses := mustTopology(t, s, layout.In, opt).NewSession()
		if err := ses.Degrees(t.Context(), nodes, deg); err != nil {
			t.Fatal(err)
		}
		calls := 0
		err := ses.(topology.ColumnReader).Columns(t.Context(), topology.Columns{Weights: true},
			func(topology.Part) error {
				if calls++; calls == 100 {
					return stop
				}
				return nil
			})
		if err != stop || calls != 100 {
			t.Errorf("%+v: error %v after %d calls", opt, err, calls)
		}
		ses.Release()
	}
}

// The resident reader counts what it holds of edges, as announced: 4 bytes for a weight, 8 for a
// time.
func TestResidentColumnsAreCounted(t *testing.T) {
	const edges, rounding = 50000, 4096
	g := layouttest.Random(2, 300, edges)
	g.Weighted, g.Timed = true, true
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	used := func(opt topology.Options) int64 {
		budget := mem.NewBudget(0)
		opt.Resident, opt.Budget = true, budget
		topo := mustTopology(t, s, layout.In, opt)
		if st := topo.Stats(); st.Bytes > budget.Used() || st.Bytes*2 < budget.Used() {
			t.Errorf("stats say %d bytes, %d are held", st.Bytes, budget.Used())
		}
		return budget.Used()
	}
	for width, opt := range map[int64]topology.Options{4: {Weights: true}, 8: {Times: true},
		12: {Weights: true, Times: true}} {
		more := used(opt) - used(topology.Options{})
		if more < width*edges || more > width*edges+2*rounding ||
			topology.AttributeBytes(s, opt) != width*edges {
			t.Errorf("%+v of %d edges takes %d bytes, %d announced", opt, edges, more,
				topology.AttributeBytes(s, opt))
		}
	}
}
