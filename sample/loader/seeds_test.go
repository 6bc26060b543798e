package loader

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/layouttest"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// TestSetBytesMost: no set that was read takes more than is counted before it is.
func TestSetBytesMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.Uint64Range(1, 1<<20).Draw(t, "nodes")
		step := rapid.Uint64Range(1, 1+nodes/3).Draw(t, "step")
		share := rapid.Uint64Range(1, 100).Draw(t, "percent")
		set := roaring.New()
		for v := uint64(0); v < nodes; v += step {
			if v*2654435761>>7%100 < share {
				set.Add(uint32(v))
			}
		}
		if rapid.Bool().Draw(t, "runs") {
			set.RunOptimize()
		}
		var stored bytes.Buffer
		if _, err := set.WriteTo(&stored); err != nil {
			t.Fatal(err)
		}
		read := roaring.New()
		if _, err := read.ReadFrom(&stored); err != nil {
			t.Fatal(err)
		}
		m := &kv.Meta{Nodes: nodes, Splits: []kv.SplitMeta{{Name: "train",
			Count: set.GetCardinality()}}}
		most := setBytesMost(m, "train")
		if got := int64(read.GetSizeInBytes()); got > most || most > setBytesMost(m, "labeled") {
			t.Fatalf("%d of %d nodes take %d bytes, %d were counted, for any set %d",
				set.GetCardinality(), nodes, got, most, setBytesMost(m, "labeled"))
		}
	})
}

// TestSplitsAreCounted: a split that does not fit is refused before it is loaded, and what is kept
// of one is counted.
func TestSplitsAreCounted(t *testing.T) {
	s := layouttest.Build(t, vfs.NewMem(), "store", layouttest.Skewed())
	var full *mem.LimitError
	if _, err := TrainNodes(t.Context(), s, "", mem.NewBudget(8)); !errors.As(err, &full) {
		t.Errorf("a split beyond the memory: %v", err)
	}
	b := mem.NewBudget(1 << 20)
	nodes, err := TrainNodes(t.Context(), s, "", b)
	if err != nil || b.Used() != 4*int64(len(nodes)) {
		t.Errorf("%d nodes to train on, %d bytes are counted, %v", len(nodes), b.Used(), err)
	}
	before := b.Used()
	set, held, err := LoadSplit(t.Context(), s, "val", "", b)
	if err != nil || held != int64(set.GetSizeInBytes()) || b.Used() != before+held {
		t.Errorf("a split of %d bytes, of which %d are held and %d counted, %v",
			set.GetSizeInBytes(), held, b.Used()-before, err)
	}
}

// TestSplitsOfOneMoment: beside somebody who replaces the splits again and again all that are
// loaded are of one moment, and none of them is damage.
func TestSplitsOfOneMoment(t *testing.T) {
	s := layouttest.Build(t, vfs.NewMem(), "store", layouttest.Skewed())
	own, err := s.Splits(t.Context(), "train", "val", "test")
	if err != nil {
		t.Fatal(err)
	}
	own["test"] = roaring.New()
	for i, v := range own["val"].ToArray() {
		if i%2 == 0 {
			own["val"].Remove(v)
			own["test"].Add(v)
		}
	}
	if err := s.Catalog().PutSplits(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	all := roaring.FastOr(own["train"], own["val"], own["test"])
	turns := [2]map[string]*roaring.Bitmap{own, {"train": own["test"], "val": own["train"],
		"test": own["val"]}}
	turn, done := make(chan int), make(chan error)
	go func() {
		var err error
		for i := range turn { // one beside each load: a writer without a pause keeps the lock
			err = errors.Join(err, s.Catalog().PutSplits(context.Background(), turns[i%2]))
		}
		done <- err
	}()
	for i := range 30 {
		turn <- i
		splits, err := LoadSplits(t.Context(), s, []string{"train", "val", "test"}, "",
			mem.NewBudget(1<<20))
		if err != nil {
			t.Error(err)
			break
		}
		got, sum := roaring.New(), uint64(0)
		for _, split := range splits {
			got.Or(split.Set)
			sum += split.Set.GetCardinality()
		}
		if !got.Equals(all) || sum != all.GetCardinality() {
			t.Errorf("%d nodes in all, %d different ones, of %d", sum, got.GetCardinality(),
				all.GetCardinality())
			break
		}
	}
	close(turn)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
