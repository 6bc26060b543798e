package train

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/sample/sampletest"
	"gdb/train/backend"
	"gdb/train/model"

	"github.com/RoaringBitmap/roaring/v2"
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
	s := mustBuild(t, skewed())
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
	set, held, err := loadSplit(t.Context(), s, "val", "", b)
	if err != nil || held != int64(set.GetSizeInBytes()) || b.Used() != before+held {
		t.Errorf("a split of %d bytes, of which %d are held and %d counted, %v",
			set.GetSizeInBytes(), held, b.Used()-before, err)
	}
}

// TestInferenceSets: what the sets of evaluation take is what the plan counts, and none is made of
// the nodes that are wanted, nor of features that are read as they are.
func TestInferenceSets(t *testing.T) {
	for _, c := range []struct {
		dims []int
		sets int
	}{{[]int{6, 5}, 1}, {[]int{6, 9}, 0}, {[]int{6, 9, 5}, 1}, {[]int{12, 5, 7, 3}, 3}} {
		g := sampletest.RMAT(14, 1<<13, 3)
		in := &inputs{meta: &kv.Meta{Nodes: g.Nodes()}, budget: mem.NewBudget(0), topology: g}
		be, err := backend.Open("cpu", backend.Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.SAGE{}.New(be, c.dims, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := &inference{in: in, model: m, lists: newLists(g), want: roaring.BitmapOf(3, 9000)}
		if err := f.need(context.Background()); err != nil {
			t.Fatal(err)
		}
		want := inferenceSetsBytes(model.SAGE{}, c.dims, g.Nodes())
		if got := in.budget.Used(); got != want || got != int64(c.sets)*4096 {
			t.Errorf("dims %v: sets of %d bytes, %d were planned, want %d sets", c.dims, got, want,
				c.sets)
		}
		f.lists.close()
		if err := be.Close(); err != nil {
			t.Error(err)
		}
		if err := f.freeSets(); err != nil || in.budget.Used() != 0 {
			t.Errorf("dims %v: %d bytes are left, %v", c.dims, in.budget.Used(), err)
		}
	}
}
