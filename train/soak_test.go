package train

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// soakWays are trainings of many epochs; turns is one whose phases take turns in memory.
func soakWays() map[string]Config {
	c := testConfig()
	c.Epochs, c.FeatureCache, c.Batch, c.Hidden = 10, 8<<10, 20, 4
	static, belady := c, c
	static.Cache, static.Topology = "static", "paged"
	belady.Cache = setting.CacheBelady
	small := belady
	small.Superbatch, small.Topology, small.NeighborCache = 3, "paged", 64<<10
	return map[string]Config{"static": static, "belady": belady, "small": small, "turns": belady}
}

// soakFiles may be open at the end of one epoch and not of another: superbatches are made, and the
// files of those that are used up are removed, beside training.
const soakFiles = 6

// soakTail is what the last epoch may hold besides: the last superbatch is longer by what would be
// too few batches for one more.
const soakTail = 4 << 20

// TestNothingGrows trains many epochs on a real file system. In the second half of them no more
// memory is counted than in the first, and no more descriptors are open than may be beside
// training: one per epoch would be found. Runtime files never take more than the storage they were
// given, those of superbatches in the making included.
func TestNothingGrows(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for many epochs")
	}
	for name, c := range soakWays() {
		t.Run(name, func(t *testing.T) {
			d, dir := newSickDisk(vfs.Default), t.TempDir()
			d.free = 4 * 60_000 // a quarter of it is for superbatches: a few batches
			layouttest.Build(t, d.FS, dir, planted(false))
			s, err := layout.Open(t.Context(), d, dir)
			if err != nil {
				t.Fatal(err)
			}
			if name == "turns" {
				c.Memory = turnMemory(t, s, c)
			}
			var most atomic.Int64 // in prep
			d.written = func(name string) {
				if !strings.Contains(name, "/prep/superbatch-") {
					return
				}
				n, err := treeBytes(d.FS, s.Path("prep", "superbatch-"+c.Run))
				if err != nil {
					t.Error(err)
				}
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); {
					old = most.Load()
				}
			}
			soak(t, s, c, &most)
		})
	}
}

func soak(t *testing.T, s *layout.Store, c Config, most *atomic.Int64) {
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	var storage int64
	var half runs.Epoch
	_, err = Run(context.Background(), s, dev, c, func(e run.Event) {
		if e.Started != nil && e.Started.Of.(*Begun).Plan.Superbatch != nil {
			storage = e.Started.Of.(*Begun).Plan.Superbatch.Storage
		}
		r, ok := e.Epoch.(*runs.Epoch)
		if !ok {
			return
		}
		if r.Epoch == c.Epochs {
			r.Held -= soakTail
		}
		if r.Epoch <= c.Epochs/2 {
			half.Held, half.Files = max(half.Held, r.Held), max(half.Files, r.Files)
		} else if r.Held > half.Held+half.Held/100 ||
			r.Files > half.Files+soakFiles {
			// Lists grow with the largest batch that they met: that is not each time the same.
			t.Errorf("epoch %d holds %d bytes and %d files, the first %d at most %d and %d",
				r.Epoch, r.Held, r.Files, c.Epochs/2, half.Held, half.Files)
		}
		if r.Held <= 0 || r.Held > c.Memory || r.RSSPeak < r.RSS {
			t.Errorf("epoch %d: %+v", r.Epoch, r)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := most.Load(); n > storage || c.Cache == setting.CacheBelady && n < storage/8 {
		t.Errorf("superbatches took %d bytes on disk, %d were given", n, storage)
	}
	checkPrep(t, s)
}

// TestStageTimes: of each stage of an epoch, the times that it worked and waited add up to the
// epoch. A wait counts when it ends, so that one which began before the epoch, while the one before
// was evaluated, makes the sum longer: but never longer than the run has taken so far.
func TestStageTimes(t *testing.T) {
	for name, want := range map[string]string{"sieve": "sample gather step",
		setting.CacheBelady: "sample plan sweep read gather step"} {
		s, c := mustBuild(t, planted(false)), testConfig()
		c.Epochs, c.Cache, c.FeatureCache, c.CheckpointEvery = 2, name, 8<<10, 3
		var begun time.Time
		_, err := Run(context.Background(), s, mustDevice(t), c, func(e run.Event) {
			if e.Started != nil {
				begun = time.Now()
			}
			if e.Epoch != nil {
				checkStages(t, e.Epoch.(*runs.Epoch), want, time.Since(begun).Seconds())
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func checkStages(t *testing.T, r *runs.Epoch, want string, sofar float64) {
	t.Helper()
	var names []string
	for _, s := range r.Stages {
		names = append(names, s.Name)
		whole, sum := float64(s.Workers)*r.Time, s.Busy+s.Starved+s.Blocked
		const rounding = 1e-9
		if s.Workers < 1 || s.Busy < 0 || s.Starved < 0 || s.Blocked < 0 ||
			sum < whole-rounding || sum > float64(s.Workers)*sofar {
			t.Errorf("epoch %d of %gs, %gs after the start: %+v", r.Epoch, r.Time, sofar, s)
		}
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("stages are %q, want %q", got, want)
	}
	if !strings.Contains(r.Engine(), "busy/starved/blocked sample ") {
		t.Errorf("the line of the epoch: %s", r)
	}
}
