package train

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gdb/train/run"
	"gdb/train/setting"
)

// macroConfig draws four batches at a time.
func macroConfig() Config {
	c := resumeConfig()
	c.MacroBatch = 4
	return c
}

// TestMacroBatches: a run that is interrupted within a macro-batch ends as one that is not,
// whatever the caches; it learns as well as without, and says that it draws neighbors at once.
func TestMacroBatches(t *testing.T) {
	c := macroConfig()
	want, weights := undisturbed(t, c)
	if plain, _ := undisturbed(t, resumeConfig()); want.Best < plain.Best-0.05 {
		t.Errorf("val %g, and %g without macro-batches", want.Best, plain.Best)
	}
	for _, cache := range []string{"auto", "belady", "sieve"} {
		s, c := mustBuild(t, planted(false)), macroConfig()
		if c.Cache = cache; cache != "auto" {
			c.FeatureCache = 4096
		}
		ctx, cancel := context.WithCancel(t.Context())
		steps, note := 0, ""
		_, err := Run(ctx, s, mustDevice(t), c, func(e run.Event) {
			if e.Started != nil {
				note = e.Started.Note
			}
			if e.Progress != nil {
				if steps++; steps == 6 {
					cancel()
				}
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if !strings.Contains(note, "approximate: the neighbors of 4 batches are drawn at once") {
			t.Errorf("the note is %q", note)
		}
		c.Run, c.Resume = "", c.Run
		mustRun(t, s, c)
		c.Run = c.Resume
		checkFinal(t, s, c, want, weights)
	}
}

// TestMacroBatchesAndLayers do not go together.
func TestMacroBatchesAndLayers(t *testing.T) {
	c := macroConfig()
	c.Sampler, c.Fanout, c.LayerSize = setting.SamplerLayer, nil, []int{60, 60}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--macro-batch") {
		t.Error(err)
	}
}
