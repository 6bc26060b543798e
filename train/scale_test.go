package train

import (
	"slices"
	"strings"
	"testing"

	"gdb/layout/layouttest"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// stretched are the features of a planted graph, of which one is a thousand times as large, and one
// far from zero.
func stretched() layouttest.Graph {
	g := planted(false)
	for i := range g.Features {
		switch i % plantedDim {
		case 0:
			g.Features[i] *= 1000
		case 1:
			g.Features[i] += 200
		}
	}
	return g
}

// TestColumnsAreScaled: features that differ in range train as well as those that do not, whatever
// the cache, the run is evaluated as it was trained, and what was measured is kept.
func TestColumnsAreScaled(t *testing.T) {
	s, c := mustBuild(t, stretched()), testConfig()
	c.Normalize = "auto"
	note := ""
	res, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
		if e.Started != nil {
			note = e.Started.Note
		}
	})
	if err != nil || *res.Test < 0.8 || !strings.Contains(note, "different or large ranges") {
		t.Fatalf("%+v, %v, note %q", res, err, note)
	}
	kept, err := runs.Load(s, "t")
	if err != nil || kept.Normalize != setting.NormalizeColumns || kept.Scale == nil ||
		kept.Scale.Mean[1] < 150 || kept.Scale.Inverse[0] > 0.1 {
		t.Fatalf("kept %q, %+v, %v", kept.Normalize, kept.Scale, err)
	}
	e, err := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: "t"})
	if err != nil || e.Value != *res.Test {
		t.Errorf("evaluated to %+v, %v; trained to %g", e, err, *res.Test)
	}
	losses := func(name, cache string) (all []float64) {
		c.Run, c.Cache, c.Epochs = name, cache, 3
		if _, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
			if e.Epoch != nil {
				all = append(all, e.Epoch.(*runs.Epoch).Loss)
			}
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if none, belady := losses("n", "none"), losses("b", "belady"); !slices.Equal(none, belady) {
		t.Errorf("losses %v without a cache, %v with belady", none, belady)
	}
}

// TestEvenColumnsAreLeft: features that are of one range are read as they are.
func TestEvenColumnsAreLeft(t *testing.T) {
	s, c := mustBuild(t, planted(false)), testConfig()
	c.Normalize, c.Epochs = "auto", 1
	mustRun(t, s, c)
	if kept, err := runs.Load(s, "t"); err != nil || kept.Normalize != "none" || kept.Scale != nil {
		t.Errorf("kept %q, %+v, %v", kept.Normalize, kept.Scale, err)
	}
}
