package train

import (
	"bytes"
	"testing"

	"gdb/internal/dense"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/exact"
	"gdb/train/model"
	"gdb/train/run"
	"gdb/train/setting"
)

// TestLeastIsWhatABatchNeeds: besides what every run takes, the least memory is little more than a
// batch's features and the means of its first layer.
func TestLeastIsWhatABatchNeeds(t *testing.T) {
	notShort(t)
	s, c := mustBuild(t, layouttest.Skewed()), lawConfig()
	c.Cache, c.Hidden, c.Batch, c.Topology, c.Memory = "none", 256, 120, "resident", 1<<20
	for range 2 { // the first plan is for any batches
		_, err := MakePlan(t.Context(), s, mustDevice(t), c)
		if err == nil {
			break
		}
		c.Memory = leastOf(err)
	}
	p, err := MakePlan(t.Context(), s, mustDevice(t), c)
	if err != nil {
		t.Fatal(err)
	}
	dim := s.Meta().Features[0].Dim
	rows, means := p.RowBytes(), p.BatchInner*4*int64(dim)
	b := &dense.Lists{NodeIDOffsets: []uint32{0, uint32(p.BatchNodes - p.BatchInner),
		uint32(p.BatchNodes) - 60, uint32(p.BatchNodes) - 60, uint32(p.BatchNodes)},
		NbrOffsets: make([]uint32, p.BatchInner+1)}
	kernels := model.Of(&c).Spec(model.Of(&c).Dims(dim, 5)).StepCost(b, false, model.Growth{Num: 1,
		Den: 1, Parts: 1},
		c.Threads, 6).KernelBytes
	constant := mem.HeapCost(kernels + exact.HeapBytes)
	need := p.Batches + p.Step + p.Eval - constant
	t.Logf("features %d, means %d bytes, besides %d; needed %d: %s", rows, means, constant, need, p)
	if most := (rows + means) * 5 / 4; need > most {
		t.Errorf("needed %d bytes for batches of %d and means of %d", need, rows, means)
	}
}

// TestPeakIsWithinPlan trains with every kind of cache, and holds what is counted after each step
// against what was planned.
func TestPeakIsWithinPlan(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory of eight runs")
	}
	s := mustBuild(t, layouttest.Skewed())
	for i, cache := range []string{"none", "static", "sieve", setting.CacheBelady} {
		for k, hidden := range []int{32, 512} {
			topology := []string{"resident", "paged"}[(i+k)%2]
			c := lawConfig()
			c.Cache, c.FeatureCache, c.Hidden, c.Topology = cache, 8<<20, hidden, topology
			c.Memory = 256 << 20
			checkPeak(t, s, c)
		}
	}
}

func checkPeak(t *testing.T, s *layout.Store, c Config) {
	t.Helper()
	l, err := Open(t.Context(), s, mustDevice(t), c)
	if err != nil {
		t.Fatal(err)
	}
	p, b := l.Plan(), l.s.in.Budget
	planned, most := p.Memory-p.Left()-mem.ProcessBytes, int64(0)
	b.CollectHeap() // what planning took on the heap
	for range c.Epochs {
		e, err := l.Epoch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		trainedEpoch(t, e, func(batch *sample.Batch) (float64, error) {
			loss, err := l.Step(batch)
			most = max(most, b.Used())
			return loss, err
		})
	}
	// A training alone evaluates nothing and writes no checkpoints, and how many batches are in
	// flight at once is for the scheduler to say, as is whether the plan takes them in turn: 35 to
	// 80 %.
	if most > planned || most < planned/3 {
		t.Errorf("%d bytes are counted, %d were planned: %s", most, planned, p)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// uneven is a graph of which one training node has a neighborhood as large as those of hundreds.
func uneven() layouttest.Graph {
	const nodes, dim, seeds = 12000, 1024, 400
	draw := rng.NewStream(5)
	g := layouttest.Graph{Nodes: nodes, Dim: dim, Classes: []string{"a", "b"},
		Labels: make([]int32, nodes), Features: make([]float32, nodes*dim),
		Splits: map[string][]layout.NodeID{}}
	for i := range g.Features {
		g.Features[i] = float32(i%13) / 13
	}
	for v := range nodes {
		g.Labels[v] = int32(v % 2)
		degree := 1
		switch {
		case v < seeds:
			g.Splits["train"] = append(g.Splits["train"], layout.NodeID(v))
		case v < seeds+20:
			g.Splits["val"] = append(g.Splits["val"], layout.NodeID(v))
		case v < 1000:
			degree = 40
		}
		for range degree {
			to := draw.Below(1000) + 1000
			if v >= seeds+20 && v < 1000 {
				to = draw.Below(11000) + 1000
			}
			g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(to),
				Dst: layout.NodeID(v)})
		}
	}
	for v := seeds + 20; v < 1000; v++ {
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(v), Dst: 0})
	}
	return g
}

// TestUnevenBatches trains where a batch comes that is many times as large as those that memory
// was planned by: the feature cache gives way.
func TestUnevenBatches(t *testing.T) {
	notShort(t)
	s, want := mustBuildBare(t, uneven()), []byte(nil)
	for _, cache := range []string{"static", "sieve", setting.CacheBelady} {
		c := testConfig()
		c.Cache, c.Fanout, c.Batch, c.Epochs, c.Dropout = cache, []int{sample.All, 40}, 4, 2, 0
		c.Seed, c.Run, c.Memory = unseen(t, s, c), cache, 1<<20
		_, err := MakePlan(t.Context(), s, mustDevice(t), c)
		c.Memory = leastOf(err) + 24<<20
		_, err = Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
			if e.Started == nil {
				return
			}
			p := e.Started.Of.(*Begun).Plan
			if p.BatchNodes > 100 || p.Left()+p.Eval > 40<<20 || p.Features < 16<<20 {
				t.Errorf("the large batch was seen, or finds a place: %s", p)
			}
		})
		if err != nil {
			t.Fatalf("%s: %v", cache, err)
		}
		_, got := finalState(t, s, c.Run)
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: other weights", cache)
		}
	}
}

// unseen is a seed with which the large batch is not one of those that are sampled before.
func unseen(t *testing.T, s *layout.Store, c Config) uint64 {
	t.Helper()
	train, err := loader.TrainNodes(t.Context(), s, c.Split, mem.NewBudget(0))
	if err != nil {
		t.Fatal(err)
	}
	for seed := uint64(1); ; seed++ {
		order, err := sample.EpochOrder(train, seed, 0, c.Batch)
		if err != nil {
			t.Fatal(err)
		}
		seen := false
		for i := range uint64(32) {
			for _, v := range order.Seeds(i, nil) {
				seen = seen || v == 0
			}
		}
		if !seen {
			return seed
		}
	}
}
