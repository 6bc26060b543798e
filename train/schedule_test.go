package train

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// epochsOf trains and returns the records of the epochs.
func epochsOf(t *testing.T, s *layout.Store, c Config) (epochs []runs.Epoch) {
	t.Helper()
	_, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
		if e.Epoch != nil {
			epochs = append(epochs, *e.Epoch.(*runs.Epoch))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return epochs
}

// TestRates: each epoch reports the rate of its last step, which follows the schedule.
func TestRates(t *testing.T) {
	for _, schedule := range []string{setting.ScheduleConstant, setting.ScheduleCosine,
		setting.ScheduleStep, setting.SchedulePlateau} {
		c := testConfig()
		c.LRSchedule, c.Epochs, c.Patience, c.LR = schedule, 14, 0, 0.08
		halvings, since, best := 0, 0, math.Inf(-1)
		for i, e := range epochsOf(t, mustBuild(t, planted(false)), c) {
			if want := 0.08 * c.RateFactor(uint64(i), halvings); e.Rate != want {
				t.Errorf("%s, epoch %d: rate %v, want %v", schedule, i+1, e.Rate, want)
			}
			if since++; *e.Val > best {
				since, best = 0, *e.Val
			}
			if since == c.PlateauWait() {
				since, halvings = 0, halvings+1
			}
		}
		if schedule == setting.SchedulePlateau && halvings == 0 {
			t.Error("the rate of the plateau was never halved")
		}
	}
}

// TestWarmup: rates grow evenly to their own, over steps.
func TestWarmup(t *testing.T) {
	c := testConfig()
	c.Batch, c.Warmup, c.Epochs, c.LR = 1000, 4, 6, 0.02 // one step an epoch
	for i, e := range epochsOf(t, mustBuild(t, planted(false)), c) {
		if want := 0.02 * math.Min(1, float64(i+1)/4); math.Abs(e.Rate-want) > 1e-15 {
			t.Errorf("step %d: rate %v, want %v", i+1, e.Rate, want)
		}
	}
}

// TestSchedulesResume: what the rate depends on is in the checkpoint.
func TestSchedulesResume(t *testing.T) {
	for _, schedule := range []string{setting.ScheduleCosine, setting.SchedulePlateau} {
		c := resumeConfig()
		c.LRSchedule, c.Warmup, c.Clip, c.Patience = schedule, 7, 0.5, 6
		c.Epochs, c.LR = 5, 0.1
		checkResumes(t, planted(false), c)
	}
}

// TestNoScheduleChangesNothing: settings of before there were any give the same bits.
func TestNoScheduleChangesNothing(t *testing.T) {
	var states [][]byte
	for _, change := range []func(c *Config){func(c *Config) {}, func(c *Config) {
		c.LRSchedule, c.ClassWeights = "", ""
	}, func(c *Config) { c.Clip = 1e9 }} {
		s, c := mustBuild(t, planted(false)), testConfig()
		c.Epochs = 2
		change(&c)
		mustRun(t, s, c)
		_, state := finalState(t, s, c.Run)
		states = append(states, state)
	}
	for i, s := range states[1:] {
		if !bytes.Equal(s, states[0]) {
			t.Errorf("settings %d: other weights", i+1)
		}
	}
}

// TestMoreEpochsOfACosine are refused: every rate would be another.
func TestMoreEpochsOfACosine(t *testing.T) {
	s, c := mustBuild(t, planted(false)), testConfig()
	c.LRSchedule, c.Epochs = setting.ScheduleCosine, 2
	if res := mustRun(t, s, c); res.Extends {
		t.Error("a cosine is said to go on")
	}
	c.Resume, c.Epochs = c.Run, 4
	_, err := Run(t.Context(), s, mustDevice(t), c, nil)
	if err == nil || !strings.Contains(err.Error(), "with epochs 4: it began with 2") {
		t.Errorf("more epochs of a cosine: %v", err)
	}
}
