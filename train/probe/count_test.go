package probe

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gdb/sample"
	"gdb/sample/cachesim"
	"gdb/train/plan"
)

// skewedTrace draws batches of distinct nodes, the lower the more often, as neighborhoods do.
func skewedTrace(rnd *rand.Rand, nodes, batches, size int) (all [][]sample.NodeID) {
	for range batches {
		var b []sample.NodeID
		in := map[sample.NodeID]bool{}
		for len(b) < size {
			v := sample.NodeID(float64(nodes) * math.Pow(rnd.Float64(), 3))
			if !in[v] {
				in[v] = true
				b = append(b, v)
			}
		}
		all = append(all, b)
	}
	return all
}

// TestFootprintGoesOn: from a quarter of a trace, its footprint says how many nodes all of it has.
func TestFootprintGoesOn(t *testing.T) {
	const seed, nodes, batches = 5, 40000, 160
	rnd := rand.New(rand.NewPCG(seed, seed))
	all := &trace{of: skewedTrace(rnd, nodes, batches, 1500)}
	seen, err := sample.NewNodeSet(nodes, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Free()
	full := mustCount(t, all, seen)
	part := mustCount(t, &trace{of: all.of[:batches/4]}, seen)
	for _, k := range []float64{1, 7, 20, 40, 80, 160} {
		want, got := full.After(k), part.After(k)
		if math.Abs(got-want) > 0.05*want {
			t.Errorf("seed %d: %g batches have %.0f nodes, forecast are %.0f", seed, k, want, got)
		}
		if at := full.Filled(want, 1e6); math.Abs(at-k) > 0.01*k {
			t.Errorf("seed %d: %.0f nodes after %g batches, not %g", seed, want, at, k)
		}
	}
	if got := part.After(1e9); got > nodes {
		t.Errorf("seed %d: %.0f nodes of %d", seed, got, nodes)
	}
}

func mustCount(t *testing.T, tr *trace, seen *sample.NodeSet) plan.Footprint {
	t.Helper()
	g, err := tr.countFootprint(seen, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestWarmCacheIsForecast: the misses of a cache that a short trace does not fill are forecast
// within a few points of those of the long run.
func TestWarmCacheIsForecast(t *testing.T) {
	const seed, nodes, batches, known, size = 7, 40000, 240, 40, 1500
	rnd := rand.New(rand.NewPCG(seed, seed))
	all := skewedTrace(rnd, nodes, batches, size)
	seen, err := sample.NewNodeSet(nodes, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Free()
	g := mustCount(t, &trace{of: all[:known]}, seen)
	for _, share := range []float64{0.9, 1.1, 1.3} {
		rows := int(share * g.After(known))
		at := float64(known) / 4
		factor := missed(t, all[:known], int(g.After(at)), known*3/4) / g.Rate(at)
		w := warmSpan{first: known, more: batches - known}
		got, want := w.missed(&g, float64(rows), factor)/size, missed(t, all, rows, known)/size
		t.Logf("%d rows: misses forecast %.1f %%, %.1f %%", rows, 100*got, 100*want)
		if math.Abs(got-want) > 0.03 {
			t.Errorf("seed %d, %d rows: misses forecast %.1f %%, %.1f %%", seed, rows, 100*got,
				100*want)
		}
	}
}

// missed is how many rows a batch misses on average from one on, with SIEVE.
func missed(t *testing.T, batches [][]sample.NodeID, rows, from int) float64 {
	t.Helper()
	p, err := cachesim.Online("sieve")
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, n := range []int{from, len(batches)} {
		r := cachesim.Record{}
		nodes := sample.NodeID(0)
		for _, b := range batches[:n] {
			if err := r.Add(b); err != nil {
				t.Fatal(err)
			}
			for _, v := range b {
				nodes = max(nodes, v+1)
			}
		}
		results, err := cachesim.Run(context.Background(), r.Trace(uint64(nodes)),
			[]cachesim.Policy{p}, []cachesim.Capacity{{Rows: rows}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		missed := float64(results[0].Requests - results[0].Hits)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if total = missed - total; n == from {
			total = missed
		}
	}
	return total / float64(len(batches)-from)
}
