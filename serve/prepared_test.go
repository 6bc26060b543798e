package serve

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/sample"
	"gdb/serve/protocol"
	"gdb/train/plan"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// prepared is a loader whose epochs are prepared as superbatches.
var prepared = protocol.Open{Fanout: []int{4, 3}, Batch: 16, Seed: 5, World: 1, Split: "train",
	Cache: "belady"}

// nodesOfLarge are the nodes of a graph whose features take more than preparing batches does.
const nodesOfLarge = 3000

func largeGraph() layouttest.Graph {
	g := layouttest.Random(3, nodesOfLarge, 15000)
	g.Dim, g.Features = 2048, layouttest.Features(nodesOfLarge, 2048)
	g.Classes, g.Labels = layouttest.ClassNames(3), make([]int32, nodesOfLarge)
	g.Splits = layouttest.Splits(nodesOfLarge)
	return g
}

func largeStore(t *testing.T) *layout.Store {
	return layouttest.Build(t, vfs.NewMem(), "large", largeGraph())
}

// startShort starts a server whose memory is little more than a loader needs, so that not all
// features fit.
func startShort(t *testing.T, st *layout.Store, o protocol.Open) *running {
	t.Helper()
	for memory := int64(64 << 20); memory < testMemory; memory += 1 << 20 {
		r := start(t, st, Options{Memory: memory})
		f, err := r.open(t.Context(), &o, &protocol.Frame{})
		var small *plan.TooSmallError
		var full *mem.LimitError
		switch {
		case errors.As(err, &small), errors.As(err, &full):
			r.stop()
			continue
		case err != nil:
			t.Fatal(err)
		}
		if !f.loader.Prepares() {
			t.Fatalf("with %d bytes: %s", memory, r.mu.plan)
		}
		if err := r.release(f); err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Fatal("no memory is enough")
	return nil
}

// copied is a batch that was received, whose arrays stay.
type copied struct {
	epoch, index uint64
	names        []string
	arrays       [][]byte
}

// rest receives the batches of an epoch that was begun.
func (k *client) rest() (all []copied) {
	k.t.Helper()
	for {
		b, err := k.next()
		if err != nil {
			k.t.Fatal(err)
		}
		if b == nil {
			return all
		}
		c := copied{epoch: b.Epoch, index: b.Index}
		for i, a := range b.Arrays {
			end := len(b.bytes)
			if i+1 < len(b.Arrays) {
				end = b.Arrays[i+1].Offset
			}
			n := 4
			if strings.HasSuffix(a.Type, "8") {
				n = 8
			}
			for _, s := range a.Shape {
				n *= s
			}
			c.names = append(c.names, a.Name)
			c.arrays = append(c.arrays, bytes.Clone(b.bytes[a.Offset:min(a.Offset+n, end)]))
		}
		all = append(all, c)
		k.give(b)
	}
}

// given begins an epoch of some seeds.
func (k *client) given(epoch, first uint64, seeds []sample.NodeID) []copied {
	k.t.Helper()
	k.must(protocol.KindStart, protocol.Start{Epoch: epoch, First: first, Done: k.done},
		mem.BytesOf(seeds), protocol.KindDone)
	k.done = nil
	return k.rest()
}

func (k *client) epoch(epoch, first uint64) []copied {
	k.t.Helper()
	k.start(epoch, first)
	return k.rest()
}

// checkSame fails where batches are not the same to the bit.
func checkSame(t *testing.T, what string, got, want []copied) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%s: %d batches, want %d", what, len(got), len(want))
	}
	for i := range want {
		g, w := &got[i], &want[i]
		if g.epoch != w.epoch || g.index != w.index || !slices.Equal(g.names, w.names) {
			t.Fatalf("%s: batch %d is %d of %d with %v; want %d of %d with %v", what, i, g.index,
				g.epoch, g.names, w.index, w.epoch, w.names)
		}
		for k := range w.arrays {
			if !bytes.Equal(g.arrays[k], w.arrays[k]) {
				t.Fatalf("%s: batch %d: %s differs", what, i, w.names[k])
			}
		}
	}
}

// TestPreparedBatches: batches of superbatches are those that are made one by one: of whole epochs,
// of the rest of one, after an epoch that was left, and of seeds that the client gives.
func TestPreparedBatches(t *testing.T) {
	st := largeStore(t)
	usual := prepared
	usual.Cache = "sieve"
	want := start(t, st, Options{}).connect(t)
	want.open(usual)
	got := startShort(t, st, prepared).connect(t)
	got.open(prepared)
	for _, epoch := range []uint64{0, 1, 7, 3} {
		checkSame(t, "epoch", got.epoch(epoch, 0), want.epoch(epoch, 0))
	}
	checkSame(t, "rest", got.epoch(2, 3), want.epoch(2, 3))
	got.start(4, 0)
	if b, err := got.next(); err != nil {
		t.Fatal(err)
	} else {
		got.give(b)
	}
	checkSame(t, "after one that was left", got.epoch(4, 1), want.epoch(4, 1))
	var seeds []sample.NodeID
	for i := range 50 {
		seeds = append(seeds, sample.NodeID(2999-3*i))
	}
	batches := got.given(9, 0, seeds)
	checkSame(t, "given seeds", batches, want.given(9, 0, seeds))
	checkSame(t, "the rest of given seeds", got.given(9, 2, seeds), batches[2:])
	n := slices.Index(batches[0].names, arrayNodes)
	if first := mem.View[int64](batches[1].arrays[n]); first[0] != int64(seeds[16]) {
		t.Errorf("the second batch begins with node %d, want %d", first[0], seeds[16])
	}
}

// TestPreparedSizes: batches have the sizes that are given with their seeds, and sizes that do not
// fit are refused.
func TestPreparedSizes(t *testing.T) {
	st := largeStore(t)
	k := startShort(t, st, prepared).connect(t)
	k.open(prepared)
	var seeds []uint32
	for i := range uint32(29) {
		seeds = append(seeds, 2999-3*i)
	}
	begin := func(sizes []uint32, seeds []uint32) error {
		_, _, err := k.ask(protocol.KindStart, protocol.Start{Epoch: 9, Done: k.done, Sizes: sizes},
			mem.BytesOf(seeds))
		if err == nil {
			k.done = nil
		}
		return err
	}
	sizes := []uint32{3, 16, 1, 9}
	if err := begin(sizes, seeds); err != nil {
		t.Fatal(err)
	}
	got, first := k.rest(), uint32(0)
	if len(got) != len(sizes) {
		t.Fatalf("%d batches, want %d", len(got), len(sizes))
	}
	n := slices.Index(got[0].names, arrayNodes)
	for i, size := range sizes {
		for at, v := range mem.View[int64](got[i].arrays[n])[:size] {
			if v != int64(seeds[first:][at]) {
				t.Errorf("batch %d begins with node %d, want %d", i, v, seeds[first:][at])
			}
		}
		first += size
	}
	for want, err := range map[string]error{
		"opened for 16":       begin([]uint32{17, 12}, seeds),
		"without their seeds": begin([]uint32{3}, nil),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := begin([]uint32{3, 3}, seeds); err != nil {
		t.Fatal(err)
	}
	if _, err := k.next(); err == nil || !strings.Contains(err.Error(), "and 29 seeds") {
		t.Errorf("sizes of 6 of 29 seeds: %v", err)
	}
}

// TestGivenSeedsAreFreed: an epoch may have more seeds than the split, which are counted until it
// is over.
func TestGivenSeedsAreFreed(t *testing.T) {
	r := start(t, largeStore(t), Options{})
	k, o := r.connect(t), prepared
	o.Cache, o.Batch, o.Fanout = "sieve", 1000, []int{1}
	k.open(o)
	var seeds []sample.NodeID
	for i := range 4 * nodesOfLarge {
		seeds = append(seeds, sample.NodeID(i%nodesOfLarge))
	}
	used := int64(0)
	for i := range 4 {
		if got := k.given(uint64(i), 0, seeds); len(got) != 12 {
			t.Fatalf("%d batches of 12,000 seeds", len(got))
		}
		k.epoch(uint64(i), 0) // which waits until the one before is over
		if now := r.budget.Used(); i == 0 {
			used = now
		} else if now > used+8*nodesOfLarge { // batches differ a little; seeds take 16 each
			t.Errorf("%d bytes are counted after the first epoch, %d after %d", used, now, i+1)
		}
	}
}

// TestPreparedPlaces: batches of superbatches have the places of edges where they are asked for.
func TestPreparedPlaces(t *testing.T) {
	st := largeStore(t)
	o := prepared
	o.Places = true
	k := startShort(t, st, o).connect(t)
	k.open(o)
	g, checked := largeGraph(), 0
	lists := g.Lists(layout.In)
	for _, b := range k.epoch(0, 0) {
		array := func(name string) []int64 {
			return mem.View[int64](b.arrays[slices.Index(b.names, name)])
		}
		nodes, edges, places := array(arrayNodes), array(arrayEdges), array(arrayPlaces)
		for i, p := range places {
			from, to := nodes[edges[i]], nodes[edges[len(places)+i]]
			if got := lists[to][p].Nbr; int64(got) != from {
				t.Fatalf("place %d of the list of node %d has %d, want %d", p, to, got, from)
			}
			checked++
		}
	}
	if checked < 100 {
		t.Errorf("%d places", checked)
	}
}

// TestPreparedIsAlone: a loader that prepares has the memory of its server: another is refused
// until it is closed, and what it cannot do is refused by name.
func TestPreparedIsAlone(t *testing.T) {
	r := startShort(t, largeStore(t), prepared)
	first := r.connect(t)
	first.open(prepared)
	usual := prepared
	usual.Cache = "sieve"
	other := r.connect(t)
	if _, _, err := other.ask(protocol.KindOpen, usual, nil); err == nil ||
		!strings.Contains(err.Error(), "open the store once more") {
		t.Errorf("a loader beside one that prepares: %v", err)
	}
	_, _, err := first.ask(protocol.KindSample, protocol.Sample{}, mem.BytesOf([]uint32{1}))
	if err == nil || !strings.Contains(err.Error(), "all seeds of an epoch") {
		t.Errorf("a batch around seeds: %v", err)
	}
	_, _, err = first.ask(protocol.KindStart, protocol.Start{}, mem.BytesOf([]uint32{nodesOfLarge}))
	if err == nil || !strings.Contains(err.Error(), "nodes 0 to 2999") {
		t.Errorf("a seed that is no node: %v", err)
	}
	if got := first.epoch(0, 0); len(got) == 0 {
		t.Error("no batches after what was refused")
	}
	used := r.budget.Used()
	first.close()
	eventually(t, "the loader that was closed is still there", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.mu.src == nil
	})
	if now := r.budget.Used(); now >= used {
		t.Errorf("%d bytes are counted after the loader was closed, %d before", now, used)
	}
	other.open(usual)
	if got := other.epoch(0, 0); len(got) == 0 {
		t.Error("no batches of the next loader")
	}
	late := r.connect(t)
	if _, _, err := late.ask(protocol.KindOpen, prepared, nil); err == nil ||
		!strings.Contains(err.Error(), "is the only one of its server") {
		t.Errorf("a loader that prepares, beside another: %v", err)
	}
}

// TestGivenSeedsAreOfOneClient: clients that share a loader do not give the seeds of an epoch.
func TestGivenSeedsAreOfOneClient(t *testing.T) {
	r := start(t, largeStore(t), Options{})
	o := prepared
	o.Cache, o.World = "sieve", 2
	k := r.connect(t)
	k.open(o)
	_, _, err := k.ask(protocol.KindStart, protocol.Start{}, mem.BytesOf([]uint32{1, 2}))
	if err == nil || !strings.Contains(err.Error(), "loaders of one client") {
		t.Errorf("%v", err)
	}
}
