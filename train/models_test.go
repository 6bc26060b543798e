package train

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/run"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestEveryModelIsTheSame: whatever the model, weights and what the validation saw are the same bit
// for bit with caches, backends, neighbor caches, superbatches and bounds of memory of all kinds,
// with any number of threads, and after interruptions. Of the ways to hold and read the data some
// are drawn for each model; GDB_TEST_TRIALS=100 comes to all of them.
func TestEveryModelIsTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("trains every model in several ways")
	}
	trials, draw := newTrials(t, 1)
	onDisk := mustBuildOnDisk(t, t.TempDir())
	inMemory := mustBuild(t, planted(false))
	noteProfiles(t, inMemory)
	seen := map[string]string{}
	for _, c := range modelConfigs(testConfig()) {
		c.Epochs, c.Dropout = 2, 0.2
		t.Run(c.Run, func(t *testing.T) {
			run := c.Run
			want := wayOutcome(t, inMemory, mustDevice(t), way{io: blockdev.Memory, cfg: c})
			if other := seen[want]; other != "" {
				t.Errorf("the weights are those of %s", other)
			}
			seen[want] = run
			check := func(what string, got string) {
				t.Helper()
				if got != want {
					t.Errorf("%s: other weights", what)
				}
			}
			for i := range trials {
				for k, w := range drawnWays(draw, c) {
					w.cfg.Run = run + strconv.Itoa(10*i+k)
					check(w.String(), onWay(t, onDisk, inMemory, w))
				}
			}
			c.Run, c.Threads, c.Memory = run+"-least", 1, 1<<20
			c.Memory = leastMemory(t, c, mustPlan(t, inMemory))
			w := way{io: blockdev.Memory, cfg: c}
			check("the least memory, one thread", wayOutcome(t, inMemory, mustDevice(t), w))
		})
	}
}

// noteProfiles notes one for each number of threads, so that none is measured.
func noteProfiles(t testing.TB, s *layout.Store) {
	t.Helper()
	for threads := range 3 {
		noteProfile(t, s, Config{Process: setting.Process{Threads: threads + 1}}, diskProfile)
	}
}

// mustBuildOnDisk makes a store on disk, with profiles for every way to read it.
func mustBuildOnDisk(t testing.TB, dir string) *layout.Store {
	t.Helper()
	s := layouttest.Build(t, vfs.Default, dir, planted(false))
	for _, io := range backends {
		dev, err := blockdev.Open(blockdev.Options{Backend: io})
		if err != nil {
			continue // it is not here
		}
		for threads := range 3 {
			noteProfileOf(t, dev, s, Config{Process: setting.Process{Threads: threads + 1}},
				diskProfile)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
	return s
}

// drawnWays are one way of memory and one of a disk.
func drawnWays(draw *rand.Rand, c Config) (some []way) {
	all := ways()
	for _, memory := range []bool{false, true} {
		var w way
		for ok := false; !ok; ok = (w.io == blockdev.Memory) == memory && w.cfg.Dropout > 0 {
			of := all[draw.IntN(len(all))]
			w = of[draw.IntN(len(of))]
		}
		w.cfg.Model, w.cfg.Options, w.cfg.Threads = c.Model, c.Options, 1+draw.IntN(3)
		w.cfg.Precision, w.cfg.Hidden = c.Precision, c.Hidden
		some = append(some, w)
	}
	return some
}

// onWay trains on a way's device, or in memory where there is none.
func onWay(t *testing.T, onDisk, inMemory *layout.Store, w way) string {
	t.Helper()
	dev, err := blockdev.Open(blockdev.Options{Backend: w.io})
	if err != nil {
		t.Logf("without %s: %v", w.io, err)
		w.io = blockdev.Memory
		dev = mustDevice(t)
	}
	s := onDisk
	if w.io == blockdev.Memory {
		s = inMemory
	}
	got := wayOutcome(t, s, dev, w)
	if err := dev.Close(); err != nil && w.io != blockdev.Memory {
		t.Error(err)
	}
	return got
}

// TestEveryModelResumes: every model that is interrupted at steps drawn by a seed, on superbatches
// or not, ends as if it were not.
func TestEveryModelResumes(t *testing.T) {
	if testing.Short() {
		t.Skip("trains every model twice")
	}
	_, draw := newTrials(t, 1)
	for i, c := range modelConfigs(resumeConfig()) {
		c.Epochs, c.Run = 2, "t"
		t.Run(c.Model+c.Aggregate, func(t *testing.T) {
			want, weights := undisturbed(t, c)
			s, stops := mustBuild(t, planted(false)), 0
			noteProfile(t, s, c, diskProfile)
			for next := resumeVariant(c, uint64(i)); ; next = resumed(c.Run) {
				ctx, cancel := context.WithCancel(t.Context())
				left := 2 + draw.IntN(8)
				_, err := Run(ctx, s, mustDevice(t), next, func(run.Event) {
					if left--; left == 0 {
						cancel()
					}
				})
				cancel()
				if err == nil {
					break
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				stops++
			}
			if stops == 0 {
				t.Error("the run was never interrupted")
			}
			checkFinal(t, s, c, want, weights)
		})
	}
}
