package train

import (
	"context"
	"slices"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/live/livetest"
	"gdb/train/embedding"
	"gdb/train/runs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestFromRunTyped: a run on a typed store whose nodes were numbered anew begins with the vectors
// that another learned, each of the node that it was learned of, and with drawn ones of new nodes.
// After a deletion of nodes it is refused.
func TestFromRunTyped(t *testing.T) {
	fs := vfs.NewMem()
	s := livetest.Shop(t, fs, "s")
	noteProfiles(t, s)
	c := testConfig()
	c.NodeEmbedding, c.Epochs = 4, 2
	mustRun(t, s, c)
	was := vectorsOf(t, s, c)
	s = livetest.Grow(t, fs, "s")
	next := still(c, c.Run)
	next.LR = 1e-30
	mustRun(t, s, next)
	alone := next
	alone.Run, alone.FromRun = "alone", ""
	mustRun(t, s, alone)
	is, drawn := vectorsOf(t, s, next), vectorsOf(t, s, alone)
	users, items := livetest.Users*4, livetest.Items*4
	more := livetest.MoreUsers * 4
	want := slices.Concat(was[:users], drawn[users:users+more], was[users:users+items],
		drawn[users+more+items:])
	if !slices.Equal(is, want) {
		t.Errorf("vectors are not those of the same nodes: %v\nwant %v", is, want)
	}
	s = livetest.Shrink(t, fs, "s")
	next.Run = "later"
	_, err := Run(context.Background(), s, mustDevice(t), next, nil)
	if err == nil || !strings.Contains(err.Error(), "snapshot 2 deleted nodes") {
		t.Errorf("after a deletion: %v", err)
	}
	if _, err := s.FS().Stat(s.Path("runs", "later")); err == nil {
		t.Error("the run was made")
	}
}

// vectorsOf returns the vectors of nodes that a run predicts with.
func vectorsOf(t *testing.T, s *layout.Store, c Config) []float32 {
	t.Helper()
	dir := runs.Open(s, c.Run)
	last, err := currentCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	table, err := embedding.New(embedding.Config{Nodes: s.Meta().Nodes, Dim: c.NodeEmbedding,
		Threads: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if err := table.Load(dir, last.name, last.pos.Steps, last.pos.HasBest); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(table.Rows())
}
