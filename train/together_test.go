package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"gdb/layout"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// besideConfigs are trainings that read the same batches.
func besideConfigs(base Config) (all []Config) {
	for i, change := range []func(c *Config){
		func(c *Config) { c.Hidden, c.Dropout = 16, 0 },
		func(c *Config) { c.Hidden, c.LR = 4, 0.1 },
		func(c *Config) { c.Dropout, c.WeightDecay, c.Clip = 0.5, 0, 0.5 },
		func(c *Config) { c.Optimizer, c.Norm, c.Residual = "sgd", "layer", true },
		func(c *Config) { c.ClassWeights, c.LRSchedule = setting.WeightsBalanced, "cosine" },
	} {
		c := base
		c.Run = fmt.Sprint("t", i)
		change(&c)
		all = append(all, c)
	}
	return all
}

// mustTogether opens what trainings share.
func mustTogether(t *testing.T, s *layout.Store, all []Config) *Together {
	t.Helper()
	g, err := OpenTogether(t.Context(), s, mustDevice(t), all)
	if err != nil || g == nil {
		t.Fatal(g, err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// trainTogether trains at the same time, each until an epoch of its own.
func trainTogether(t *testing.T, g *Together, all []Config, until func(i int) int) []error {
	t.Helper()
	errs := make([]error, len(all))
	var done sync.WaitGroup
	var begun []*Beside
	for range all {
		begun = append(begun, g.Begin())
	}
	for i, b := range begun {
		done.Go(func() {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			_, errs[i] = b.Run(ctx, all[i], func(e run.Event) {
				if e.Epoch != nil && e.Epoch.Ordinal() == until(i) {
					stop()
				}
			})
		})
	}
	done.Wait()
	return errs
}

// never stops no training.
func never(int) int { return 0 }

// recordsOf are the losses and scores of a run's epochs.
func recordsOf(t *testing.T, s *layout.Store, name string) (all [][3]float64) {
	t.Helper()
	dir := runs.Open(s, name)
	file, err := dir.ReadAny()
	if err == nil {
		err = dir.Records(&file, func(r runs.Record) error {
			e := r.(*runs.Epoch)
			all = append(all, [3]float64{e.Loss, e.Train, *e.Val})
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTogether: what a run comes to beside others is what it comes to alone, to the bit, also if
// runs were stopped after different epochs, whatever is held in memory.
func TestTogether(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"held": func(*Config) {},
		"static": func(c *Config) {
			c.Cache, c.FeatureCache, c.Topology = "static", 16<<10, "paged"
		},
		"sampled": func(c *Config) {
			c.Cache, c.FeatureCache, c.EvalMode = "sieve", 16<<10, setting.EvalSampled
		},
		"layers": func(c *Config) {
			c.Sampler, c.Fanout, c.LayerSize = setting.SamplerLayer, nil, []int{20, 20}
		},
		"bf16": func(c *Config) { c.Precision = "bf16" },
	} {
		t.Run(name, func(t *testing.T) {
			base := testConfig()
			base.Epochs = 5
			change(&base)
			all := besideConfigs(base)
			alone, beside := mustBuild(t, planted(false)), mustBuild(t, planted(false))
			for _, c := range all {
				mustRun(t, alone, c)
			}
			g := mustTogether(t, beside, all)
			if g.Most() != len(all) {
				t.Errorf("%d of %d may train at the same time", g.Most(), len(all))
			}
			for i, err := range trainTogether(t, g, all, func(i int) int { return 1 + i%3 }) {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("run %d was not stopped: %v", i, err)
				}
			}
			var rest []Config
			for _, c := range all {
				rest = append(rest, resumed(c.Run))
			}
			if err := errors.Join(trainTogether(t, g, rest, never)...); err != nil {
				t.Fatal(err)
			}
			for _, c := range all {
				if !bytes.Equal(lastWeights(t, alone, c.Run), lastWeights(t, beside, c.Run)) {
					t.Errorf("run %s has other weights than alone", c.Run)
				}
				want, got := recordsOf(t, alone, c.Run), recordsOf(t, beside, c.Run)
				if !reflect.DeepEqual(want, got) {
					t.Errorf("run %s: epochs %v, alone %v", c.Run, got, want)
				}
			}
		})
	}
}

// TestTogetherHoldsNothing: once trainings are done, the memory holds no more than before.
func TestTogetherHoldsNothing(t *testing.T) {
	base := testConfig()
	base.Epochs = 2
	all := besideConfigs(base)
	g := mustTogether(t, mustBuild(t, planted(false)), all)
	budget := g.opened.in.Budget
	var held []int64
	for round := range 2 {
		for i := range all {
			all[i].Run = fmt.Sprint("r", round, "-", i)
		}
		if err := errors.Join(trainTogether(t, g, all, never)...); err != nil {
			t.Fatal(err)
		}
		if err := g.loader.Rest(); err != nil {
			t.Fatal(err)
		}
		budget.CollectHeap()
		held = append(held, budget.Used())
	}
	if held[1] > held[0] {
		t.Errorf("%d bytes are held after the first trainings, %d after others", held[0], held[1])
	}
}

// TestTogetherWithADivergedOne: a training that fails leaves the others as they are.
func TestTogetherWithADivergedOne(t *testing.T) {
	base := testConfig()
	base.Epochs, base.Optimizer = 3, "sgd"
	all := besideConfigs(base)[:2]
	all[1].LR = 1e30
	alone, beside := mustBuild(t, planted(false)), mustBuild(t, planted(false))
	mustRun(t, alone, all[0])
	errs := trainTogether(t, mustTogether(t, beside, all), all, never)
	if errs[0] != nil || !errors.Is(errs[1], setting.ErrDiverged) {
		t.Fatal(errs)
	}
	if !bytes.Equal(lastWeights(t, alone, all[0].Run), lastWeights(t, beside, all[0].Run)) {
		t.Error("the other run has other weights than alone")
	}
}

// TestTogetherEvaluates: the time of an evaluation begins once those beside have let the training
// be alone.
func TestTogetherEvaluates(t *testing.T) {
	c := testConfig()
	c.Run, c.Epochs = "a", 1
	s := mustBuild(t, planted(false))
	g := mustTogether(t, s, []Config{c, c})
	other, trained := g.group.Join(), g.Begin()
	var recorded time.Time
	var eval float64
	done := make(chan error)
	go func() {
		_, err := trained.Run(t.Context(), c, func(e run.Event) {
			if e.Epoch != nil {
				recorded, eval = time.Now(), e.Epoch.(*runs.Epoch).Eval
			}
		})
		done <- err
	}()
	e, err := other.Epoch(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for {
		b, err := e.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	time.Sleep(50 * time.Millisecond) // the training waits to evaluate
	released := time.Now()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	other.Leave()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if most := recorded.Sub(released).Seconds(); eval <= 0 || eval > most {
		t.Errorf("an evaluation took %v s, of %v s in which it could", eval, most)
	}
}

// TestTogetherInLittleMemory: where the steps of all would take more than half of the memory, fewer
// train at the same time.
func TestTogetherInLittleMemory(t *testing.T) {
	base := testConfig()
	base.Epochs, base.Hidden, base.Memory = 1, 1024, 128<<20
	var all []Config
	for i := range 8 {
		c := base
		c.Run, c.LR = fmt.Sprint("t", i), 0.01*float64(i+1)
		all = append(all, c)
	}
	g := mustTogether(t, mustBuild(t, planted(false)), all)
	if n := g.Most(); n < 1 || n >= len(all) {
		t.Errorf("%d of %d train at the same time", n, len(all))
	}
	p := g.opened.plan
	if g.Most() > 1 && p.Model+p.Step > base.Memory/stepShare {
		t.Errorf("models and steps take %d of %d bytes", p.Model+p.Step, base.Memory)
	}
	for len(all) > 0 {
		some := all[:min(len(all), g.Most())]
		if err := errors.Join(trainTogether(t, g, some, never)...); err != nil {
			t.Fatal(err)
		}
		all = all[len(some):]
	}
}

// TestNotTogether: what each run has for itself is opened by each, and other batches are refused.
func TestNotTogether(t *testing.T) {
	s := mustBuild(t, planted(false))
	for name, change := range map[string]func(c *Config){
		"vectors":      func(c *Config) { c.NodeEmbedding = 4 },
		"superbatches": func(c *Config) { c.Cache = setting.CacheBelady },
		"tuned":        func(c *Config) { c.Tune = true },
		"partitions":   func(c *Config) { c.PartitionOrder = setting.OrderDispersed },
	} {
		c := testConfig()
		change(&c)
		g, err := OpenTogether(t.Context(), s, mustDevice(t), []Config{c, c})
		if g != nil || err != nil {
			t.Errorf("%s: opened together, %v", name, err)
		}
	}
	c := testConfig()
	g := mustTogether(t, s, []Config{c, c})
	c.Fanout = []int{9, 9}
	if _, err := g.Begin().Run(t.Context(), c, nil); err == nil ||
		!strings.Contains(err.Error(), "fanout is [9 9], and [4 3] there") {
		t.Errorf("with another fanout: %v", err)
	}
}
