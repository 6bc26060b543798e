package link

import (
	"context"
	"slices"
	"strings"
	"testing"

	"gdb/layout/live/livetest"
	"gdb/train/runs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestFromRunTyped: a run on a typed store whose nodes were numbered anew begins with the vectors
// that another learned, each of the node that it was learned of, and with drawn ones of new nodes.
// After a deletion of nodes it is refused.
func TestFromRunTyped(t *testing.T) {
	fs := vfs.NewMem()
	s := livetest.Shop(t, fs, "s")
	c := circleConfig("distmult")
	c.Epochs, c.EvalEvery = 2, 2
	mustRun(t, s, c)
	was := arrayOf(t, lastRows(t, s, c.Run), runs.BestEntitiesName)
	s = livetest.Grow(t, fs, "s")
	next := still(c, c.Run)
	next.LR, next.EncoderLR = 1e-30, 1e-30
	alone := next
	alone.Run, alone.FromRun = "alone", ""
	mustRun(t, s, alone)
	mustRun(t, s, next)
	drawn := arrayOf(t, lastRows(t, s, "alone"), runs.EntitiesName)
	is := arrayOf(t, lastRows(t, s, "after"), runs.EntitiesName)
	users, items := livetest.Users*c.Dim, livetest.Items*c.Dim
	more := livetest.MoreUsers * c.Dim
	want := slices.Concat(was[:users], drawn[users:users+more], was[users:users+items],
		drawn[users+more+items:])
	if !slices.Equal(is, want) {
		t.Error("vectors are not those of the same nodes")
	}
	s = livetest.Shrink(t, fs, "s")
	next.Run = "later"
	_, err := Run(context.Background(), s, mustDevice(t), next, nil)
	if err == nil || !strings.Contains(err.Error(), "snapshot 2 deleted nodes") {
		t.Errorf("after a deletion: %v", err)
	}
	if made(s, "later") {
		t.Error("the run was made")
	}
}

// arrayOf returns the values of an array of a checkpoint.
func arrayOf(t *testing.T, all []runs.Array, name string) []float32 {
	t.Helper()
	for _, a := range all {
		if a.Name == name {
			return a.Values
		}
	}
	t.Fatalf("no array %s", name)
	return nil
}
