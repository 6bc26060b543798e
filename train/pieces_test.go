package train

import (
	"context"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/train/plan"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// TestPiecesTrainTheSame: a run whose rows are kept in pieces, whatever keeps them, ends with the
// weights of one that keeps whole rows.
func TestPiecesTrainTheSame(t *testing.T) {
	c := resumeConfig()
	c.Model, c.Epochs, c.Hidden = "hsage", 2, 8
	s := mustBuild(t, plantedTypesFrom(plantedNodes/8))
	mustRun(t, s, c) // evaluates exactly, with whole rows
	want := lastWeights(t, s, c.Run)
	c.EvalMode = setting.EvalSampled
	for i, cache := range []string{"none", "static", "sieve", setting.CacheBelady, "auto"} {
		if testing.Short() && i%2 == 1 {
			continue
		}
		now, s := c, mustBuild(t, plantedTypesFrom(plantedNodes/8))
		if now.Cache = cache; cache != "auto" && cache != "none" {
			now.FeatureCache = 8 << 10
		}
		var p *plan.Plan
		_, err := Run(context.Background(), s, mustDevice(t), now, func(e run.Event) {
			if e.Started != nil {
				p = e.Started.Of.(*Begun).Plan
			}
		})
		if err != nil {
			t.Fatal(cache, err)
		}
		if p.BatchPieces == 0 {
			t.Error(cache, ": rows are whole")
		}
		if got := lastWeights(t, s, c.Run); string(got) != string(want) {
			t.Error(cache, ": other weights")
		}
	}
}

// lastWeights returns the weights with which a run ended; the best may be of another epoch.
func lastWeights(t *testing.T, s *layout.Store, run string) []byte {
	t.Helper()
	c, err := currentCheckpoint(runs.Open(s, run))
	if err != nil {
		t.Fatal(err)
	}
	return mem.BytesOf(c.arrays[0].Values)
}
