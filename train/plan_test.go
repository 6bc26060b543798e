package train

import (
	"context"
	"fmt"
	"math"
	"strings"
	"syscall"
	"testing"

	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/plan"
	"gdb/train/run"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestPlanLeastSuffices: the least memory that a refusal names is enough to plan the run with.
func TestPlanLeastSuffices(t *testing.T) {
	s, c := mustBuild(t, planted(false)), testConfig()
	c.Hidden = 512
	for _, c.Memory = range []int64{1 << 20, 80 << 20, 100 << 20} {
		for range 3 {
			_, err := MakePlan(context.Background(), s, mustDevice(t), c)
			if err == nil {
				break
			}
			n := leastOf(err)
			if n <= c.Memory {
				t.Fatalf("%d bytes are refused, %d would do: %v", c.Memory, n, err)
			}
			c.Memory = n
		}
		p, err := MakePlan(context.Background(), s, mustDevice(t), c)
		if err != nil || p.Left() < 0 {
			t.Fatalf("%d bytes, said to suffice: %v", c.Memory, err)
		}
	}
}

// TestForecastOfHits: on a graph that is sampled whole, the forecast of hits equals the
// hits of an epoch.
func TestForecastOfHits(t *testing.T) {
	for _, cache := range []string{"static", "none"} {
		s, c := mustBuild(t, planted(false)), testConfig()
		c.Cache, c.FeatureCache, c.Epochs = cache, 10<<10, 2
		p, err := MakePlan(context.Background(), s, mustDevice(t), c)
		if err != nil {
			t.Fatal(err)
		}
		r := mustRun(t, s, c)
		if p.Cache != cache || r.Planned == nil || r.Actual == nil {
			t.Fatalf("cache %s: plan %+v, result %+v", cache, p, r)
		}
		if diff := math.Abs(p.Forecast.Hit - r.Actual.Hit); diff > 0.02 {
			t.Errorf("cache %s: hits planned %.3f, actual %.3f", cache, p.Forecast.Hit,
				r.Actual.Hit)
		}
		if want, got := float64(p.Forecast.Read), r.Actual.Read; math.Abs(want-got) > 0.1*got {
			t.Errorf("cache %s: reads planned %.0f, actual %.0f bytes", cache, want, got)
		}
	}
}

// TestForecastOfBytes: on settings of many kinds, the bytes that an epoch is planned to read are
// those that it reads, within 3 %: of superbatches the mean of all epochs, else of those after the
// first, which fills caches. With a belady cache of most rows it is 7 %: its later epochs read
// little but misses, whose number is extrapolated from the few batches that were sampled. With a
// sieve cache of most rows it is 4 % over eight epochs, for the same reason: it was 3.1 %.
func TestForecastOfBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("trains with many settings")
	}
	s, costly := mustBuild(t, layouttest.Skewed()), mustBuild(t,
		layouttest.Skewed()) // profiles are kept
	for i, set := range []struct {
		cache, topology string
		features        int64
		fanout          []int
		epochs          int
		swept           bool
	}{
		{"none", "resident", 0, []int{5, 5}, 2, false},
		{"static", "resident", 4 << 20, []int{5, 5}, 2, false},
		{"static", "paged", 8 << 20, []int{5, 5}, 2, false},
		{"sieve", "resident", 6 << 20, []int{6, 6}, 2, false},
		{"sieve", "resident", 20 << 20, []int{3, 3}, 6, false},
		{"sieve", "paged", 12 << 20, []int{3, 3}, 3, false},
		{"sieve", "resident", 3 << 20, []int{4, 4, 2}, 2, false},
		{"sieve", "resident", 16 << 20, []int{3, 3}, 8, false},
		{setting.CacheBelady, "resident", 4 << 20, []int{5, 5}, 2, false},
		{setting.CacheBelady, "resident", 16 << 20, []int{3, 3}, 6, false},
		{setting.CacheBelady, "resident", 4 << 20, []int{5, 5}, 2, true},
		{setting.CacheBelady, "resident", 16 << 20, []int{3, 3}, 6, true},
	} {
		c := lawConfig()
		c.Cache, c.Topology, c.FeatureCache, c.Fanout = set.cache, set.topology, set.features,
			set.fanout
		c.Batch, c.Memory, c.Run = 8, 1<<30, fmt.Sprint("bytes", i)
		c.Epochs, c.EvalEvery = set.epochs, set.epochs
		on := s
		if set.swept {
			on = costly
			noteProfile(t, on, c, plan.Profile{RandomReads: 1, Sequential: 1e12, ReadSeconds: 1e-2,
				GFLOPS: 10})
		} else { // reading takes no time, so that it is not worth a sweep
			noteProfile(t, on, c, plan.Profile{RandomReads: 1, Sequential: 1, GFLOPS: 10})
		}
		var planned *plan.Plan
		swept := false
		r, err := Run(context.Background(), on, mustDevice(t), c, func(e run.Event) {
			if e.Started != nil {
				planned = e.Started.Of.(*Begun).Plan
			}
			swept = swept || e.Reading != nil && e.Reading.Swept
		})
		if err != nil {
			t.Fatal(err)
		}
		if swept != set.swept {
			t.Errorf("%+v: swept %v", set, swept)
		}
		got, want := float64(planned.Forecast.Read), r.Actual.Read
		t.Logf("%+v: planned %.0f bytes, read %.0f", set, got, want)
		most := 0.03
		if set.cache == setting.CacheBelady && set.epochs > 2 {
			most = 0.1 // where superbatches end differs from run to run
		}
		if set.cache == setting.CacheSIEVE && set.epochs > 6 {
			most = 0.04
		}
		if math.Abs(got-want) > most*want {
			t.Errorf("%+v: planned %.0f bytes, read %.0f", set, got, want)
		}
	}
}

// TestPlanWithoutWriting: where nothing can be written writing counts as reading, and the plan says
// why.
func TestPlanWithoutWriting(t *testing.T) {
	s := mustBuildBare(t, planted(false))
	fs := errorfs.Wrap(s.FS(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return syscall.EROFS
		}
		return nil
	}))
	sealed, err := layout.Open(t.Context(), fs, "store")
	if err != nil {
		t.Fatal(err)
	}
	c := beladyConfig()
	p, err := MakePlan(t.Context(), sealed, mustDevice(t), c)
	if err != nil || p.Forecast == nil {
		t.Fatalf("plan %+v, %v", p, err)
	}
	d := p.Forecast.Device
	if !strings.Contains(d.Unwritten, "read-only") || !strings.Contains(d.Kept, "read-only") ||
		d.Write.Seconds != 1/d.Sequential {
		t.Errorf("%q, %q, %v", d.Unwritten, d.Kept, d.Write)
	}
	p, err = MakePlan(t.Context(), s, mustDevice(t), c)
	if err != nil || p.Forecast.Device.Unwritten != "" || p.Forecast.Device.Write.Seconds <= 0 {
		t.Errorf("where it can be written: %+v, %v", p, err)
	}
}
