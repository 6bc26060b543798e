package partbuffer_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/partition"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/sample/partbuffer"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const nodes, dim, partsCount = 900, 3, 6

// bench is a store with a source of it, all open.
type bench struct {
	t     *testing.T
	graph layouttest.Graph
	src   *loader.Source
	train []sample.NodeID
}

func newBench(t *testing.T) *bench {
	g := layouttest.Random(8, nodes, 14_000)
	for v := range layout.NodeID(700) { // a hub
		g.Edges = append(g.Edges, layouttest.Edge{Src: v, Dst: 11})
	}
	g.Dim, g.Features = dim, layouttest.Features(nodes, dim)
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, graph: g, src: loader.NewSource(s, dev, mem.NewBudget(256<<20))}
	err = errors.Join(b.src.OpenGraph(t.Context(), topology.Options{CacheBytes: 1 << 20,
		Budget: b.src.Budget}), b.src.OpenRows(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	for v := sample.NodeID(1); v < nodes; v += 4 {
		b.train = append(b.train, v)
	}
	t.Cleanup(func() {
		if err := errors.Join(b.src.Close(), dev.Close()); err != nil {
			t.Error(err)
		}
		if b.src.Budget.Used() != 0 {
			t.Errorf("%d bytes left", b.src.Budget.Used())
		}
	})
	return b
}

// order returns an order with room for some partitions, one after the other.
func order(t testing.TB, policy partition.Policy, capacity int) *partition.Order {
	t.Helper()
	o, err := partition.NewOrder(partition.OrderSpec{Policy: policy, Parts: partsCount,
		Capacity: capacity, Logical: partsCount, TrainParts: 2, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// apart returns an order whose sets have no partition in common, where there is a choice.
func apart(t testing.TB, policy partition.Policy, capacity int) *partition.Order {
	t.Helper()
	o, err := partition.NewOrder(partition.OrderSpec{Policy: policy, Parts: partsCount,
		Capacity: capacity, Logical: (partsCount + capacity - 1) / capacity, TrainParts: 2,
		Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// buffer opens a buffer, of which the first nodes are those to train if sequential says so.
func (b *bench) buffer(sequential bool, o *partition.Order) *partbuffer.Buffer {
	return b.open(sequential, o, nil)
}

// hubs are nodes that stay in memory in tests; 11 has a long list.
var hubs = []sample.NodeID{0, 11, 63, 64, 500, 511, 512, 899}

// macro returns macro-batches with hubs, of uneven ranges of nodes.
func (b *bench) macro(o *partition.Order, reuse int, hubs []sample.NodeID) *partbuffer.Buffer {
	m := &partbuffer.Macro{Hubs: hubs, Reuse: reuse, SetEntries: b.src.Meta.Edges}
	for _, v := range hubs {
		m.HubEntries += uint64(len(b.graph.Lists(layout.In)[v]))
	}
	return b.open(false, o, m)
}

// open returns a buffer, of macro-batches if m is not nil.
func (b *bench) open(sequential bool, o *partition.Order, m *partbuffer.Macro) *partbuffer.Buffer {
	spec := partition.DealSpec{Nodes: nodes, Parts: partsCount, Piece: 4, Seed: 2}
	if sequential {
		spec.First = b.train
	}
	if m != nil {
		spec.Bounds = []sample.NodeID{0, 100, 180, 400, 401, 640, nodes}
	}
	d, err := partition.NewDeal(spec)
	if err != nil {
		b.t.Fatal(err)
	}
	buf, err := partbuffer.New(partbuffer.Config{Deal: d, Order: o, Train: b.train, Batch: 16,
		Seed: 9, Rows: b.src.Rows, Edges: b.src.Meta.Edges, Threads: 1, Budget: b.src.Budget,
		Macro: m})
	if err != nil {
		b.t.Fatal(err)
	}
	return buf
}

// epoch calls see with the batches of an epoch from one on, and returns their hashes.
func (b *bench) epoch(buf *partbuffer.Buffer, epoch, first uint64, workers int,
	see func(*sample.Batch)) (hashes []uint64) {
	l := loader.New(b.src, loader.Config{Seeds: b.train, Batch: 16, Fanout: []int{5, 4}, Seed: 9,
		Workers: workers, Ready: 1, Buffer: buf})
	e, err := l.Epoch(b.t.Context(), epoch, first)
	if err != nil {
		b.t.Fatal(err)
	}
	for {
		batch, err := e.Next(b.t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			b.t.Fatal(err)
		}
		if want := first + uint64(len(hashes)); batch.Index != want || batch.Epoch != epoch {
			b.t.Fatalf("batch %d of epoch %d is called %d of %d", want, epoch, batch.Index,
				batch.Epoch)
		}
		hashes = append(hashes, sample.BatchHash(batch))
		see(batch)
		batch.Release()
	}
	if err := errors.Join(e.Close(), l.Close()); err != nil {
		b.t.Fatal(err)
	}
	return hashes
}

func unseen(*sample.Batch) {}

// TestBatches checks that each training node comes once an epoch; that neighbors are in the lists
// of the graph, and in memory at the same time as their node; that all neighbors in memory come if
// they are no more than the fanout; that features equal the features of the store; and that there
// are as many batches as Batches says.
func TestBatches(t *testing.T) {
	b := newBench(t)
	lists := b.graph.Lists(layout.In)
	for name, c := range map[string]struct {
		policy   partition.Policy
		capacity int
		macro    bool
		hubs     []sample.NodeID
		reuse    int
	}{
		"apart":      {policy: partition.Dispersed, capacity: 2},
		"swapped":    {policy: partition.Beta, capacity: 2},
		"uneven":     {policy: partition.Dispersed, capacity: 4},
		"sequential": {policy: partition.Sequential, capacity: 3},
		"all":        {policy: partition.InMemory, capacity: partsCount},
		"macro":      {policy: partition.Dispersed, capacity: 2, macro: true},
		"hubs":       {policy: partition.Dispersed, capacity: 1, macro: true, hubs: hubs},
		"again":      {policy: partition.Dispersed, capacity: 3, macro: true, hubs: hubs, reuse: 3},
		"macro all":  {policy: partition.InMemory, capacity: partsCount, macro: true},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			o := apart(t, c.policy, c.capacity)
			var buf *partbuffer.Buffer
			if c.macro {
				buf = b.macro(o, c.reuse, c.hubs)
			} else {
				buf = b.buffer(c.policy == partition.Sequential, order(t, c.policy, c.capacity))
			}
			seen := map[sample.NodeID]int{}
			for epoch := range uint64(2) {
				hashes := b.epoch(buf, epoch, 0, 2, func(batch *sample.Batch) {
					for _, v := range batch.Seeds {
						seen[v]++
					}
					b.check(buf, batch, lists)
				})
				if n, err := buf.Batches(epoch); err != nil || n != uint64(len(hashes)) {
					t.Fatalf("%d batches, Batches says %d, %v", len(hashes), n, err)
				}
			}
			for _, v := range b.train {
				if seen[v] != 2*max(1, c.reuse) {
					t.Fatalf("node %d came %d times in 2 epochs", v, seen[v])
				}
			}
			checkThere(t, buf, c.hubs)
			if len(seen) != len(b.train) {
				t.Fatalf("%d seeds, %d nodes to train", len(seen), len(b.train))
			}
			if err := buf.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// checkThere: hubs are always in memory, and with their features.
func checkThere(t *testing.T, buf *partbuffer.Buffer, hubs []sample.NodeID) {
	t.Helper()
	s := buf.NewSession()
	defer s.Release()
	if err := s.Degrees(t.Context(), hubs, make([]uint32, len(hubs))); err != nil {
		t.Error(err)
	}
	x := make([]float32, dim*len(hubs))
	if err := buf.Features().Gather(t.Context(), hubs, x); err != nil {
		t.Error(err)
	}
}

// check holds a batch against the graph, and against what the buffer has in memory.
func (b *bench) check(buf *partbuffer.Buffer, batch *sample.Batch, lists [][]listfile.Edge) {
	d := &batch.Dense
	for i, v := range d.NodeIDs {
		if !slices.Equal(batch.X[i*dim:(i+1)*dim], b.graph.Features[int(v)*dim:int(v+1)*dim]) {
			b.t.Fatalf("features of node %d are %v", v, batch.X[i*dim:(i+1)*dim])
		}
	}
	whole := buf.NewSession()
	one := make([]uint32, 1)
	for i, v := range d.NodeIDs[d.NodeIDOffsets[1]:] {
		var here []sample.NodeID
		for _, e := range lists[v] {
			if whole.Degrees(b.t.Context(), []sample.NodeID{e.Nbr}, one) == nil {
				here = append(here, e.Nbr)
			}
		}
		drawn := d.Nbrs[d.NbrOffsets[i]:d.NbrOffsets[i+1]]
		most := 5
		if uint32(i)+d.NodeIDOffsets[1] < d.NodeIDOffsets[2] {
			most = 4
		}
		if len(drawn) != min(most, len(here)) {
			b.t.Fatalf("node %d has %d neighbors in memory, %d are drawn", v, len(here), len(drawn))
		}
		for _, u := range drawn {
			if !slices.Contains(here, u) {
				b.t.Fatalf("%d is drawn for node %d, whose neighbors in memory are %v", u, v, here)
			}
		}
	}
}

// TestAllInMemory: with all partitions in memory, batches are those without a buffer.
func TestAllInMemory(t *testing.T) {
	b := newBench(t)
	if err := b.src.OpenFeatures(t.Context(), loader.Cache{Policy: "none"}); err != nil {
		t.Fatal(err)
	}
	want := b.epoch(nil, 3, 0, 1, unseen)
	o := order(t, partition.InMemory, partsCount)
	for _, buf := range []*partbuffer.Buffer{b.buffer(false, o), b.macro(o, 1, nil)} {
		if got := b.epoch(buf, 3, 0, 1, unseen); !slices.Equal(got, want) {
			t.Error("other batches than without a buffer")
		}
		if err := buf.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestResume: an epoch that begins at any batch has the batches of the whole one from there on,
// whatever was in memory before and however many workers there are.
func TestResume(t *testing.T) {
	b := newBench(t)
	beta := order(t, partition.Beta, 2)
	b.resumes(func() *partbuffer.Buffer { return b.buffer(false, beta) })
	macro := apart(t, partition.Dispersed, 2)
	b.resumes(func() *partbuffer.Buffer { return b.macro(macro, 2, hubs) })
}

// resumes checks TestResume for buffers that open makes.
func (b *bench) resumes(open func() *partbuffer.Buffer) {
	t, buf := b.t, open()
	want := b.epoch(buf, 1, 0, 1, unseen)
	for first := range uint64(len(want)) {
		from, used := buf, b.src.Budget.Used()
		switch first % 3 {
		case 0: // of another process
			from = open()
		case 1:
			if err := from.Rest(); err != nil || b.src.Budget.Used() >= used {
				t.Fatalf("%d bytes at rest, %d before, %v", b.src.Budget.Used(), used, err)
			}
		}
		if got := b.epoch(from, 1, first, 2, unseen); !slices.Equal(got, want[first:]) {
			t.Errorf("from batch %d on: other batches", first)
		}
		if from != buf {
			if err := from.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := buf.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestBufferFaults: what cannot be read is an error, and the buffer can be used again; training
// nodes that no set has are one.
func TestBufferFaults(t *testing.T) {
	b := newBench(t)
	b.survives(b.buffer(false, order(t, partition.Dispersed, 2)))
	b.survives(b.macro(apart(t, partition.Dispersed, 2), 1, hubs))
	small := b.buffer(false, order(t, partition.Sequential, 2))
	if n, err := small.Batches(0); err == nil {
		t.Errorf("%d batches of nodes of which some are in no set", n)
	}
	if err := small.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := partition.NewDeal(partition.DealSpec{Nodes: nodes, Parts: partsCount, Piece: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = partbuffer.New(partbuffer.Config{Deal: d, Order: order(t, partition.Dispersed, 2),
		Macro: &partbuffer.Macro{}, Budget: b.src.Budget})
	if err == nil {
		t.Error("macro-batches of partitions that are no ranges")
	}
}

// survives checks that a buffer can be used after an epoch that was cancelled, and that one which
// is closed while it reads ahead ends.
func (b *bench) survives(buf *partbuffer.Buffer) {
	t := b.t
	want := b.epoch(buf, 0, 0, 1, unseen)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l := loader.New(b.src, loader.Config{Seeds: b.train, Batch: 16, Fanout: []int{5, 4}, Seed: 9,
		Workers: 1, Buffer: buf})
	if e, err := l.Epoch(ended, 1, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, %v", e, err)
	}
	if got := b.epoch(buf, 0, 0, 1, unseen); !slices.Equal(got, want) {
		t.Error("other batches after an error")
	}
	if err := buf.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestBytes: New takes what Bytes says, and with less memory it takes nothing.
func TestBytes(t *testing.T) {
	b := newBench(t)
	d, err := partition.NewDeal(partition.DealSpec{Nodes: nodes, Parts: partsCount, Piece: 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg := partbuffer.Config{Deal: d, Order: order(t, partition.Dispersed, 2), Train: b.train,
		Batch: 16, Rows: b.src.Rows, Edges: b.src.Meta.Edges}
	checkBytes(t, &cfg)
	d, err = partition.NewDeal(partition.DealSpec{Nodes: nodes,
		Bounds: []sample.NodeID{0, 100, 180, 400, 401, 640, nodes}})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Deal, cfg.Macro = d, &partbuffer.Macro{Hubs: hubs, HubEntries: 900, SetEntries: 5000}
	checkBytes(t, &cfg)
	if n := partbuffer.MacroBytes(&cfg, dim); n != 2*((260+239)*(4*dim+12)+4*5000) {
		t.Errorf("two macro-batches take %d bytes", n)
	}
	cfg.Order, cfg.Macro = order(t, partition.InMemory, partsCount), &partbuffer.Macro{}
	checkBytes(t, &cfg)
}

func checkBytes(t *testing.T, c *partbuffer.Config) {
	t.Helper()
	cfg, bytes := *c, partbuffer.Bytes(c, dim)
	for _, limit := range []int64{bytes, bytes - 1} {
		cfg.Budget = mem.NewBudget(limit)
		buf, err := partbuffer.New(cfg)
		if (err == nil) != (limit == bytes) || err == nil && cfg.Budget.Used() != bytes {
			t.Errorf("%d of %d bytes: %d taken, %v", limit, bytes, cfg.Budget.Used(), err)
		}
		if err == nil {
			err = buf.Close()
		}
		if cfg.Budget.Used() != 0 {
			t.Errorf("%d bytes left, %v", cfg.Budget.Used(), err)
		}
	}
}
