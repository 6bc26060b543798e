package train

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"gdb/layout"
	"gdb/train/runs"
)

// fixedPrices are of batches of 1000 rows on a machine of two cores that needs 1 µs for a row found
// in a cache, 2 µs for one that is placed there, and 3 ms for a step, on both.
func fixedPrices(rows rowsCost) *prices {
	d := &Profile{Cores: 2, ReadSeconds: 1e-5, ReadCPU: 1e-6, Copy: work{1e-6, 1e-6},
		Hit: work{1e-6, 1e-6}, Miss: work{2e-6, 2e-6}, Sequential: 1e9}
	return &prices{device: d, storedBytes: 32, rowBytes: 32, nodes: 1000, edges: 2000, batches: 10,
		full: 10, inner: 1, step: work{3e-3, 6e-3}, resident: price{own: 1e-4},
		curves: map[string]*curve{"lru": {bytes: []int64{1}, costs: []rowsCost{rows}}}}
}

func fixedPlanner(cache string, inTurn bool) *planner {
	return &planner{c: &Config{Threads: 2, Epochs: 2, Dropout: 0.5}, dims: []int{8, 8},
		Plan: &Plan{Cache: cache, Features: 1, Resident: true, Ready: 2, InTurn: inTurn}}
}

// TestForecastOfTime holds a forecast against times found by hand from fixed costs.
func TestForecastOfTime(t *testing.T) {
	for _, c := range []struct {
		what                           string
		cache                          string
		inTurn                         bool
		rows                           rowsCost
		sample, gather, compute, total float64 // ms of a batch
		binding                        string
	}{
		// Three works ask for four cores of two: sampling takes 0.2 ms for 0.1. Copies and step
		// ask for three: the 0.9 ms of copies that are left take 1.35.
		{"all rows found", "lru", false, rowsCost{hit: 1}, 0.2, 1.55, 3.55, 3.55, "cores"},
		// 1000 reads take 10 ms, of which 1 computing, and 2 ms of placing go on meanwhile.
		{"all rows read, in turn", "lru", true, rowsCost{wait: 1e-2, cpu: 1e-3}, 0.1, 10, 3, 13,
			"turns"},
		{"no cache", "none", true, rowsCost{wait: 4e-3}, 0.1, 4, 3, 7, "turns"},
		// Copies and step have 1.75 cores busy, and sampling one, so each gets 2/2.75 of them.
		{"resident", "all", true, rowsCost{}, 0.1375, 1.0094, 3.0281, 4.0375, "turns"},
	} {
		s := fixedPrices(c.rows)
		s.curves["none"] = s.curves["lru"]
		f := s.forecast(fixedPlanner(c.cache, c.inTurn))
		got := []float64{f.Sample, f.Gather, f.Compute, f.Time}
		for i, want := range []float64{c.sample, c.gather, c.compute, c.total} {
			if ms := 100 * got[i]; math.Abs(ms-want) > 1e-3 {
				t.Errorf("%s: %v s for 10 batches; ms of a batch want %v", c.what, got, want)
				break
			}
		}
		if f.Binding != c.binding {
			t.Errorf("%s is bound by %s, want %s", c.what, f.Binding, c.binding)
		}
	}
}

// TestForecastOfSuperbatchTime: rows that are not read ahead are read before the step, rows are
// copied to the batch and to the cache, and sampling takes turns with training.
func TestForecastOfSuperbatchTime(t *testing.T) {
	s := fixedPrices(rowsCost{})
	s.device.Decide = work{1e-6, 1e-6}
	s.apart.add(1000, 1000, 1000)
	s.once.add(1000, 1000, 1e9)
	s.grows = footprint{batches: []float64{1}, unique: []float64{1000}, most: 1000}
	steps, missed := 20.0, 400.0
	var curved rowsCost
	for i := range curved.misses {
		curved.misses[i] = missed * steps / math.Exp2(float64(i))
	}
	p := fixedPlanner(runs.CacheBelady, true)
	p.Superbatch = &SuperbatchPlan{Slots: 100, Kept: 100, Storage: 1 << 30, Batches: 20,
		StageRows: 100}
	s.curves[s.curveName(p)] = &curve{bytes: []int64{1}, costs: []rowsCost{curved}}
	f := s.forecast(p)
	// Of the 4 ms of reading 1 is ahead; 1.4 ms are copies.
	loop, sampling := 3+3+1.4, 0.05+1.0
	if ms := 100 * f.Time; math.Abs(ms-loop-sampling) > 0.1 {
		t.Errorf("%.2f ms a batch, want %.2f and %.2f", ms, loop, sampling)
	}
	if f.Binding != "turns" || math.Abs(100*f.Gather-(1+3+1.4)) > 0.1 {
		t.Errorf("%+v", f)
	}
}

// TestTriedListsAreKept: what was tried is not tried again, and what cores do besides reading goes
// by the blocks read.
func TestTriedListsAreKept(t *testing.T) {
	failed := errors.New("scanned")
	d := &Profile{ReadSeconds: 1, ReadCPU: 0.25}
	l := &listTrial{s: &prices{device: d, resident: price{own: 1},
		paged: []pagedPrice{{10, price{own: 5}}, {20, price{own: 3}}}}, name: "trace ", workers: 1,
		blocks: []int64{10, 20}, neighbors: []int64{0, 8},
		open: func() (*layout.ListTrial, error) { return nil, failed }}
	l.s.tried = l
	for _, c := range []struct {
		blocks, neighbors int64
		reads             float64
	}{{10, 0, 100}, {20, 0, 60}, {10, 8, 50}, {20, 8, 10}} {
		l.reads = map[layout.ListCaches]listReads{}
		if _, err := l.try(c.blocks, c.neighbors); !errors.Is(err, failed) {
			t.Fatalf("%+v: %v, want a scan", c, err)
		}
		name := fmt.Sprint(l.name, layout.ListCaches{Blocks: c.blocks, Neighbors: c.neighbors,
			Sessions: 1})
		want := listReads{Lists: 1, Reads: c.reads}
		d.tried(name, func() (listReads, error) { return want, nil })
		if got, err := l.try(c.blocks, c.neighbors); err != nil || got != want {
			t.Fatalf("%+v: %v, %v", c, got, err)
		}
	}
	l.reads = map[layout.ListCaches]listReads{}
	for _, b := range l.blocks {
		for _, n := range l.neighbors {
			if _, err := l.try(b, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		blocks, neighbors int64
		want              price
	}{
		{10, 0, price{wait: 100, cpu: 25, own: 5}},
		{20, 0, price{wait: 60, cpu: 15, own: 3}},
		{15, 4, price{wait: 55, cpu: 13.75, own: 2.75}},
		{20, 8, price{wait: 10, cpu: 2.5, own: 1}},
	} {
		p := &planner{blockCache: c.blocks, neighborCache: c.neighbors}
		if got := l.price(p); got != c.want {
			t.Errorf("%+v, got %+v", c, got)
		}
	}
}
