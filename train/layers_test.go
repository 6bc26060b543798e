package train

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gdb/blockdev"
	"gdb/layout/layouttest"
	"gdb/train/run"
	"gdb/train/setting"
)

// layered has batches sampled by layers of such sizes.
func layered(c *Config, sizes ...int) {
	c.Sampler, c.LayerSize, c.Fanout = setting.SamplerLayer, sizes, nil
}

// layeredConfig trains by layers.
func layeredConfig(c Config) Config {
	layered(&c, 40, 60)
	c.Epochs = 2
	return c
}

// TestLayersAreTheSame: however the graph and the features are held and read, a training by layers
// ends in the same weights, and with another size of layers in others.
func TestLayersAreTheSame(t *testing.T) {
	notShort(t)
	onDisk := mustBuildOnDisk(t, t.TempDir())
	inMemory := mustBuild(t, planted(false))
	noteProfiles(t, inMemory)
	noteProfiles(t, onDisk)
	c := layeredConfig(testConfig())
	want := wayOutcome(t, inMemory, mustDevice(t), way{io: blockdev.Memory, cfg: c})
	for i, change := range []func(w *way){
		func(w *way) { w.cfg.Cache, w.cfg.FeatureCache = "sieve", 8<<10 },
		func(w *way) { w.io, w.cfg.Topology = blockdev.Pread, "paged" },
		func(w *way) {
			w.io, w.cfg.Topology, w.cfg.NeighborCache = blockdev.Buffered, "paged", 32<<10
		},
		func(w *way) {
			w.io, w.cfg.Topology, w.cfg.Cache = blockdev.Pread, "paged", setting.CacheBelady
			w.cfg.FeatureCache, w.cfg.Superbatch = 8<<10, 3
		},
		func(w *way) { w.cfg.Threads = 1 },
	} {
		w := way{io: blockdev.Memory, cfg: c}
		change(&w)
		w.cfg.Run = fmt.Sprint("way", i)
		if got := onWay(t, onDisk, inMemory, w); got != want {
			t.Errorf("%s: other weights", w)
		}
	}
	layered(&c, 40, 61)
	if wayOutcome(t, inMemory, mustDevice(t), way{io: blockdev.Memory, cfg: c}) == want {
		t.Error("layers of another size gave the same weights")
	}
}

// TestLayersResume: a training by layers that is interrupted ends as if it were not, in evaluations
// that sample too.
func TestLayersResume(t *testing.T) {
	for i, model := range []string{"sage", "gcn"} {
		c := layeredConfig(resumeConfig())
		c.Model = model
		if i == 1 {
			c.EvalMode = setting.EvalSampled
		}
		want, weights := undisturbed(t, c)
		s := mustBuild(t, planted(false))
		noteProfile(t, s, c, diskProfile)
		stops := 0
		for next := resumeVariant(c, uint64(i)); ; next = resumed(c.Run) {
			ctx, cancel := context.WithCancel(t.Context())
			left := 4
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
	}
}

// TestLayersInTheirLeast: a training by layers keeps to the least memory that its plan accepts.
func TestLayersInTheirLeast(t *testing.T) {
	notShort(t)
	s := mustBuild(t, layouttest.Skewed())
	noteProfile(t, s, lawConfig(), diskProfile)
	for i, topology := range []string{"resident", "paged"} {
		c := lawConfig()
		layered(&c, 100, 100, 100)
		c.Run = topology
		c.Cache, c.Topology, c.Memory = []string{"none", setting.CacheBelady}[i], topology, 1<<20
		c.Memory = leastMemory(t, c, mustPlan(t, s))
		if _, err := Run(t.Context(), s, mustDevice(t), c, nil); err != nil {
			t.Errorf("%s, %d MiB: %v", topology, c.Memory>>20, err)
		}
	}
}
