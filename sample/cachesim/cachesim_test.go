package cachesim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/rowcache"
	"gdb/sample/sampletest"
)

const (
	nodes = 400
	dim   = 3
)

// batchesOf draws batches of nodes, low ids more often; each node once in a batch unless twice.
func batchesOf(seed uint64, count int, twice bool) (out [][]sample.NodeID) {
	stream := rng.NewStream(seed)
	for b := range count {
		var ids []sample.NodeID
		for range stream.Uint64() % 60 {
			x := stream.Float64()
			v := sample.NodeID((int(x*x*nodes) + b/5) % nodes)
			if twice || !slices.Contains(ids, v) {
				ids = append(ids, v)
			}
		}
		out = append(out, ids)
	}
	return out
}

// traceOf makes a trace of a record of batches.
func traceOf(t *testing.T, batches [][]sample.NodeID) Trace {
	t.Helper()
	r := &Record{Budget: mem.NewBudget(0)}
	for _, b := range batches {
		if err := r.Add(b); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil || r.Budget.Used() != 0 {
			t.Errorf("close the record: %v, %d bytes still counted", err, r.Budget.Used())
		}
	})
	return r.Trace(nodes)
}

// tried are the policies that need not know what comes, and a static one.
func tried() []Policy {
	var hot []sample.NodeID
	for v := range sample.NodeID(nodes / 2) {
		hot = append(hot, v*2)
	}
	policies := []Policy{Static("static", hot)}
	for _, make := range online {
		policies = append(policies, Policy{Name: make().Name(), New: make})
	}
	return policies
}

// TestSameAsCache replays traces through caches that hold rows.
func TestSameAsCache(t *testing.T) {
	var sizes []Capacity
	for _, bytes := range []int64{0, 70, 300, 1500, 6000, 40000} {
		sizes = append(sizes, Capacity{Bytes: bytes, Dim: dim})
	}
	budget := mem.NewBudget(0)
	for seed := range uint64(3) {
		batches := batchesOf(seed, 300, seed > 0)
		results, err := Run(context.Background(), traceOf(t, batches), tried(), sizes, budget)
		if err != nil {
			t.Fatal(err)
		}
		hits := uint64(0)
		for i, p := range tried() {
			for j, c := range sizes {
				r := results[i*len(sizes)+j]
				want, loaded := cacheStats(t, p.New(), c.Bytes, batches)
				if r.Policy != p.Name || r.Capacity != c || r.Requests != want.Requests ||
					r.Hits != want.Hits || uint64(r.Evicted) != want.Evicted ||
					int64(r.Rows*dim*4) < want.Used || r.Loaded != loaded {
					t.Errorf("seed %d: %s: %+v, the cache %+v", seed, p.Name, r, want)
				}
				hits += r.Hits
			}
		}
		if hits == 0 || budget.Used() != 0 {
			t.Errorf("seed %d: %d hits, %d bytes still counted", seed, hits, budget.Used())
		}
	}
}

// cacheStats gathers batches through a cache, and says how many rows it had loaded first.
func cacheStats(t *testing.T, p rowcache.Policy, bytes int64,
	batches [][]sample.NodeID) (rowcache.Stats, uint64) {
	t.Helper()
	rows := &sampletest.Rows{Count: nodes, Dim: dim}
	f, err := rowcache.New(context.Background(), rows, p, rowcache.Options{Bytes: bytes})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	loaded := rows.BytesRead() / (4 * dim)
	for _, b := range batches {
		if err := f.Gather(context.Background(), b, make([]float32, len(b)*dim)); err != nil {
			t.Fatal(err)
		}
	}
	return f.Stats(), loaded
}

// TestRowsAndBytes gives the same size both ways.
func TestRowsAndBytes(t *testing.T) {
	trace := traceOf(t, batchesOf(1, 200, false))
	for _, p := range append(tried(), Belady) {
		slot := 0
		if p.New != nil {
			slot = p.New().SlotBytes()
		}
		const bytes = 2000
		results, err := Run(context.Background(), trace, []Policy{p}, []Capacity{
			{Bytes: bytes, Dim: dim}, {Rows: rowcache.RowsIn(bytes, dim, slot)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, b := results[0], results[1]
		if a.Rows != b.Rows || a.Hits != b.Hits || a.Evicted != b.Evicted {
			t.Errorf("%s: by bytes %+v, by rows %+v", p.Name, a, b)
		}
		if want := float64(a.Hits) / float64(a.Requests); a.HitRatio() != want {
			t.Errorf("hit ratio %v, want %v", a.HitRatio(), want)
		}
	}
}

func TestErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	bad := errors.New("no batch")
	good := batchesOf(1, 10, false)
	lru, bound := []Policy{tried()[1]}, []Policy{Belady}
	far := []Policy{Static("far", []sample.NodeID{nodes})}
	failing := Trace{Nodes: nodes, Each: func(func([]sample.NodeID) error) error { return bad }}
	for name, c := range map[string]struct {
		ctx        context.Context
		trace      Trace
		policies   []Policy
		capacities []Capacity
		budget     int64
		want       string
	}{
		"out of range":       {trace: traceOf(t, [][]sample.NodeID{{1, nodes}}), want: "400"},
		"empty trace":        {trace: traceOf(t, nil), want: "asks for nothing"},
		"failing trace":      {trace: failing, want: "no batch"},
		"cancelled":          {ctx: ctx, want: "cancel"},
		"negative":           {capacities: []Capacity{{Rows: -1}}, want: "-1 rows"},
		"rows and bytes":     {capacities: []Capacity{{Rows: 1, Bytes: 9, Dim: 1}}, want: "one"},
		"bytes without dim":  {capacities: []Capacity{{Bytes: 9}}, want: "their number"},
		"memory":             {budget: 100, want: "--memory"},
		"memory for slots":   {budget: 4200, want: "--memory"},
		"loads out of range": {policies: far, want: "load node 400"},
		"bound: out of range": {policies: bound, want: "400",
			trace: traceOf(t, [][]sample.NodeID{{nodes}})},
		"bound: twice": {policies: bound, want: "node 5 stands twice in batch 1",
			trace: traceOf(t, [][]sample.NodeID{{3}, {5, 3, 5}})},
		"bound: empty":     {policies: bound, trace: traceOf(t, nil), want: "asks for nothing"},
		"bound: failing":   {policies: bound, trace: failing, want: "no batch"},
		"bound: cancelled": {policies: bound, ctx: ctx, want: "cancel"},
	} {
		if c.ctx == nil {
			c.ctx = context.Background()
		}
		if c.trace.Each == nil {
			c.trace = traceOf(t, good)
		}
		if c.policies == nil {
			c.policies = lru
		}
		if c.capacities == nil {
			c.capacities = []Capacity{{Rows: 100}}
		}
		_, err := Run(c.ctx, c.trace, c.policies, c.capacities, mem.NewBudget(c.budget))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}

// TestRecordEpoch records what a sampler draws.
func TestRecordEpoch(t *testing.T) {
	g := sampletest.RMAT(8, 3000, 1)
	defer g.Close()
	train := make([]sample.NodeID, 100)
	for i := range train {
		train[i] = sample.NodeID(2 * i)
	}
	order, err := sample.EpochOrder(train, 1, 2, 30)
	if err != nil {
		t.Fatal(err)
	}
	s := mustSampler(t, g)
	defer s.Close()
	r := &Record{}
	defer r.Close()
	if err := Sampled(context.Background(), s, order, r.Add); err != nil {
		t.Fatal(err)
	}
	i := uint64(0)
	err = r.Trace(g.Nodes()).Each(func(got []sample.NodeID) error {
		var d sample.Dense
		if err := s.Sample(context.Background(), 2, i, order.Seeds(i, nil), &d); err != nil {
			return err
		}
		if !slices.Equal(got, d.NodeIDs) {
			t.Errorf("batch %d: recorded %d nodes, sampled %d", i, len(got), len(d.NodeIDs))
		}
		i++
		return nil
	})
	if err != nil || i != order.Batches() {
		t.Errorf("%d batches of %d: %v", i, order.Batches(), err)
	}
	if _, err := Online("mru"); err == nil {
		t.Error("there is a policy mru")
	}
	full := &Record{Budget: mem.NewBudget(1000)}
	if err := Sampled(context.Background(), s, order, full.Add); err == nil ||
		!strings.Contains(err.Error(), "batch 0") {
		t.Errorf("a record without memory: %v", err)
	}
}

func mustSampler(t *testing.T, g *sampletest.Graph) *sample.Sampler {
	t.Helper()
	s, err := sample.NewSampler([]topology.Reader{g}, sample.Config{Fanout: []int{4, 3}, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
