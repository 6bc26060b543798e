package train

import (
	"context"
	"testing"

	"gdb/layout/layouttest"
	"gdb/train/plan"
	"gdb/train/setting"
)

// TestAutoIsTheBest: auto, which runs the policies only that may win, takes no longer by its
// forecast than any policy of its own.
func TestAutoIsTheBest(t *testing.T) {
	notShort(t)
	for _, wait := range []float64{1e-7, 1e-5} {
		store, c := mustBuild(t, layouttest.Skewed()), lawConfig()
		c.Fanout, c.Batch, c.Memory, c.Epochs, c.FeatureCache = []int{3, 3}, 8, 1<<30, 6, 4<<20
		noteProfile(t, store, c, plan.Profile{RandomReads: 1, Sequential: 1e12, ReadSeconds: wait,
			GFLOPS: 10})
		times := map[string]float64{}
		for _, c.Cache = range []string{"static", "sieve", setting.CacheBelady, "auto"} {
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
