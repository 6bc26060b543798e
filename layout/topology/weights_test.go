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

// weightsOf collects the weights of the lists that a session found last, and checks the order of
// the parts.
func weightsOf(t fatal, s topology.WeightReader, n int) [][]float32 {
	t.Helper()
	got := make([][]float32, n)
	err := s.Weights(context.Background(), func(i int, from uint32, w []float32) error {
		switch {
		case len(w) == 0:
			t.Fatalf("list %d: an empty part", i)
		case int(from) != len(got[i]):
			t.Fatalf("list %d: a part from %d after %d entries", i, from, len(got[i]))
		}
		got[i] = append(got[i], w...)
		return nil
	})
	if err != nil {
		t.Fatalf("weights: %v", err)
	}
	return got
}

// checkWeights compares weights with those in memory, between Degrees and Gather.
func checkWeights(t fatal, s topology.Session, lists [][]listfile.Edge, nodes []layout.NodeID,
	r *rand.Rand) {
	t.Helper()
	deg := make([]uint32, len(nodes))
	if err := s.Degrees(context.Background(), nodes, deg); err != nil {
		t.Fatalf("degrees: %v", err)
	}
	for i, got := range weightsOf(t, s.(topology.WeightReader), len(nodes)) {
		want := lists[nodes[i]]
		if len(got) != len(want) {
			t.Fatalf("node %d has %d weights, want %d", nodes[i], len(got), len(want))
		}
		for j, w := range got {
			if w != want[j].Weight {
				t.Fatalf("node %d entry %d weighs %v, want %v", nodes[i], j, w, want[j].Weight)
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
		t.Fatalf("gather after weights: %v", err)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("gather after weights: entry %d is %d, want %d", i, got[i], want[i])
		}
	}
}

func TestWeightsAreRefusedWithoutThem(t *testing.T) {
	none := func(int, uint32, []float32) error { return nil }
	g := layouttest.Random(1, 50, 100)
	s := layouttest.Build(t, vfs.NewMem(), "plain", g)
	_, err := topology.Open(t.Context(), s, layouttest.Device(t), layout.In,
		topology.Options{Resident: true, Weights: true})
	if !errors.Is(err, topology.ErrNoWeights) {
		t.Errorf("resident: %v", err)
	}
	ses := mustTopology(t, s, layout.In, topology.Options{}).NewSession()
	defer ses.Release()
	if err := ses.(topology.WeightReader).Weights(t.Context(), none); !errors.Is(err,
		topology.ErrNoWeights) {
		t.Errorf("paged: %v", err)
	}
	g.Weighted = true
	s = layouttest.Build(t, vfs.NewMem(), "weighted", g)
	ses = mustTopology(t, s, layout.In, topology.Options{Resident: true}).NewSession()
	err = ses.(topology.WeightReader).Weights(t.Context(), none)
	if err == nil || !strings.Contains(err.Error(), "without the weights") {
		t.Errorf("resident, not asked for: %v", err)
	}
}

// An error of the caller ends the reading and comes back as it is, not as damage of a block.
func TestWeightsEndWithTheCallersError(t *testing.T) {
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
		err := ses.(topology.WeightReader).Weights(t.Context(), func(int, uint32, []float32) error {
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

// The resident reader counts its weights: 4 bytes an edge, as announced.
func TestResidentWeightsAreCounted(t *testing.T) {
	g := layouttest.Random(2, 300, 50000)
	g.Weighted = true
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	used := func(weights bool) int64 {
		budget := mem.NewBudget(0)
		topo := mustTopology(t, s, layout.In, topology.Options{Resident: true,
			Weights: weights, Budget: budget})
		if st := topo.Stats(); st.Bytes > budget.Used() || st.Bytes*2 < budget.Used() {
			t.Errorf("stats say %d bytes, %d are held", st.Bytes, budget.Used())
		}
		return budget.Used()
	}
	const rounding = 4096
	if more := used(true) - used(false); more < 4*50000 || more > 4*50000+rounding {
		t.Errorf("the weights of 50000 edges take %d bytes", more)
	}
}
