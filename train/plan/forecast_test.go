package plan

import (
	"math"
	"testing"

	"gdb/sample/superbatch"
	"gdb/train/setting"
)

// fixedCosts are of batches of 1000 rows on a machine of two cores that needs 1 µs for a row found
// in a cache, 2 µs for one that is placed there, and 3 ms for a step, on both.
func fixedCosts(rows RowsCost) *Costs {
	d := &Profile{Cores: 2, ReadSeconds: 1e-5, ReadCPU: 1e-6, Copy: Work{1e-6, 1e-6},
		Hit: Work{1e-6, 1e-6}, Miss: Work{2e-6, 2e-6}, Sequential: 1e9}
	return &Costs{Device: d, StoredBytes: 32, RowBytes: 32, Nodes: 1000, Rows: 1000, Edges: 2000,
		Batches: 10, Full: 10, Inner: 1, Step: Work{3e-3, 6e-3}, Resident: Price{Own: 1e-4},
		Curves: map[string]*Curve{"sieve": {Bytes: []int64{1}, Costs: []RowsCost{rows}}}}
}

func fixedFacts() *Facts {
	f := &Facts{Settings: Settings{Threads: 2, Epochs: 2, EvalEvery: 1}}
	f.Nodes, f.Dim, f.Evaluates = 1000, 8, true
	return f
}

func fixedSplit(cache string, inTurn bool) *Plan {
	return &Plan{facts: fixedFacts(), Cache: cache, Features: 1, Resident: true, Ready: 2,
		InTurn: inTurn, Samplers: 1}
}

// TestForecastOfTime holds a forecast against times found by hand from fixed costs.
func TestForecastOfTime(t *testing.T) {
	for _, c := range []struct {
		what                           string
		cache                          string
		inTurn                         bool
		rows                           RowsCost
		sample, gather, compute, total float64 // ms of a batch
		binding                        string
	}{
		// Three works ask for four cores of two: sampling takes 0.2 ms for 0.1. Copies and step
		// ask for three: the 0.9 ms of copies that are left take 1.35.
		{"all rows found", "sieve", false, RowsCost{Hit: 1}, 0.2, 1.55, 3.55, 3.55, "cores"},
		// 1000 reads take 10 ms, of which 1 computing, and 2 ms of placing go on at the same time.
		{"all rows read, in turn", "sieve", true, RowsCost{Wait: 1e-2, CPU: 1e-3}, 0.1, 10, 3, 13,
			"turns"},
		{"no cache", "none", true, RowsCost{Wait: 4e-3}, 0.1, 4, 3, 7, "turns"},
		// Copies and step have 1.75 cores busy, and sampling one, so each gets 2/2.75 of them.
		{"resident", "all", true, RowsCost{}, 0.1375, 1.0094, 3.0281, 4.0375, "turns"},
	} {
		s := fixedCosts(c.rows)
		s.Curves["none"] = s.Curves["sieve"]
		f := s.forecast(fixedSplit(c.cache, c.inTurn))
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
	s := fixedCosts(RowsCost{})
	s.Device.Decide = Work{1e-6, 1e-6}
	s.Apart.Add(1000, 1000, 1000)
	s.Once.Add(1000, 1000, 1e9)
	s.Grows = Footprint{Batches: []float64{1}, Unique: []float64{1000}, Most: 1000}
	steps, missed := 20.0, 400.0
	var curved RowsCost
	for i := range curved.Misses {
		curved.Misses[i] = missed * steps / math.Exp2(float64(i))
	}
	p := fixedSplit(setting.CacheBelady, true)
	p.Superbatch = &superbatch.Plan{Slots: 100, Kept: 100, Storage: 1 << 30, Batches: 20,
		StageRows: 100}
	s.Curves[s.CurveName(p)] = &Curve{Bytes: []int64{1}, Costs: []RowsCost{curved}}
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

// TestStart: what is held is read once before the first epoch, and counts by its share of an epoch.
func TestStart(t *testing.T) {
	for _, c := range []struct {
		cache string
		rows  int64
		want  float64 // µs
	}{
		{"none", 0, 1000},      // lists of 1 MB at 1 GB/s
		{"all", 0, 1032},       // and 1000 rows of 32 bytes
		{"static", 2, 1020},    // two rows that take 10 µs each
		{"static", 1000, 1032}, // all rows are faster than many
	} {
		s := fixedCosts(RowsCost{})
		s.TopologyBytes = 1e6
		s.Curves[c.cache] = s.Curves["sieve"]
		p := fixedSplit(c.cache, true)
		p.Features = 32 * c.rows
		p.Forecast = s.forecast(p)
		if got := 1e6 * p.Forecast.Start; math.Abs(got-c.want) > 1e-3 {
			t.Errorf("%s of %d rows: %g µs, want %g", c.cache, c.rows, got, c.want)
		}
		if share := p.epochSeconds() - p.Forecast.Time; math.Abs(share-c.want/2e6) > 1e-9 {
			t.Errorf("%s: %g s of an epoch of two", c.cache, share)
		}
	}
}
