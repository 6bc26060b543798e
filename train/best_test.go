package train

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdb/compute/backend"
	"gdb/train/runs"
	"gdb/train/setting"
	"gdb/train/task"
)

// TestFirstOfEqualsIsBest: an epoch must be better than the best before it to take its place.
func TestFirstOfEqualsIsBest(t *testing.T) {
	c := resumeConfig()
	c.LR = 1e-9 // no prediction changes
	c.Patience = 2
	res := mustRun(t, mustBuild(t, planted(false)), c)
	if res.BestEpoch != 1 || res.Epochs != 3 || !res.Stopped {
		t.Errorf("%+v: want the first epoch as the best, and the end after 2 more", res)
	}
}

// TestTestIsOfTheBest: the weights of the best epoch are tested. A run that ends at that epoch has
// them as its last ones. With so high a rate each epoch is far from the one before, but which is
// the best depends on how the processor rounds: a seed is taken whose last is worse.
func TestTestIsOfTheBest(t *testing.T) {
	s := mustBuild(t, planted(false))
	for seed := range uint64(8) {
		c := testConfig()
		c.LR, c.Epochs, c.Seed, c.Run = 1, 4, seed, fmt.Sprintf("whole%d", seed)
		res := mustRun(t, s, c)
		ends := c
		ends.Run, ends.EvalEvery = "last", c.Epochs // evaluates the last epoch alone
		short := c
		short.Run, short.Epochs = "best", res.BestEpoch
		last, best := mustRun(t, s, ends), mustRun(t, s, short)
		if *last.Test == *best.Test {
			for _, run := range []string{"last", "best"} {
				if err := s.FS().RemoveAll(runs.Open(s, run).Path()); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		if *res.Test != *best.Test || res.Best != best.Best {
			t.Errorf("tested %g; the best epoch has %g, the last %g", *res.Test, *best.Test,
				*last.Test)
		}
		return
	}
	t.Fatal("with every seed the last epoch was as good as the best")
}

// TestSameResult changes each setting that the weights or the metrics depend on.
func TestSameResult(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"model":         func(c *Config) { c.Model = "gat" },
		"fanout":        func(c *Config) { c.Fanout = []int{4, 4} },
		"sampler":       func(c *Config) { c.Sampler = setting.SamplerLayer },
		"layer-size":    func(c *Config) { c.LayerSize = []int{9, 9} },
		"hidden":        func(c *Config) { c.Hidden++ },
		"batch":         func(c *Config) { c.Batch++ },
		"lr":            func(c *Config) { c.LR *= 2 },
		"weight-decay":  func(c *Config) { c.WeightDecay++ },
		"dropout":       func(c *Config) { c.Dropout /= 2 },
		"optimizer":     func(c *Config) { c.Optimizer = "sgd" },
		"loss":          func(c *Config) { c.Loss = "bce" },
		"metric":        func(c *Config) { c.Metric = task.MacroF1 },
		"class-weights": func(c *Config) { c.ClassWeights = setting.WeightsBalanced },
		"eval-every":    func(c *Config) { c.EvalEvery++ },
		"lr-schedule":   func(c *Config) { c.LRSchedule = setting.ScheduleCosine },
		"warmup":        func(c *Config) { c.Warmup++ },
		"clip":          func(c *Config) { c.Clip++ },
		"eval-mode":     func(c *Config) { c.EvalMode = "sampled" },
		"split-column":  func(c *Config) { c.Split = "1" },
		"seed":          func(c *Config) { c.Seed++ },
		"threads":       func(c *Config) { c.Threads++ },
	} {
		old, now := testConfig(), testConfig()
		now.Fanout = slices.Clone(now.Fanout)
		change(&now)
		want := fmt.Sprintf(" with %s ", name)
		if err := now.SameResult(&old); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	old, now := testConfig(), testConfig()
	now.Epochs, now.Patience, now.Memory, now.Cache = 99, 9, 1<<20, "none"
	now.Backend, now.Device = backend.CUDA, 1 // but for rounding
	old.ClassWeights, old.LRSchedule = "", "" // of a run that was begun before there were any
	old.Sampler = ""
	if err := now.SameResult(&old); err != nil {
		t.Errorf("settings that change no weight: %v", err)
	}
}
