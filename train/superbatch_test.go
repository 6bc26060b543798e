package train

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/layout"
	"gdb/train/plan"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// TestBeladyReadsLess: with the same memory, fewer rows are read than by any other policy, and the
// statistics of an epoch say so.
func TestBeladyReadsLess(t *testing.T) {
	hits := map[string]float64{}
	for _, cache := range []string{setting.CacheBelady, "static", "sieve"} {
		c := beladyConfig()
		c.Cache, c.Epochs, c.FeatureCache = cache, 1, 12<<10
		s := mustBuild(t, planted(false))
		_, err := Run(context.Background(), s, mustDevice(t), c, func(e run.Event) {
			if e.Epoch != nil {
				hits[cache] = e.Epoch.(*runs.Epoch).Hit
			}
			if st := e.Started; st != nil && cache == setting.CacheBelady {
				if p := st.Of.(*Begun).Plan; p.Superbatch == nil ||
					p.Cache != setting.CacheBelady || p.Left() < 0 ||
					p.Features > c.FeatureCache || p.Superbatch.Slots == 0 {
					t.Errorf("plan %+v", p)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for cache, h := range hits {
		if h > hits[setting.CacheBelady] || h <= 0 || h >= 1 {
			t.Errorf("%s hits %v: all are %v", cache, h, hits)
		}
	}
}

// TestSuperbatchFaults: a failed read anywhere ends the run with file and offset, nothing is left
// behind, and the run goes on from its checkpoint.
func TestSuperbatchFaults(t *testing.T) {
	c := beladyConfig()
	c.Epochs, c.Superbatch = 2, 3
	good, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory, QueueDepth: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	before, reads := runtime.NumGoroutine(), []int{0, 1, 3}
	if testing.Short() {
		reads = reads[1:2]
	}
	for _, file := range []string{"features", "batches", "accesses", "next", "plan"} {
		for _, nth := range reads {
			s := mustBuildBare(t, planted(false))
			noteProfileOf(t, good, s, c, diskProfile)
			var begun atomic.Bool // the run: its plan reads features too, but no batches
			var seen atomic.Int64
			dev := devtest.Inject(good, func(path string, off int64, _ uint64) devtest.Fault {
				if strings.HasSuffix(path, "batches") {
					begun.Store(true)
				}
				if !begun.Load() && file == "features" {
					return devtest.Fault{}
				}
				if !strings.HasSuffix(path, file) && !strings.Contains(path, file+"/") {
					return devtest.Fault{}
				}
				if seen.Add(1) != int64(nth+1) {
					return devtest.Fault{}
				}
				return devtest.Fault{Err: syscall.EIO}
			})
			_, err := Run(context.Background(), s, dev, c, nil)
			if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "offset") ||
				!strings.Contains(err.Error(), file) {
				t.Errorf("%s, read %d: %v", file, nth, err)
			}
			checkPrep(t, s)
			devtest.CheckGoroutines(t, before)
			_, err = Run(context.Background(), s, good, resumed(c.Run), nil)
			if err != nil {
				t.Errorf("%s, read %d, resumed: %v", file, nth, err)
			}
		}
	}
}

// TestSuperbatchSettings: what cannot be is refused before the run.
func TestSuperbatchSettings(t *testing.T) {
	c := beladyConfig()
	c.Superbatch = -1
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "superbatch -1") {
		t.Errorf("a negative superbatch: %v", err)
	}
	s := mustBuild(t, planted(false))
	c = beladyConfig()
	c.Memory = 100 << 20
	_, err := Run(context.Background(), s, mustDevice(t), c, nil)
	var small *plan.TooSmallError
	if !errors.As(err, &small) {
		t.Errorf("in 100 MiB: %v", err)
	}
}

// TestTopologyInTurn: with the least memory that gives a cache, the topology leaves memory while
// batches are trained on, and comes back to sample and to evaluate; the weights are the same.
func TestTopologyInTurn(t *testing.T) {
	c := beladyConfig()
	s := mustBuild(t, planted(false))
	mustRun(t, s, c)
	_, want := finalState(t, s, c.Run)

	c.Memory = turnMemory(t, s, c)
	low := mustBuild(t, planted(false))
	mustRun(t, low, c)
	if _, got := finalState(t, low, c.Run); !bytes.Equal(got, want) {
		t.Error("other weights")
	}
}

// turnMemory is the least memory that gives superbatches a cache: then their phases take turns.
func turnMemory(t *testing.T, s *layout.Store, c Config) int64 {
	t.Helper()
	step := int64(1 << 20)
	for c.Memory = 64 << 20; c.Memory <= 1<<30; c.Memory += step {
		p, err := MakePlan(context.Background(), s, mustDevice(t), c)
		if err != nil || p.Superbatch == nil || p.Superbatch.Slots < 20 {
			continue
		}
		if !p.Superbatch.Overlap && p.Topology == 0 {
			return c.Memory
		}
		if step == 1<<14 {
			t.Fatalf("with %d bytes phases overlap: %s", c.Memory, p)
		}
		c.Memory, step = c.Memory-step, 1<<14 // there is not much between
	}
	t.Fatal("no memory will do")
	return 0
}
