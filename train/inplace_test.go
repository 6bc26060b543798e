package train

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"gdb/sample"
	"gdb/train/model"
	"gdb/train/plan"
	"gdb/train/run"
	"gdb/train/setting"
)

// inPlaceConfig trains with a cache that holds batches, but not all rows.
func inPlaceConfig() Config {
	c := testConfig()
	c.Batch, c.Fanout, c.Dropout, c.Epochs = 5, []int{3, 2}, 0, 2
	c.Cache, c.FeatureCache = setting.CacheBelady, plantedNodes*(4*plantedDim+12)*3/4
	return c
}

// planOf runs a training and returns its plan.
func planOf(t *testing.T, c Config) (p *plan.Plan, weights []byte) {
	t.Helper()
	s := mustBuild(t, planted(false))
	noteProfile(t, s, c, diskProfile)
	setCosts(t, s, c, func(p *plan.Profile) { // copying takes longer than anything
		p.Copy = plan.Work{Seconds: 1, CPU: 1}
		for name := range p.Timed {
			p.Timed[name] = plan.Work{Seconds: 1e-3, CPU: 1e-3}
		}
	})
	_, err := Run(context.Background(), s, mustDevice(t), c, func(e run.Event) {
		if e.Started != nil {
			p = e.Started.Of.(*Begun).Plan
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	checkPrep(t, s)
	_, weights = finalState(t, s, c.Run)
	return p, weights
}

// TestInPlaceGivesTheSame: where the first layer reads rows in the cache, a run ends with the same
// weights as with any other way to hold the data.
func TestInPlaceGivesTheSame(t *testing.T) {
	all := [][]int{{1, 7}, {2, 0}, {7, 1}}
	for i, fanout := range [][]int{{3, 2}, {2, 2, 2}, {3, 2}} {
		dropout := 0.3 * float64(i)
		c := inPlaceConfig()
		c.Fanout, c.Dropout, c.Cache, c.FeatureCache = fanout, dropout, "none", 0
		_, want := planOf(t, c)
		sizes := all[i]
		if testing.Short() {
			sizes = []int{2}
		}
		for k, size := range sizes {
			c := inPlaceConfig()
			c.Fanout, c.Dropout, c.Superbatch = fanout, dropout, size
			c.FeatureCache = c.FeatureCache * int64(4+(i+k)%2) / 5
			p, got := planOf(t, c)
			if p.Superbatch == nil || !p.Superbatch.InPlace {
				t.Fatalf("%v is not in place: %s", fanout, p)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("fanout %v, superbatch %d of %d slots: other weights", fanout, size,
					p.Superbatch.Slots)
			}
		}
	}
}

// TestInPlaceWhereItFits: rows are copied where batches do not fit, and where a step would not read
// them in the cache.
func TestInPlaceWhereItFits(t *testing.T) {
	for i, change := range []func(c *Config){
		func(c *Config) { c.FeatureCache /= 8 },
		func(c *Config) { c.Hidden = plantedDim/2 - 1 },
		func(c *Config) { c.Dropout, c.Fanout = 0.1, []int{2, sample.All} },
		func(c *Config) { c.EvalMode = setting.EvalSampled },
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			c := inPlaceConfig()
			change(&c)
			s := mustBuild(t, planted(false))
			p, err := MakePlan(context.Background(), s, mustDevice(t), c)
			if err != nil {
				t.Fatal(err)
			}
			if p.Superbatch == nil || p.Superbatch.InPlace {
				t.Errorf("plan %+v", p)
			}
		})
	}
}

// TestInPlaceAsFeaturesAreDropped: what is dropped out of features decides, not what is of later
// layers.
func TestInPlaceAsFeaturesAreDropped(t *testing.T) {
	none, some := 0.0, 0.1
	for _, c := range []struct {
		dropout         float64
		input           *float64
		whole, resident bool // in place with whole lists, and where all features are in memory
	}{
		{0, nil, true, true}, {0.5, nil, false, false},
		{0, &some, false, false}, {0.5, &none, true, true},
	} {
		cfg := inPlaceConfig()
		cfg.Dropout, cfg.InputDropout, cfg.Fanout = c.dropout, c.input, []int{2, sample.All}
		dims := model.Of(&cfg).Dims(plantedDim, plantedClasses)
		whole, resident := model.Of(&cfg).InPlace(dims), model.Of(&cfg).InPlaceResident(dims)
		cfg.Fanout = []int{2, 3}
		if whole != c.whole || resident != c.resident || !model.Of(&cfg).InPlace(dims) {
			t.Errorf("%+v: whole lists %v, resident %v", c, whole, resident)
		}
	}
}
