package train

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"gdb/train/run"
	"gdb/train/runs"
)

// TestTune: the order that was measured is kept with the run, and a run that was stopped goes on
// with it, to the bit.
func TestTune(t *testing.T) {
	s, c := mustBuild(t, planted(false)), testConfig()
	c.Model, c.Heads, c.Hidden, c.Tune, c.Epochs = "gat", 2, 8, true, 4
	state := func(name string, stop bool) []byte {
		c := c
		c.Run = name
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := Run(ctx, s, mustDevice(t), c, func(e run.Event) {
			if stop && e.Progress != nil && e.Progress.Epoch == 2 {
				cancel()
			}
		})
		if stop {
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("run %s was not stopped: %v", name, err)
			}
			_, err = Run(t.Context(), s, mustDevice(t), resumed(name), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, b := finalState(t, s, name)
		return b
	}
	state("a", false)
	kept, err := runs.Load(s, "a")
	if err != nil || !kept.Tune || kept.Order == nil {
		t.Fatalf("kept %v %v, %v", kept.Tune, kept.Order, err)
	}
	c.Order = kept.Order // what is measured may differ from run to run
	if !bytes.Equal(state("b", false), state("c", true)) {
		t.Error("a run that was stopped and resumed has other weights")
	}
}
