//go:build cuda && cgo && linux

package cuda

import (
	"errors"
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/mem"
)

// prepared prepares lists in a block of their own, and sends it.
func prepared(on backend.Preparer, l backend.Lists) backend.Lists {
	b, err := on.TakeBlock(on.ListWords(l.Sizes()))
	if err != nil {
		panic(err)
	}
	in := on.ListsIn(b.Words, l.Sizes())
	copy(in.Off, l.Off)
	copy(in.Idx, l.Idx)
	copy(in.At, l.At)
	on.FinishLists(b.Words, &in)
	in.There = on.Send(b)
	return in
}

// TestPreparedLists: lists that were prepared give the bits of lists that a step is given, step
// after step in the same blocks, whose memory is counted and given back where it is short.
func TestPreparedLists(t *testing.T) {
	budget := mem.NewBudget(64 << 20)
	g, _ := mustOpenGPU(t, budget)
	for _, kind := range []string{"empty", "one", "huge", "hub", "popular", ""} {
		var results [2][][]float32
		for i := range results {
			mustBegin(t, g)
			o := newTrial(t, g, "prepared "+kind)
			if i == 1 {
				o.prepares = g
			}
			sums(o, kind, 60, 8)
			attention(o, kind, 60, 8)
			if err := g.Err(); err != nil {
				t.Fatal(err)
			}
			results[i] = o.x
		}
		for i, want := range results[0] {
			if !slices.Equal(mem.BytesOf(want), mem.BytesOf(results[1][i])) {
				t.Errorf("%s: result %d of prepared lists has other bits", kind, i)
			}
		}
	}
	for range StepsStaged { // all that was sent is back
		mustBegin(t, g)
	}
	before := budget.Used()
	if len(g.blocks.free) == 0 {
		t.Error("no block is used again")
	}
	if err := budget.Reserve("all", budget.Limit()-before+1); err != nil {
		t.Errorf("blocks that nobody has are not given back: %v", err)
	}
	var full *mem.LimitError
	if _, err := g.TakeBlock(64 << 20); !errors.As(err, &full) {
		t.Errorf("a block of more than there is: %v", err)
	}
	budget.Release(budget.Limit() - before + 1)
}

// TestBlocksFit: a block of enough words is used again, and one that is too small makes place.
func TestBlocksFit(t *testing.T) {
	budget := mem.NewBudget(0)
	g, _ := mustOpenGPU(t, budget)
	take := func(words int) *backend.Block {
		b, err := g.TakeBlock(words)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := take(20000)
	g.DropBlock(b)
	if again := take(5000); again.Memory != b.Memory || len(again.Words) != 5000 {
		t.Errorf("%d words in other memory", len(again.Words))
	}
	g.DropBlock(b)
	used := budget.Used()
	if more := take(40000); len(more.Words) != 40000 || budget.Used() >= used+4*40000*9/8 {
		t.Errorf("a block of %d words, and %d bytes are counted, before %d", len(more.Words),
			budget.Used(), used)
	} else {
		g.DropBlock(more)
	}
}
