package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"weak"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/neighborcache"
	"gdb/layout/topology"
	"gdb/sample/loader"
	"gdb/train/plan"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lawConfig is of a run on layouttest.Skewed of whose batches a cache holds few.
func lawConfig(epochs int) Config {
	c := Config{Fanout: []int{3, 3}, Seed: 1, StepName: "test"}
	c.Memory, c.Model = 1<<30, 1<<20
	c.Settings = plan.Settings{Threads: 2, Epochs: epochs, Batch: 8, EvalEvery: 2, Cache: "none",
		Topology: "auto", NeighborCache: setting.NeighborAuto}
	return c
}

// openSource opens what batches are made of, but for the topology.
func openSource(t *testing.T, g layouttest.Graph, memory int64) *loader.Source {
	t.Helper()
	store := layouttest.Build(t, vfs.NewMem(), "store", g)
	src := loader.NewSource(store, devtest.Open(t, blockdev.Options{}),
		mem.NewProcessBudget(memory))
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(src.OpenRows(t.Context()), src.OpenLabels(t.Context())); err != nil {
		t.Fatal(err)
	}
	return src
}

// pricedProbe has sampled a trace of its run, and has what that is priced by.
func pricedProbe(t *testing.T, c Config) (*Probe, *plan.Costs, *trace) {
	t.Helper()
	ctx, src := t.Context(), openSource(t, layouttest.Skewed(), c.Memory)
	var err error
	if c.Seeds, err = loader.TrainNodes(ctx, src.Store, "", src.Budget); err != nil {
		t.Fatal(err)
	}
	m, err := New(src, c, nil)
	if err == nil {
		_, _, err = m.Plans(ctx)
	}
	if err == nil {
		err = src.ChangeGraph(ctx, topology.Options{Resident: true, Budget: src.Budget})
	}
	if err != nil {
		t.Fatal(err)
	}
	seen, err := m.record(ctx, 16<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := seen.close(); err != nil {
			t.Error(err)
		}
	})
	m.device = &plan.Profile{RandomReads: 1, Sequential: 1e12, ReadSeconds: 1e-3, Cores: 2}
	s := m.newCosts(seen)
	if err := m.countRows(ctx, s, seen); err != nil {
		t.Fatal(err)
	}
	return m, s, seen
}

// TestBound: no policy that decides at each batch costs less than the bound says it does, and the
// bound says something.
func TestBound(t *testing.T) {
	for _, epochs := range []int{1, 2, 6} {
		m, s, seen := pricedProbe(t, lawConfig(epochs))
		for _, cache := range []string{"sieve", "static"} {
			r := &rowPricer{Probe: m, s: s, tr: seen, cache: cache,
				curve: &plan.Curve{Bytes: []int64{2 << 20, 6 << 20, 16 << 20}}}
			if err := r.bound(t.Context()); err != nil {
				t.Fatal(err)
			}
			bound := r.curve.Costs
			if err := r.fill(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i, cost := range r.curve.Costs {
				t.Logf("%d epochs, %s, size %d: hits %.3f, at most %.3f; waits %.4f, at least %.4f",
					epochs, cache, i, cost.Hit, bound[i].Hit, cost.Wait, bound[i].Wait)
				if bound[i].Hit < cost.Hit || bound[i].Wait > cost.Wait*1.01 ||
					bound[i].Wait < cost.Wait/4 && cache != "static" {
					t.Errorf("%d epochs, %s, size %d: %+v is no bound of %+v", epochs, cache, i,
						bound[i], cost)
				}
			}
		}
	}
}

// TestThinnedTrace: policies that are played over one node in four find what they find of all.
func TestThinnedTrace(t *testing.T) {
	m, s, seen := pricedProbe(t, lawConfig(6))
	for _, cache := range []string{"none", "static", "sieve", setting.CacheBelady} {
		costs := func() []plan.RowsCost {
			t.Helper()
			r := &rowPricer{Probe: m, s: s, tr: seen, cache: cache, steps: 60,
				curve: &plan.Curve{Bytes: []int64{2 << 20, 6 << 20, 16 << 20}}}
			if err := r.fill(t.Context()); err != nil {
				t.Fatal(err)
			}
			return r.curve.Costs
		}
		want := costs()
		if err := m.thin(seen, seen.nodes/4+1); err != nil || seen.played.share != 4 {
			t.Fatalf("one node in %d, %v", seen.played.share, err)
		}
		for i, got := range costs() {
			t.Logf("%s, size %d: hits %.3f, of all %.3f; waits %.4f, %.4f", cache, i, got.Hit,
				want[i].Hit, got.Wait, want[i].Wait)
			most := 0.02
			if cache == "sieve" { // a cache of few rows
				most = 0.06
			}
			if math.Abs(got.Hit-want[i].Hit) > most ||
				math.Abs(got.Wait-want[i].Wait) > 0.15*want[i].Wait {
				t.Errorf("%s, size %d: %+v, of all %+v", cache, i, got, want[i])
			}
		}
		if err := seen.played.close(); err != nil {
			t.Fatal(err)
		}
		if err := m.thin(seen, math.MaxUint64); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBeside: work that is short of memory because of other work is done again.
func TestBeside(t *testing.T) {
	budget := mem.NewBudget(100)
	var done [8]int
	var work []func() error
	holding, refused := make(chan struct{}), make(chan struct{})
	for i := range done {
		work = append(work, func() error {
			if i == 1 {
				<-holding
			}
			if err := budget.Reserve("work", 80); err != nil {
				if i == 1 {
					close(refused)
				}
				return err
			}
			defer budget.Release(80)
			if i == 0 {
				close(holding)
				<-refused
			}
			done[i]++
			return nil
		})
	}
	if err := beside(2, work); err != nil {
		t.Fatal(err)
	}
	for i, n := range done {
		if n != 1 {
			t.Errorf("work %d was done %d times", i, n)
		}
	}
	broken := errors.New("broken")
	work = append(work[2:], func() error { return broken })
	if err := beside(2, work); !errors.Is(err, broken) {
		t.Errorf("an error is lost: %v", err)
	}
	tooMuch := func() error { return budget.Reserve("work", 200) }
	var full *mem.LimitError
	if err := beside(2, []func() error{tooMuch}); !errors.As(err, &full) {
		t.Errorf("too much memory: %v", err)
	}
}

// TestSamplesFromAPagedTopology: batches are sampled from a paged topology where they have no place
// beside a resident one, and the plan is of whole batches.
func TestSamplesFromAPagedTopology(t *testing.T) {
	c := lawConfig(2)
	c.Batch, c.Fanout = 300, []int{10, 10}
	src := openSource(t, layouttest.ManyLists(), 1<<30)
	var err error
	if c.Seeds, err = loader.TrainNodes(t.Context(), src.Store, "", src.Budget); err != nil {
		t.Fatal(err)
	}
	m, err := New(src, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.facts.Forms = m.facts.Forms[:1]
	need := m.facts.PlainBytes()
	src.Budget = mem.NewBudget(need + 640<<10)
	m.facts.Memory = m.facts.Program + m.facts.Model + need*4/3 + 4096
	first, otherwise := plan.Sampling(m.facts)
	if !first.Resident || otherwise == nil || otherwise.Resident {
		t.Fatalf("samples from %+v, else from %+v", first, otherwise)
	}
	if err := m.sampleBatches(t.Context()); err != nil || src.Graph.Resident ||
		m.facts.BatchNodes == 0 {
		t.Errorf("batches do not fit beside the topology: %v, %+v", err, src.Graph)
	}
}

func TestSolve(t *testing.T) {
	far, near := reading{reads: 100, bytes: 1000}, reading{reads: 10, bytes: 50000}
	a, b := solve(far, near, 2*100+3*1000, 2*10+3*50000)
	if math.Abs(a-2) > 1e-9 || math.Abs(b-3) > 1e-9 {
		t.Errorf("a read costs %g, a byte %g; want 2 and 3", a, b)
	}
	if a, b := solve(far, near, 1, 1e9); a != 0 || b < 0 {
		t.Errorf("no cost is below zero: %g, %g", a, b)
	}
}

// TestMeasuredReads: rows far apart are a read each, rows close together are swept with what lies
// between them, and what is counted is what the device does.
func TestMeasuredReads(t *testing.T) {
	const dim = 16
	src := openSource(t, layouttest.Graph{Nodes: 1000, Dim: dim, Classes: []string{"a", "b"},
		Labels: make([]int32, 1000), Features: make([]float32, 1000*dim)}, 1<<30)
	m := &profiler{src: src}
	for name, c := range map[string]struct {
		read  func(ctx context.Context, start, apart, n uint64) (reading, error)
		apart uint64 // bytes from row to row
		reads float64
	}{"gather": {m.gather, 10 << 10, 3}, "sweep": {m.sweep, 2 << 10, 1}} {
		before := src.Device.Stats().Reads
		r, err := c.read(t.Context(), 3, c.apart/(4*dim), 3)
		if err != nil {
			t.Fatal(err)
		}
		did := float64(src.Device.Stats().Reads - before)
		if r.reads != c.reads || did != c.reads {
			t.Errorf("%s: %v reads are counted, %v were made, want %v", name, r.reads, did, c.reads)
		}
	}
}

// TestTriedListsAreKept: what was tried is not tried again.
func TestTriedListsAreKept(t *testing.T) {
	failed := errors.New("scanned")
	m := &Probe{profiler: &profiler{device: &plan.Profile{}}}
	l := &listTrial{probe: m, name: "trace ", workers: 1,
		ListTable: &plan.ListTable{Blocks: []int64{10, 20}, Neighbors: []int64{0, 8}},
		open:      func() (*neighborcache.Trial, error) { return nil, failed }}
	for _, c := range []struct {
		blocks, neighbors int64
		reads             float64
	}{{10, 0, 100}, {20, 0, 60}, {10, 8, 50}, {20, 8, 10}} {
		l.Reads = map[plan.ListCaches]plan.ListReads{}
		if err := l.try(c.blocks, c.neighbors); !errors.Is(err, failed) {
			t.Fatalf("%+v: %v, want a scan", c, err)
		}
		name := fmt.Sprint(l.name, neighborcache.Caches{Blocks: c.blocks, Neighbors: c.neighbors,
			Sessions: 1})
		want := plan.ListReads{Lists: 1, Reads: c.reads}
		m.tried(name, func() (plan.ListReads, error) { return want, nil })
		err := l.try(c.blocks, c.neighbors)
		got := l.Reads[plan.ListCaches{Blocks: c.blocks, Neighbors: c.neighbors}]
		if err != nil || got != want {
			t.Fatalf("%+v: %v, %v", c, got, err)
		}
	}
}

// TestListsShareOneBudget: whatever share of them the neighbor cache has, the caches of lists take
// no more than was planned, made or kept.
func TestListsShareOneBudget(t *testing.T) {
	src := openSource(t, layouttest.ManyLists(), 1<<30)
	f := plan.Facts{Memory: 1 << 30, Settings: plan.Settings{Threads: 2, Epochs: 1, Batch: 10,
		Cache: "none", Topology: "paged", NeighborCache: setting.NeighborAuto}}
	f.Nodes, f.Dim, f.Forms = src.Meta.Nodes, 8, src.Forms()
	f.PagedBytes = func(cache int64) int64 {
		return topology.PagedBytes(src.Store, layout.In,
			cache)
	}
	f.TrainBatches = 1
	splits, err := plan.Plans(&f)
	if err != nil {
		t.Fatal(err)
	}
	chosen := 0
	for i, p := range splits {
		if i%7 != 0 {
			continue
		}
		for _, limit := range []int64{0, p.Topology + p.Neighbor} { // made, then kept
			budget := mem.NewBudget(limit)
			o := p.TopologyOptions()
			o.Budget = budget
			topo, err := topology.Open(t.Context(), src.Store, src.Device, layout.In, o)
			if err != nil {
				t.Fatalf("%s: %v", p, err)
			}
			used, st := budget.Used(), topo.Stats()
			if err := topo.Close(); err != nil {
				t.Fatal(err)
			}
			if used < st.Bytes || used > p.Topology+p.Neighbor || budget.Used() != 0 ||
				(st.Neighbors.Lists > 0) != (p.Lists.Neighbors > 0) {
				t.Errorf("%s: %d bytes are counted, planned were %d and %d; %+v", p, used,
					p.Topology, p.Neighbor, st)
			}
		}
		if p.Lists.Neighbors > 0 {
			chosen++
		}
	}
	if chosen == 0 {
		t.Errorf("of %d splits none has a neighbor cache", len(splits))
	}
}

// TestUnpriced: where batches come from partitions, sizes are learned, and the split with most
// batches ahead and least memory for lists is taken without reading anything more.
func TestUnpriced(t *testing.T) {
	ctx, c := t.Context(), lawConfig(2)
	c.Unpriced, c.Evaluates = true, true
	c.Topology, c.NeighborCache = "paged", 0
	src := openSource(t, layouttest.Skewed(), c.Memory)
	var err error
	if c.Seeds, err = loader.TrainNodes(ctx, src.Store, "", src.Budget); err != nil {
		t.Fatal(err)
	}
	m, err := New(src, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	splits, largest, err := m.Plans(ctx)
	if err != nil || len(splits) < 2 || largest == nil {
		t.Fatalf("%d splits, %v", len(splits), err)
	}
	read := src.Device.Stats().Bytes
	best, err := m.Choose(ctx, splits, nil)
	if err != nil || src.Device.Stats().Bytes != read || best.Forecast != nil {
		t.Fatalf("%d bytes read, %v", src.Device.Stats().Bytes-read, err)
	}
	for _, p := range splits {
		if p.Ready > best.Ready || p.Ready == best.Ready && p.Topology < best.Topology ||
			best.InTurn {
			t.Errorf("%v was taken, and not %v", best, p)
		}
	}
}

// TestPlansKeepNoBatches: the batches that a plan was made of are in memory no longer than the
// probe, though plans refer to its facts.
func TestPlansKeepNoBatches(t *testing.T) {
	ctx, c := t.Context(), lawConfig(2)
	src := openSource(t, layouttest.Skewed(), c.Memory)
	var err error
	if c.Seeds, err = loader.TrainNodes(ctx, src.Store, "", src.Budget); err != nil {
		t.Fatal(err)
	}
	m, err := New(src, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	splits, largest, err := m.Plans(ctx)
	if err != nil {
		t.Fatal(err)
	}
	kept := weak.Make(largest)
	m, largest = nil, nil
	runtime.GC()
	if kept.Value() != nil {
		t.Error("plans keep a batch in memory")
	}
	runtime.KeepAlive(splits)
}
