package train

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
	"gdb/train/runs"
)

// pricedTrainer is a trainer that has planned, with a trace of its run and what it is priced by.
func pricedTrainer(t *testing.T, c Config) (*trainer, *prices, *trace) {
	t.Helper()
	ctx, store := context.Background(), mustBuild(t, skewed())
	noteProfile(t, store, c, Profile{RandomReads: 1, Sequential: 1e12, ReadSeconds: 1e-3,
		GFLOPS: 10})
	tr := &trainer{cfg: c, obs: func(Event) {}}
	t.Cleanup(func() {
		if err := tr.close(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(tr.prepare(ctx, store), tr.plans(ctx, store, mustDevice(t))); err != nil {
		t.Fatal(err)
	}
	err := tr.in.changeGraph(ctx, layout.TopologyOptions{Resident: true, Budget: tr.in.budget})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := tr.in.record(ctx, &tr.cfg, tr.train, 16<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := seen.close(); err != nil {
			t.Error(err)
		}
	})
	s := tr.newPrices(seen, &sample.Dense{NodeIDOffsets: []uint32{0, 1},
		NodeIDs: []sample.NodeID{0}})
	if s.device, err = tr.profile(ctx); err != nil {
		t.Fatal(err)
	}
	if s.grows, err = s.countRows(ctx, tr.in, seen); err != nil {
		t.Fatal(err)
	}
	return tr, s, seen
}

// TestBound: no policy that decides at each batch costs less than the bound says it does, and the
// bound says something.
func TestBound(t *testing.T) {
	for _, epochs := range []int{1, 2, 6} {
		c := lawConfig()
		c.Cache, c.Fanout, c.Batch, c.Memory, c.Epochs = "none", []int{3, 3}, 8, 1<<30, epochs
		tr, s, seen := pricedTrainer(t, c)
		for _, cache := range []string{"lru", "s3fifo", "sieve"} {
			r := &rowPricer{trainer: tr, s: s, tr: seen, grows: s.grows, cache: cache,
				curve: &curve{bytes: []int64{2 << 20, 6 << 20, 16 << 20}}}
			if err := r.bound(context.Background()); err != nil {
				t.Fatal(err)
			}
			bound := r.curve.costs
			if err := r.fill(context.Background()); err != nil {
				t.Fatal(err)
			}
			for i, cost := range r.curve.costs {
				t.Logf("%d epochs, %s, size %d: hits %.3f, at most %.3f; waits %.4f, at least %.4f",
					epochs, cache, i, cost.hit, bound[i].hit, cost.wait, bound[i].wait)
				if bound[i].hit < cost.hit || bound[i].wait > cost.wait*1.01 ||
					bound[i].wait < cost.wait/4 {
					t.Errorf("%d epochs, %s, size %d: %+v is no bound of %+v", epochs, cache, i,
						bound[i], cost)
				}
			}
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

// TestAutoIsTheBest: auto, which runs the policies only that may win, takes no longer by its
// forecast than any policy of its own.
func TestAutoIsTheBest(t *testing.T) {
	for _, wait := range []float64{1e-7, 1e-5} {
		store, c := mustBuild(t, skewed()), lawConfig()
		c.Fanout, c.Batch, c.Memory, c.Epochs, c.FeatureCache = []int{3, 3}, 8, 1<<30, 6, 4<<20
		noteProfile(t, store, c, Profile{RandomReads: 1, Sequential: 1e12, ReadSeconds: wait,
			GFLOPS: 10})
		times := map[string]float64{}
		for _, c.Cache = range []string{"static", "sieve", runs.CacheBelady, "auto"} {
			p, err := MakePlan(context.Background(), store, mustDevice(t), c)
			if err != nil {
				t.Fatal(err)
			}
			times[c.Cache] = p.Forecast.Time
			t.Logf("a read of %g s, %s: %s", wait, c.Cache, p.Why())
		}
		for cache, time := range times {
			if times["auto"] > time*1.02 {
				t.Errorf("a read of %g s: auto takes %g s, %s %g", wait, times["auto"], cache, time)
			}
		}
	}
}

// TestPlanSamplesResident: a plan samples from a resident topology if that leaves a quarter of the
// memory, also where a run would page it; and from a paged one if batches do not fit beside it.
func TestPlanSamplesResident(t *testing.T) {
	c := lawConfig()
	c.Cache, c.Fanout, c.Batch, c.Memory = "none", []int{3, 3}, 200, 1<<30
	tr, _, _ := pricedTrainer(t, c)
	in, ctx := tr.in, context.Background()
	need := in.store.ResidentBytes(layout.In)
	begin := func(limit, room int64) *planner { // room is for the topology and all else
		in.budget = mem.NewBudget(limit)
		p := &planner{c: &c, store: in.store, dims: tr.dims, scale: 1, nodes: in.meta.Nodes,
			Plan: &Plan{Fixed: in.fixed(), dim: tr.dims[0]}}
		p.planModel()
		c.Memory = room - p.Left()
		p.Memory = c.Memory
		return p
	}
	for room, resident := range map[int64]bool{3 * need: true, need*4/3 + 4096: true,
		need * 5 / 4: false} {
		begin(1<<30, room)
		err := in.dropGraph()
		if err == nil {
			_, err = in.makePlan(ctx, &c, tr.train, tr.dims)
		}
		if err != nil && !strings.Contains(err.Error(), "is too small: this run needs") {
			t.Fatal(err) // the plan of so little memory is another matter
		}
		if in.graph.Resident != resident {
			t.Errorf("%d bytes for %d of topology: resident %v", room, need, in.graph.Resident)
		}
	}
	p := begin(need+64<<10, need*4/3+4096)
	p.planTopology()
	if p.samplesResident(in); p.paged == nil || p.paged.Resident || !p.Resident {
		t.Fatalf("a plan that samples from a resident topology, else from %+v", p.paged)
	}
	p.paged.CacheBytes = 256 << 10 // the graph is small
	err := in.changeGraph(ctx, layout.TopologyOptions{Resident: true, Budget: in.budget})
	if err == nil {
		err = p.sample(ctx, in, tr.train)
	}
	if err != nil || in.graph.Resident || p.scale != 1 || p.pilot.sampled == 0 {
		t.Errorf("batches do not fit beside the topology: %v, %+v", err, in.graph)
	}
}
