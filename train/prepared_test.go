//go:build cuda && cgo && linux

package train

import (
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/layout"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/setting"
)

// stepsOf trains two epochs and returns the loss of each step. On a device each batch must come
// prepared.
func stepsOf(t *testing.T, s *layout.Store, c Config) (losses []float64) {
	t.Helper()
	l, err := Open(t.Context(), s, mustDevice(t), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 2 {
		e, err := l.Epoch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for b, err := e.Next(t.Context()); err != io.EOF; b, err = e.Next(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if c.Backend == backend.CUDA && b.Prepared == nil {
				t.Fatal("a batch comes without what was prepared of it")
			}
			loss, err := l.Step(b)
			b.Release()
			if err != nil {
				t.Fatal(err)
			}
			losses = append(losses, loss)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	if c.Backend == backend.CUDA && c.DeviceCache > 0 && !l.s.replicas.all[0].rows.Cache.Filled() {
		t.Error("the device keeps no rows")
	}
	return losses
}

// TestBatchesComePrepared: whoever makes batches prepares them, before the device keeps rows and
// afterwards, and steps on them have the losses of the CPU.
func TestBatchesComePrepared(t *testing.T) {
	mustEmulate(t)
	s := mustBuild(t, planted(false))
	noteProfiles(t, s)
	for name, set := range map[string]func(c *Config){
		"static": func(c *Config) { c.Cache, c.FeatureCache = "static", 4096 },
		"belady": func(c *Config) { c.Cache, c.FeatureCache = setting.CacheBelady, 4096 },
		"macro":  func(c *Config) { c.MacroBatch = 4 },
		"none kept": func(c *Config) {
			c.Cache, c.FeatureCache, c.DeviceCache = setting.CacheBelady, 4096, 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := testConfig()
			c.Batch, c.Epochs, c.DeviceCache, c.Dropout = 12, 2, 100*4*plantedDim, 0
			set(&c)
			want := stepsOf(t, s, c)
			c.Backend = backend.CUDA
			got := stepsOf(t, s, c)
			if len(got) < 10 || len(got) != len(want) {
				t.Fatalf("%d steps, want %d", len(got), len(want))
			}
			for i := range want {
				if math.Abs(got[i]-want[i]) > 1e-3 {
					t.Errorf("step %d has a loss of %g, on the CPU %g", i, got[i], want[i])
				}
			}
		})
	}
}

// TestEvaluationsComePrepared: batches that are sampled to evaluate come prepared, and have the
// outputs, to the bit, of those that the step prepares.
func TestEvaluationsComePrepared(t *testing.T) {
	mustEmulate(t)
	s := mustBuild(t, planted(false))
	noteProfiles(t, s)
	for _, cache := range []string{"static", setting.CacheBelady} {
		c := cachedConfig(100 * 4 * plantedDim)
		c.EvalMode, c.Cache, c.FeatureCache = setting.EvalSampled, cache, 4096
		l, err := Open(t.Context(), s, mustDevice(t), c)
		if err != nil {
			t.Fatal(err)
		}
		kept := l.s.replicas.all[0].rows
		if err := kept.Cache.Fill(t.Context(), l.s.in.Rows, l.s.nodes.train[:50],
			plantedNodes); err != nil {
			t.Fatal(err)
		}
		if p := l.s.plan.Superbatch; p != nil {
			p.Overlap = false
		}
		batches, _, rows, err := l.s.evaluationBatches(nil)
		if err != nil {
			t.Fatal(err)
		}
		if ahead := batches.Superbatch != nil; ahead != (cache == setting.CacheBelady) {
			t.Fatalf("cache %s: batches come from superbatches: %v", cache, ahead)
		}
		order, err := sample.EpochOrder(l.s.nodes.train, c.Seed, sampledEpoch, c.Batch)
		if err != nil {
			t.Fatal(err)
		}
		pipe, err := loader.Open(t.Context(), l.s.in.Source, batches, order, 0)
		if err != nil {
			t.Fatal(err)
		}
		compared, plain := 0, l.s.in.Features
		if plain == nil {
			t.Fatalf("cache %s: there are no features to compare with", cache)
		}
		for b, err := pipe.Next(t.Context()); err != io.EOF; b, err = pipe.Next(t.Context()) {
			if err != nil || b.Prepared == nil {
				t.Fatalf("cache %s: a batch is not prepared: %v", cache, err)
			}
			alone := *b
			alone.Prepared = nil
			got, err := l.s.steps.logits(b, nil, rows)
			alone.X = make([]float32, len(b.X)) // a device has rows of its own
			err = errors.Join(err, plain.Gather(t.Context(), b.Dense.NodeIDs, alone.X))
			want, err2 := l.s.steps.logits(&alone, nil, nil)
			if err := errors.Join(err, err2); err != nil || !slices.Equal(got, want) {
				t.Errorf("cache %s: other outputs: %v", cache, err)
			}
			b.Release()
			compared++
		}
		if hits := kept.Cache.Used().Hits; hits < 50 {
			t.Errorf("cache %s: %d rows were found on the device", cache, hits)
		}
		if err := errors.Join(pipe.Close(), l.Close()); err != nil || compared == 0 {
			t.Errorf("cache %s: %d batches, %v", cache, compared, err)
		}
	}
}
