package link

import (
	"context"
	"sync"
	"testing"

	"gdb/layout"
	"gdb/train/run"
	"gdb/train/runs"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// partitionsBytes is what the files of a run's vectors have.
func partitionsBytes(fs vfs.FS, dir string) (n int64) {
	names, _ := fs.List(dir) // none before the run begins
	for _, name := range names {
		if info, err := fs.Stat(fs.PathJoin(dir, name)); err == nil {
			n += info.Size()
		}
	}
	return n
}

// TestDiskSize: files of vectors take no more than twice the vectors and state, with checkpoints
// and evaluations at any time, as long as the buffer holds at most half of the partitions; and
// never more than the plan says.
func TestDiskSize(t *testing.T) {
	for name, held := range map[string]int{"adagrad": 2, "adam": 4, "most": 6} {
		t.Run(name, func(t *testing.T) {
			c := diskConfig("distmult")
			c.PartitionsInMemory, c.LogicalPartitions = held, 8
			c.Epochs, c.EvalEvery, c.CheckpointEvery, c.LR = 6, 1, 4, 5
			if name == "adam" {
				c.Optimizer, c.LR = name, 1
			}
			testDiskSize(t, c)
		})
	}
}

// testDiskSize trains and looks at the files before each change of any.
func testDiskSize(t *testing.T, c Config) {
	fs, most := vfs.NewMem(), int64(0)
	if _, err := vfs.Clone(mustCircle(t, true).FS(), fs, "kg.gdb", "kg.gdb"); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // of most: partitions are written beside each other
	watched := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			mu.Lock()
			defer mu.Unlock()
			most = max(most, partitionsBytes(fs, "kg.gdb/runs/t/"+runs.PartitionsDir))
		}
		return nil
	}))
	s, err := layout.Open(context.Background(), watched, "kg.gdb")
	if err != nil {
		t.Fatal(err)
	}
	worse := false // an epoch after an evaluation that was not the best
	_, err = Run(context.Background(), s, mustDevice(t), c, func(e run.Event) {
		r, ok := e.Epoch.(*runs.LinkEpoch)
		worse = worse || ok && r.Epoch < c.Epochs && !r.Best
	})
	if err != nil || !worse {
		t.Fatalf("%v; all evaluations but the last were the best: %v", err, !worse)
	}
	plan := planned(t, s, &c)
	limit, err := plan.DiskBytes(s.Meta())
	if err != nil {
		t.Fatal(err)
	}
	part, err := plan.PartBytes(s.Meta())
	if err != nil {
		t.Fatal(err)
	}
	all := int64(0)
	for i := range c.Partitions {
		all += part(i)
	}
	if held := c.PartitionsInMemory; held <= c.Partitions/2 && limit != 2*all {
		t.Errorf("with %d partitions in memory the plan says %d bytes, want twice %d", held, limit,
			all)
	}
	if most > limit || most < all {
		t.Errorf("files took %d bytes, and may take %d; vectors and state are %d", most, limit, all)
	}
}
