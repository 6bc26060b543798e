package train

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"
	"gdb/train/plan"
	"gdb/train/probe"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// setCosts makes the plans of a store believe in a device.
func setCosts(t *testing.T, s *layout.Store, c Config, set func(p *plan.Profile)) {
	t.Helper()
	dev := mustDevice(t)
	if _, err := MakePlan(t.Context(), s, dev, c); err != nil {
		t.Fatal(err)
	}
	rows, err := rowfile.Open(t.Context(), s, dev, s.Meta().Features[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	name, p := probe.ProfileName(dev, rows.Meta(), c.Threads), &plan.Profile{}
	b, err := s.Catalog().Profile(t.Context(), name)
	if err == nil {
		err = json.Unmarshal(b, p)
	}
	if err == nil {
		set(p)
		b, err = json.Marshal(p)
	}
	if err == nil {
		err = s.Catalog().PutProfile(t.Context(), name, b)
	}
	if err = errors.Join(err, rows.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestNeighborsAreChosen: where reads are slow the plan takes a neighbor cache, and forecasts the
// hits of the run; a run too short for what making it takes has none, unless it is kept.
func TestNeighborsAreChosen(t *testing.T) {
	notShort(t)
	s, c := mustBuild(t, layouttest.ManyLists()), testConfig()
	c.Fanout, c.Batch, c.Epochs, c.EvalEvery = []int{5, 5}, 60, 2, 2
	c.Topology, c.Cache, c.EvalMode = "paged", "none", setting.EvalSampled
	c.Memory = 1 << 20
	c.Memory = leastMemory(t, c, mustPlan(t, s)) + 4<<20
	setCosts(t, s, c, func(p *plan.Profile) { p.ReadSeconds, p.Sequential = 1e-3, 1 })
	replan := func() *plan.Plan {
		t.Helper()
		p, err := MakePlan(context.Background(), s, mustDevice(t), c)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := replan(); p.Lists == nil || p.Lists.Neighbors != 0 ||
		!strings.Contains(p.Why(), "no neighbor cache: ") { // a trial, or the cache, takes too long
		t.Errorf("a short run: %+v, %q", p.Lists, p.Why())
	}
	// Fast enough to make the cache, and too slow for passes over all lists.
	setCosts(t, s, c, func(p *plan.Profile) { p.Sequential = 3e7 })
	c.Epochs = 8 // so that it is worth its time where decoding is slow
	p := replan()
	if p.Lists == nil || p.Lists.Neighbors == 0 || p.Lists.Hit <= 0 || p.Lists.Make <= 0 ||
		!strings.Contains(p.Why(), "to make: ") {
		t.Fatalf("%+v, %q", p.Lists, p.Why())
	}
	t.Logf("%+v", p.Lists)
	c.NeighborCache = 0
	if none := replan(); none.Lists.Neighbors != 0 || none.Forecast.Time <= p.Forecast.Time {
		t.Errorf("chosen %+v in %g s, without %g s", p.Lists, p.Forecast.Time, none.Forecast.Time)
	}
	c.NeighborCache = setting.NeighborAuto
	var hit *float64
	_, err := Run(context.Background(), s, mustDevice(t), c, func(e run.Event) {
		if e.Epoch != nil {
			hit = e.Epoch.(*runs.Epoch).NeighborHit
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if hit == nil || math.Abs(*hit-p.Lists.Hit) > 0.05 {
		t.Errorf("hits planned %.3f, in the run %v", p.Lists.Hit, hit)
	}
	if again := replan(); again.Lists.Neighbors != p.Lists.Neighbors || again.Lists.Make != 0 ||
		!strings.Contains(again.Why(), "kept from before") {
		t.Errorf("%+v, then %+v, %q", p.Lists, again.Lists, again.Why())
	}
}
