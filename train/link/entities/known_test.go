package entities

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/layouttest"
	"gdb/layout/partition"
	"gdb/train/link/triples"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const knownRelations = 3

// drawnEdges are edges between few entities, so that some queries have several answers.
func drawnEdges(seed uint64, n int) (edges []triples.Triple) {
	r := rand.New(rand.NewPCG(seed, 3))
	for range n {
		edges = append(edges, triples.Triple{Head: r.Uint32N(tableRows) / 7,
			Relation: r.Uint32N(knownRelations), Tail: tableRows - 1 - r.Uint32N(tableRows)/5})
	}
	return edges
}

// mustEdgeStore writes a store that is nothing but edges of train.
func mustEdgeStore(t *testing.T, edges []triples.Triple) *layout.Store {
	t.Helper()
	fs := vfs.NewMem()
	m := &kv.Meta{UUID: kv.UUID{3, 1}, Nodes: tableRows, EdgeTypes: make([]string, knownRelations),
		EdgeSplits: []kv.EdgeSplitMeta{{Name: "val", Count: 7},
			{Name: "train", Count: uint64(len(edges))}}}
	err := fs.MkdirAll("s/edges", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	path := edgefile.Path("train")
	out, err := layout.CreateFile(fs, "s/"+path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := edgefile.NewWriter(out, edgefile.SpecOf(m, edgefile.Kind("train")), nil)
	for _, e := range edges {
		if err == nil {
			err = w.Add(e.Head, e.Tail, uint16(e.Relation))
		}
	}
	if err == nil {
		err = w.Finish()
	}
	if err != nil {
		t.Fatal(err)
	}
	file, err := out.Finish(path, edgefile.Kind("train"))
	if err != nil {
		t.Fatal(err)
	}
	m.Files = []kv.FileMeta{file}
	return layout.NewStore(fs, "s", m)
}

// knowns are known edges from each source, over tables of several blocks, with their tables and all
// edges.
type knowns struct {
	Known
	table *Table
	all   []triples.Triple
}

func newKnowns(t *testing.T, budget *mem.Budget) map[string]*knowns {
	t.Helper()
	train := drawnEdges(1, 400)
	others := [][]triples.Triple{drawnEdges(2, 90), drawnEdges(4, 60)}
	all, store := slices.Concat(train, others[0], others[1]), mustEdgeStore(t, train)
	stored, err := Stored(t.Context(), mustState(t), "rows", Shape{tableRows, tableDim, 150},
		Memory{Frames: 2})
	if err != nil {
		t.Fatal(err)
	}
	files := mustFiles(t, 6)
	paged, err := Paged(files, Memory{Frames: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	streamed, err := Streamed(stored, store, layouttest.Device(t), others, budget)
	if err != nil {
		t.Fatal(err)
	}
	sets, _, err := partition.OpenBuckets(t.Context(), store, layouttest.Device(t),
		partition.BucketOptions{Partition: files.spec.Map.Spec(), Memory: 16 << 20,
			Budget: mem.NewBudget(0)})
	if err != nil {
		t.Fatal(err)
	}
	whole := InMemory(tableValues(), tableDim)
	known := map[string]*knowns{
		"indexed":  {Indexed{triples.NewIndex(train, others[0], others[1])}, whole, all},
		"streamed": {streamed, stored, all},
		"bucketed": {Bucketed(paged, sets, others, budget), paged, all},
	}
	t.Cleanup(func() {
		err := errors.Join(stored.Close(), paged.Close(), sets.Close())
		for _, k := range known {
			err = errors.Join(err, k.Close())
		}
		if err != nil {
			t.Error(err)
		}
		if n := budget.Used(); n != 0 {
			t.Errorf("%d bytes are counted after Close", n)
		}
	})
	return known
}

// searched are the answers of a query among edges, found by going through them.
func searched(edges []triples.Triple, q triples.Query) (out []uint32) {
	for _, e := range edges {
		switch {
		case e.Relation != q.Relation:
		case q.Head && e.Tail == q.Entity:
			out = append(out, e.Head)
		case !q.Head && e.Head == q.Entity:
			out = append(out, e.Tail)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestKnownIn: of each query that is asked a block's known answers are those that a search through
// the edges of all splits finds, in any order of blocks, with memory for all blocks or for one.
func TestKnownIn(t *testing.T) {
	for _, limit := range []int64{0, 1, 10_000} {
		for name, k := range newKnowns(t, mem.NewBudget(0)) {
			if x, on := k.Known.(*OnDisk); on {
				x.budget = mem.NewBudget(limit)
			}
			for _, asked := range [][]triples.Triple{k.all[:60], k.all[430:], drawnEdges(9, 30)} {
				index := triples.NewIndex(asked)
				found := map[bool]int{}
				for _, block := range []int{0, 1, 5, 3, 2, 4, 0} {
					block = min(block, k.table.blocks()-1)
					known, err := k.In(t.Context(), block, index)
					if err != nil {
						t.Fatal(name, err)
					}
					inside := func(all []uint32) (in []uint32) {
						for _, e := range all {
							if of, _ := k.table.Place(e); of == block {
								in = append(in, e)
							}
						}
						return in
					}
					for i := range index.Len() {
						q, _ := index.At(i)
						got, want := inside(known.Answers(q)), inside(searched(k.all, q))
						if !slices.Equal(got, want) {
							t.Fatalf("%s, block %d: answers of %+v are %v, want %v", name, block,
								q, got, want)
						}
						found[q.Head] += len(want)
					}
				}
				if found[true] == 0 || found[false] == 0 {
					t.Fatalf("%s: queries for heads and tails have %v answers", name, found)
				}
			}
		}
	}
}

// TestKnownAnswers: the answers of a query come from all splits, each once, in ascending order.
func TestKnownAnswers(t *testing.T) {
	for name, k := range newKnowns(t, mem.NewBudget(0)) {
		for _, e := range []uint32{0, 3, 70, 141, 142, 800, 801, 900, 999} {
			for i := range uint32(2 * knownRelations) {
				q := triples.Query{Entity: e, Relation: i / 2, Head: i%2 == 0}
				got, err := k.Answers(t.Context(), q)
				if want := searched(k.all, q); err != nil || !slices.Equal(got, want) {
					t.Fatalf("%s: answers of %+v are %v, want %v (%v)", name, q, got, want, err)
				}
			}
		}
	}
}

// TestKnownWithout: of a list the edges that some split has are left out, and no others; the order
// stays.
func TestKnownWithout(t *testing.T) {
	for name, k := range newKnowns(t, mem.NewBudget(0)) {
		list := slices.Concat(k.all[390:420], drawnEdges(11, 40), k.all[480:500])
		swapped := k.all[0]
		swapped.Head, swapped.Tail = swapped.Tail, swapped.Head
		list = append(list, swapped, k.all[0])
		var want []triples.Triple
		for _, e := range list {
			if !slices.Contains(k.all, e) {
				want = append(want, e)
			}
		}
		got, err := k.Without(t.Context(), slices.Clone(list))
		if err != nil || !slices.Equal(got, want) || len(want) < 30 {
			t.Errorf("%s: %d edges are left, want %d: %v", name, len(got), len(want), err)
		}
	}
}

// TestPassBytes: queries take a quarter of what is free beside the known answers, within bounds.
func TestPassBytes(t *testing.T) {
	for name, k := range newKnowns(t, mem.NewBudget(0)) {
		want := int64(passBytesMost)
		if name == "indexed" {
			want = 0
		}
		for range 2 { // what was held before is given back
			if got := k.PassBytes(); got != want {
				t.Errorf("%s: %d bytes, want %d", name, got, want)
			}
		}
	}
	for name, k := range newKnowns(t, mem.NewBudget(0)) {
		x, on := k.Known.(*OnDisk)
		if !on {
			continue
		}
		// A stream takes its buffers, a bit for each entity and end, and counts of 7 blocks.
		if fixed := x.fixed.Bytes(); name == "streamed" && fixed != 8<<20+tableRows/4+32*7 {
			t.Errorf("a stream of edges takes %d bytes", fixed)
		}
		known := mem.HeapCost(2*64*550/int64(k.table.blocks()) + PassBytes)
		for _, limit := range []int64{200 << 20, 20 << 20, known + 4, known, 1 << 20, 2 << 30} {
			x.budget = mem.NewBudget(limit)
			want := min(passBytesMost, PassBytes+max(0, (limit-known)/4))
			if got := k.PassBytes(); got != want ||
				x.passes.Bytes() != mem.HeapCost(want-PassBytes) {
				t.Errorf("%s, limit %d: %d bytes, %d are held, want %d", name, limit, got,
					x.passes.Bytes(), want)
			}
		}
	}
	if got := KnownBytes(1000, 10); got != 2*64*100 {
		t.Errorf("known answers of a tenth of 1000 edges take %d bytes, want %d", got, 2*64*100)
	}
}

// TestKnownErrors: contexts that have ended and memory that is not there reach who asks.
func TestKnownErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, k := range newKnowns(t, mem.NewBudget(0)) {
		if name == "indexed" {
			continue
		}
		index := triples.NewIndex(k.all[:10])
		if _, err := k.In(ctx, 0, index); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := k.Answers(ctx, triples.Query{Entity: 3}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, answers: %v", name, err)
		}
		if _, err := k.Without(ctx, slices.Clone(k.all[:3])); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, without: %v", name, err)
		}
	}
	small := mem.NewBudget(1 << 20)
	store := mustEdgeStore(t, drawnEdges(1, 20))
	var full *mem.LimitError
	if _, err := Streamed(InMemory(tableValues(), tableDim), store, layouttest.Device(t), nil,
		small); !errors.As(err, &full) {
		t.Errorf("without memory for buffers: %v", err)
	}
}

// TestNear: near reads the buckets of its blocks alone, each once.
func TestNear(t *testing.T) {
	b := newKnowns(t, mem.NewBudget(0))["bucketed"].Known.(*OnDisk).train.(*bucketed)
	for first := range b.m.Parts() {
		for end := first + 1; end <= b.m.Parts(); end++ {
			got, want := 0, 0
			in := func(v uint32) bool {
				part, _ := b.m.Place(layout.NodeID(v))
				return part >= first && part < end
			}
			for _, e := range drawnEdges(1, 400) {
				if in(e.Head) || in(e.Tail) {
					want++
				}
			}
			if err := b.near(t.Context(), first, end, func(triples.Triple) { got++ }); err != nil ||
				got != want {
				t.Errorf("near %d to %d: %d edges, want %d: %v", first, end, got, want, err)
			}
		}
	}
}

// TestBlocksTogether: edges are read for as many blocks as half of the free memory has room for,
// and for one at least.
func TestBlocksTogether(t *testing.T) {
	for name, k := range newKnowns(t, mem.NewBudget(0)) {
		x, on := k.Known.(*OnDisk)
		if !on {
			continue
		}
		if x.count != int64(len(k.all)) {
			t.Errorf("%s: %d edges, want %d", name, x.count, len(k.all))
		}
		index := triples.NewIndex(k.all)
		if _, err := x.In(t.Context(), 1, index); err != nil {
			t.Fatal(err)
		}
		if len(x.found) != len(x.most)-1 || x.first != 1 {
			t.Errorf("%s: edges of %d blocks from %d on, want all but the first of %d", name,
				len(x.found), x.first, len(x.most))
		}
		for first := range x.most {
			for n := 1; first+n <= len(x.most); n++ { // there is room for n to the byte
				count, largest := uint64(0), uint64(0)
				for _, of := range x.most[first : first+n] {
					count, largest = count+of, max(largest, of)
				}
				bytes := 12*int64(count) + triples.Bytes(int64(largest))
				x.budget, x.found = mem.NewBudget(max(1, 2*mem.HeapCost(bytes))), nil
				if err := x.find(t.Context(), first); err != nil {
					t.Fatal(err)
				}
				end := n // blocks without edges have room too
				for first+end < len(x.most) && x.most[first+end] == 0 {
					end++
				}
				if len(x.found) != end || x.known.Bytes() != bytes {
					t.Errorf("%s: room of %d bytes: %d blocks from %d on in %d, want %d", name,
						bytes, len(x.found), first, x.known.Bytes(), end)
				}
				for i, found := range x.found {
					if of := x.most[first+i]; uint64(len(found)) != of {
						t.Errorf("%s: %d edges of block %d, want %d", name, len(found), first+i, of)
					}
				}
			}
		}
	}
}
