package train

import (
	"context"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/train/plan"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// TestEvaluatesAhead: sampled evaluation through superbatches predicts as that from memory does,
// with rows in pieces and whole, and leaves no files.
func TestEvaluatesAhead(t *testing.T) {
	for _, model := range []string{"hsage", "sage"} {
		c := resumeConfig()
		c.Model, c.Epochs, c.Hidden, c.EvalMode = model, 2, 8, setting.EvalSampled
		c.Cache, c.Threads, c.Memory = "none", 1, 120<<20 // which phases must share
		want, ahead := losses(t, mustBuild(t, plantedTypesFrom(plantedNodes/8)), c)
		if ahead {
			t.Fatal("superbatches without their cache")
		}
		c.Cache, c.FeatureCache = setting.CacheBelady, 8<<10
		s := mustBuild(t, plantedTypesFrom(plantedNodes/8))
		noteProfile(t, s, c, diskProfile)
		setCosts(t, s, c, func(p *plan.Profile) { // rows in place save nothing
			p.Copy = plan.Work{}
			for name := range p.Timed {
				p.Timed[name] = plan.Work{Seconds: 1e-3, CPU: 1e-3}
			}
		})
		got, ahead := losses(t, s, c)
		if !ahead {
			t.Fatal("no superbatches that take turns with evaluations")
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s, epoch %d: loss %g of val, want %g", model, i+1, got[i], want[i])
			}
		}
		checkPrep(t, s)
	}
}

// keptValidation returns the sizes of files of batches of val that are kept between evaluations.
func keptValidation(t *testing.T, s *layout.Store) (sizes []int64) {
	t.Helper()
	fs, prep := s.FS(), s.Path("prep")
	dirs, err := fs.List(prep)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if !strings.HasSuffix(dir, "-eval") {
			continue
		}
		names, err := fs.List(fs.PathJoin(prep, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if info, err := fs.Stat(fs.PathJoin(prep, dir, name)); err == nil {
				sizes = append(sizes, info.Size())
			}
		}
	}
	return sizes
}

// losses trains, and returns the losses of evaluations and whether these were sampled ahead.
func losses(t *testing.T, s *layout.Store, c Config) (all []float64, ahead bool) {
	t.Helper()
	_, err := Run(context.Background(), s, mustDevice(t), c, func(e run.Event) {
		if e.Started != nil {
			p := e.Started.Of.(*Begun).Plan
			ahead = p.Superbatch != nil && !p.Superbatch.Overlap && !p.Superbatch.InPlace
		}
		if e.Epoch != nil {
			if kept := keptValidation(t, s); ahead && len(kept) < 3 {
				t.Errorf("files of %d bytes are kept of evaluations", kept)
			}
			all = append(all, *e.Epoch.(*runs.Epoch).ValLoss)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, ahead
}
