package train

import (
	"slices"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/run"
)

// started runs a training and returns the note of its beginning.
func started(t *testing.T, s *layout.Store, c Config) (note string, r *Result) {
	t.Helper()
	c.Epochs = 2
	r, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
		if e.Started != nil {
			note = e.Started.Note
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return note, r
}

// TestTrainingNodesWithoutInEdges: a run says when its training nodes have no neighbors to learn
// from, in a topology in memory and on disk; others are not told so.
func TestTrainingNodesWithoutInEdges(t *testing.T) {
	g := planted(false)
	if note, _ := started(t, mustBuild(t, g), testConfig()); strings.Contains(note, "in-edges") {
		t.Errorf("a graph with in-edges: %q", note)
	}
	g.Edges = slices.DeleteFunc(g.Edges, func(e layouttest.Edge) bool {
		return slices.Contains(g.Splits["train"], e.Dst)
	})
	n := len(g.Splits["train"])
	for _, topology := range []string{"resident", "paged"} {
		c := testConfig()
		c.Topology = topology
		note, _ := started(t, mustBuild(t, g), c)
		if want := "training nodes have no in-edges"; n < 100 || !strings.Contains(note, want) {
			t.Errorf("%s: %d training nodes: %q, want %q", topology, n, note, want)
		}
	}
	c := testConfig()
	c.Model = "mlp"
	if note, _ := started(t, mustBuild(t, g), c); strings.Contains(note, "in-edges") {
		t.Errorf("a model without neighbors: %q", note)
	}
}

// TestSteepBeginning: a result tells of a loss far over that of guessing, unless the rate grows.
func TestSteepBeginning(t *testing.T) {
	g := planted(false)
	for i := range g.Features {
		g.Features[i] *= 50
	}
	c := testConfig()
	c.Normalize, c.LR = "none", 0.5
	_, r := started(t, mustBuild(t, g), c)
	if !strings.Contains(r.Steep, "where guessing has 1.386") ||
		!strings.HasPrefix(r.Steep, "the loss of epoch 1 was") {
		t.Errorf("steep: %q", r.Steep)
	}
	c.Warmup = 1
	if _, r := started(t, mustBuild(t, g), c); r.Steep != "" {
		t.Errorf("with a warm-up: %q", r.Steep)
	}
	if _, r := started(t, mustBuild(t, planted(false)), testConfig()); r.Steep != "" {
		t.Errorf("a common training: %q", r.Steep)
	}
}

// TestDirectionInTurns: training nodes without in-edges are found too where lists are in memory in
// turn with batches, and the lists are closed again.
func TestDirectionInTurns(t *testing.T) {
	g := planted(false)
	g.Edges = slices.DeleteFunc(g.Edges, func(e layouttest.Edge) bool {
		return slices.Contains(g.Splits["train"], e.Dst)
	})
	store, dev := mustBuild(t, g), mustDevice(t)
	loop := run.New(store, "", nil)
	defer func() {
		if err := loop.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := check(t.Context(), loop, store, dev, testConfig())
	if err != nil {
		t.Fatal(err)
	}
	d, err := openData(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = makePlan(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := d.in.DropGraph(); err != nil {
		t.Fatal(err)
	}
	d.in.InTurns = true
	note, err := direction(t.Context(), c, d.in, d.nodes.train)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(note, "no in-edges") || d.in.Topology != nil {
		t.Errorf("told %q; lists are open: %v", note, d.in.Topology != nil)
	}
}
