package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/serve/protocol"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// plainBatches are the batches of an epoch as training has them: the plain twin of what is served.
func plainBatches(t *testing.T, st *layout.Store, batch int, fanout []int, epoch uint64,
	each func(b *sample.Batch)) {
	t.Helper()
	ctx := t.Context()
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dev.Close() }()
	src := loader.NewSource(st, dev, mem.NewBudget(0))
	src.EdgeTypes, src.EdgeWeights = len(st.Meta().EdgeTypes) > 0, st.Meta().Weighted
	defer func() { _ = src.Close() }()
	seeds, err := loader.TrainNodes(ctx, st, "", src.Budget)
	err = errors.Join(err, src.OpenGraph(ctx, topology.Options{Resident: true}), src.OpenRows(ctx),
		src.OpenLabels(ctx), src.OpenFeatures(ctx, loader.Cache{Policy: "none", Threads: 1}))
	if err != nil {
		t.Fatal(err)
	}
	l := loader.New(src, loader.Config{Seeds: seeds, Batch: batch, Fanout: fanout, Seed: 1})
	e, err := l.Epoch(ctx, epoch, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	for {
		b, err := e.Next(ctx)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		each(b)
		b.Release()
	}
}

// sameBatch compares a served batch with one of training.
func sameBatch(t *testing.T, got *served, want *sample.Batch) {
	t.Helper()
	nodes, x, d := got.ints(arrayNodes), got.floats(arrayRows), &want.Dense
	if len(nodes) != len(d.NodeIDs) || got.Seeds != len(want.Seeds) || got.Index != want.Index {
		t.Fatalf("batch %d of %d nodes, %d seeds: want %d of %d, %d", got.Index, len(nodes),
			got.Seeds, want.Index, len(d.NodeIDs), len(want.Seeds))
	}
	end := 0 // of the array before, in whole lines of the cache
	for _, a := range got.Arrays {
		if a.Offset != end {
			t.Errorf("array %s begins at byte %d, want %d", a.Name, a.Offset, end)
		}
		width := map[string]int{"i8": 8, "f4": 4}[a.Type]
		end = (a.Offset + len(got.array(a.Name, width)) + 63) / 64 * 64
	}
	for i, v := range want.Seeds {
		if nodes[i] != int64(v) || got.ints(arrayLabels)[i] != int64(want.Labels[i]) {
			t.Fatalf("seed %d is node %d", i, nodes[i])
		}
	}
	rows := map[int64][]float32{}
	for i, v := range d.NodeIDs {
		rows[int64(v)] = want.X[i*want.Dim : (i+1)*want.Dim]
	}
	for i, v := range nodes {
		if !slices.Equal(rows[v], x[i*want.Dim:(i+1)*want.Dim]) {
			t.Fatalf("features of node %d differ", v)
		}
	}
	wantEdges := map[sample.NodeID][]sample.NodeID{} // neighbors of each node, in their order
	for i := range d.Inner() {
		wantEdges[d.NodeIDs[int(d.NodeIDOffsets[1])+i]] = d.Nbrs[d.NbrOffsets[i]:d.NbrOffsets[i+1]]
	}
	edges, off := got.ints(arrayEdges), got.ints(arrayOffsets)
	n := len(edges) / 2
	if len(off) != d.Inner()+1 || n != len(d.Nbrs) || off[len(off)-1] != int64(n) {
		t.Fatalf("%d edges of %d nodes, want %d of %d", n, len(off)-1, len(d.Nbrs), d.Inner())
	}
	for i := range len(off) - 1 {
		var nbrs []sample.NodeID
		for k := off[i]; k < off[i+1]; k++ {
			nbrs = append(nbrs, sample.NodeID(nodes[edges[k]]))
			if edges[n+int(k)] != int64(i) {
				t.Fatalf("edge %d goes to %d, not %d", k, edges[n+int(k)], i)
			}
		}
		if want := wantEdges[sample.NodeID(nodes[i])]; !slices.Equal(nbrs, want) {
			t.Fatalf("neighbors of node %d are %v, want %v", nodes[i], nbrs, want)
		}
	}
	checkHops(t, got, d)
	checkEdges(t, got, d)
}

// checkEdges compares the types and weights of edges: the hops of a sample stand the other way
// round, each in its order.
func checkEdges(t *testing.T, got *served, d *sample.Dense) {
	t.Helper()
	var types []int64
	var weights []float32
	for k := d.Layers(); k > 0; k-- {
		for i := d.NodeIDOffsets[k]; i < d.NodeIDOffsets[k+1]; i++ {
			at := i - d.NodeIDOffsets[1]
			for j := d.NbrOffsets[at]; j < d.NbrOffsets[at+1]; j++ {
				if len(d.Types) > 0 {
					types = append(types, int64(d.Types[j]))
				}
				if len(d.Weights) > 0 {
					weights = append(weights, d.Weights[j])
				}
			}
		}
	}
	if !slices.Equal(types, got.ints(arrayTypes)) ||
		!slices.Equal(weights, got.floats(arrayWeights)) {
		t.Fatalf("types or weights of %d edges differ", len(d.Nbrs))
	}
}

// TestTypedEdges: batches of a store with types and weights have those of their edges.
func TestTypedEdges(t *testing.T) {
	g := layouttest.Random(3, 300, 2500)
	g.EdgeTypes, g.Weighted = []string{"a", "b", "c"}, true
	g.Dim, g.Features = 4, layouttest.Features(300, 4)
	g.Classes, g.Labels = layouttest.ClassNames(3), make([]int32, 300)
	g.Splits = layouttest.Splits(300)
	st := layouttest.Build(t, vfs.NewMem(), "typed", g)
	k := start(t, st, Options{}).connect(t)
	k.open(protocol.Open{Fanout: []int{4, 3}, Batch: 50, Seed: 1})
	k.start(0, 0)
	count := 0
	plainBatches(t, st, 50, []int{4, 3}, 0, func(want *sample.Batch) {
		got, err := k.next()
		if err != nil || got == nil {
			t.Fatalf("batch %d: %v", count, err)
		}
		if len(got.ints(arrayTypes)) == 0 || len(got.floats(arrayWeights)) == 0 {
			t.Fatal("no types or no weights")
		}
		sameBatch(t, got, want)
		k.give(got)
		count++
	})
	if count == 0 {
		t.Error("no batches")
	}
}

// checkHops compares how many nodes and edges each hop has.
func checkHops(t *testing.T, got *served, d *sample.Dense) {
	t.Helper()
	var nodes, edges []int
	for k := d.Layers(); k >= 0; k-- {
		first, end := d.NodeIDOffsets[k], d.NodeIDOffsets[k+1]
		nodes = append(nodes, int(end-first))
		if base := d.NodeIDOffsets[1]; k > 0 {
			edges = append(edges, int(d.NbrOffsets[end-base]-d.NbrOffsets[first-base]))
		}
	}
	if !slices.Equal(nodes, got.HopNodes) || !slices.Equal(edges, got.HopEdges) {
		t.Fatalf("hops of %v nodes, %v edges: want %v, %v", got.HopNodes, got.HopEdges, nodes,
			edges)
	}
}

// TestBatchesAreThoseOfTraining: for one client and for three, over two epochs, and from the middle
// of one.
func TestBatchesAreThoseOfTraining(t *testing.T) {
	st := coraStore(t)
	for _, world := range []int{1, 3} {
		r := start(t, st, Options{})
		var ranks []*client
		for rank := range world {
			k := r.connect(t)
			o := k.open(protocol.Open{Fanout: []int{5, 3}, Batch: 20, Seed: 1, Rank: rank,
				World: world})
			if o.Batches != uint64(7/world) || o.Seeds != 140 {
				t.Fatalf("%+v", o)
			}
			ranks = append(ranks, k)
		}
		for epoch := range uint64(2) {
			first := epoch // the second epoch begins with its second batch
			for _, k := range ranks {
				k.start(epoch, first)
			}
			plainBatches(t, st, 20, []int{5, 3}, epoch, func(want *sample.Batch) {
				k := ranks[want.Index%uint64(world)]
				if i := want.Index / uint64(world); i < first || i >= uint64(7/world) {
					return
				}
				got, err := k.next()
				if err != nil || got == nil {
					t.Fatalf("%v, %v", got, err)
				}
				sameBatch(t, got, want)
				k.give(got)
			})
			for _, k := range ranks {
				if b, err := k.next(); b != nil || err != nil {
					t.Fatalf("after the last: %v, %v", b, err)
				}
			}
		}
	}
}

// TestRanksShareReads: what one rank has read is in the cache of the other.
func TestRanksShareReads(t *testing.T) {
	st := coraStore(t)
	read := func(world int) uint64 {
		r := start(t, st, Options{})
		var ranks []*client
		for rank := range world {
			ranks = append(ranks, r.connect(t))
			ranks[rank].open(protocol.Open{Fanout: []int{5, 3}, Batch: 10, Seed: 1,
				Cache: "sieve", Rank: rank, World: world})
		}
		for epoch := range uint64(3) {
			for _, k := range ranks {
				k.start(epoch, 0)
			}
			for i := range 14 {
				k := ranks[i%world]
				b, err := k.next()
				if b == nil || err != nil {
					t.Fatalf("batch %d: %v, %v", i, b, err)
				}
				k.give(b)
			}
		}
		return r.stats().BytesRead
	}
	if one, two := read(1), read(2); one == 0 || float64(two) > 1.1*float64(one) {
		t.Errorf("two ranks read %d bytes, one reads %d", two, one)
	}
}

// TestRanksPastMemory: where rows do not fit, two ranks take the memory of one batch more than one
// rank does, each keeping a batch until it has the next. With so much more they read what one does.
func TestRanksPastMemory(t *testing.T) {
	st := layouttest.Build(t, vfs.NewMem(), "skewed", layouttest.Skewed())
	read := func(world int, memory int64) (bytes uint64, arenas int, largest int64) {
		r, others := start(t, st, Options{Memory: memory}), arenasHere(t)
		var ranks []*client
		before := make([]*served, world)
		for rank := range world {
			ranks = append(ranks, r.connect(t))
			opened := ranks[rank].open(protocol.Open{Fanout: []int{10, 10}, Batch: 20, Seed: 1,
				Cache: "sieve", Rank: rank, World: world})
			if rank == 0 && !strings.Contains(opened.Plan, "cache sieve") {
				t.Fatalf("no rows are left out: %s", opened.Plan)
			}
		}
		measuring := r.stats().BytesRead // of measuring the device, which is not done twice
		for epoch := range uint64(5) {
			for _, k := range ranks {
				k.start(epoch, 0)
			}
			for i := range 12 {
				b, err := ranks[i%world].next()
				if b == nil || err != nil {
					t.Fatalf("batch %d: %v, %v", i, b, err)
				}
				largest = max(largest, int64(b.Bytes))
				if old := before[i%world]; old != nil {
					ranks[i%world].giveNow(old)
					// It is back before the other asks, who would not wait for it for long.
					ranks[i%world].must(protocol.KindStats, nil, nil, protocol.KindStatsNow)
				}
				before[i%world] = b
				arenas = max(arenas, arenasHere(t)-others)
			}
		}
		return r.stats().BytesRead - measuring, arenas, largest
	}
	const memory = 106 << 20
	one, arenas, batch := read(1, memory)
	if arenas != 2 {
		t.Errorf("one rank has %d arenas, want 2", arenas)
	}
	two, arenas, _ := read(2, memory+batch+batch/16)
	if arenas != 3 {
		t.Errorf("two ranks have %d arenas, want 3", arenas)
	}
	t.Logf("a batch of %d bytes, one rank reads %d, two read %d", batch, one, two)
	if float64(two) > 1.1*float64(one) {
		t.Errorf("two ranks read %d bytes, one reads %d", two, one)
	}
}

// TestHeldBatchesStay: a client that keeps batches finds them as they were, until there is no
// memory for more; what it gives back then serves it.
func TestHeldBatchesStay(t *testing.T) {
	st := coraStore(t)
	r := start(t, st, Options{Memory: 140 << 20})
	k := r.connect(t)
	k.open(protocol.Open{Fanout: []int{10, 10}, Batch: 1, Seed: 1})
	k.start(0, 0)
	var held []*served
	var firsts []int64
	for {
		b, err := k.next()
		if err != nil {
			if !strings.HasPrefix(err.Error(), "held: ") {
				t.Fatal(err)
			}
			break
		}
		if b == nil {
			break // all fit
		}
		held, firsts = append(held, b), append(firsts, b.ints(arrayNodes)[0])
	}
	if len(held) < 4 {
		t.Fatalf("only %d batches could be kept", len(held))
	}
	for i, b := range held {
		if b.ints(arrayNodes)[0] != firsts[i] {
			t.Fatalf("batch %d changed while it was kept", i)
		}
		k.give(b)
	}
	k.start(1, 0)
	if b, err := k.next(); err != nil || b == nil {
		t.Fatalf("after all was given back: %v, %v", b, err)
	}
}

// TestClientsComeAndGo: what a client had is freed when it goes, whatever it was doing, and others
// are served on; a rank that leaves an epoch does not stop the others.
func TestClientsComeAndGo(t *testing.T) {
	r := start(t, coraStore(t), Options{})
	open := protocol.Open{Fanout: []int{5, 5}, Batch: 5, Seed: 1, World: 2}
	k := r.connect(t)
	k.open(open)
	for round := range 20 {
		other := r.connect(t)
		open.Rank = 1
		other.open(open)
		other.start(uint64(round), 0)
		k.start(uint64(round), 0)
		for range round % 3 { // no more than wait for the other meanwhile
			if _, err := other.next(); err != nil {
				t.Fatal(err)
			}
		}
		if round%2 == 0 { // in the middle of a request
			err := protocol.NewConn(other.c).Send(protocol.KindNext, protocol.Next{}, nil)
			if err != nil {
				t.Fatal(err)
			}
		}
		other.close()
		for n := 0; ; n++ {
			b, err := k.next()
			if err != nil {
				t.Fatal(err)
			}
			if b == nil {
				if n != 14 {
					t.Fatalf("%d batches in round %d", n, round)
				}
				break
			}
			k.give(b)
		}
	}
	k.close()
	eventually(t, "memory of clients that are gone is still there", func() bool {
		return arenasHere(t) == 0
	})
}

// TestRankIsGone: an epoch does not wait for a rank whose client was killed before it began, and
// waits for one that has closed its loader, which may open another.
func TestRankIsGone(t *testing.T) {
	r := start(t, coraStore(t), Options{})
	open := protocol.Open{Fanout: []int{5, 5}, Batch: 5, Seed: 1, World: 2}
	k := r.connect(t)
	k.open(open)
	open.Rank = 1
	for round := range 6 {
		other := r.connect(t)
		other.open(open)
		if round%3 == 1 {
			other.say(protocol.KindBye)
		}
		if round%3 != 2 {
			other.close()
		}
		k.start(uint64(round), 0)
		if round%3 == 2 { // while it is waited for
			other.close()
		} else if round%3 == 1 {
			other = r.connect(t)
			other.open(open)
			other.start(uint64(round), 0)
			other.close()
		}
		n := 0
		for ; ; n++ {
			b, err := k.next()
			if err != nil {
				t.Fatal(err)
			}
			if b == nil {
				break
			}
			k.give(b)
		}
		if n != 14 {
			t.Fatalf("%d batches in round %d", n, round)
		}
	}
	k.close()
}

// arenasHere counts the descriptors of shared memory that this process has.
func arenasHere(t *testing.T) (count int) {
	t.Helper()
	const dir = "/proc/self/fd"
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Skip(err)
	}
	for _, f := range files {
		to, err := os.Readlink(dir + "/" + f.Name())
		if err == nil && strings.HasPrefix(to, "/memfd:gdb") {
			count++
		}
	}
	return count
}

// TestEndsWithLastClient: a server of others' ends when they are gone, and not when somebody has
// looked whether it is there.
func TestEndsWithLastClient(t *testing.T) {
	r := start(t, coraStore(t), Options{UntilIdle: true,
		Notes: func(note string) { t.Errorf("it notes %q", note) }})
	for range 20 {
		c, err := net.Dial("unix", r.path)
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(20 * time.Millisecond)
	a, b := r.connect(t), r.connect(t)
	a.open(protocol.Open{Fanout: []int{5}, Batch: 5, Seed: 1})
	a.start(0, 0)
	a.close()
	if b.must(protocol.KindStats, nil, nil, protocol.KindStatsNow); len(r.done) > 0 {
		t.Fatal("it ended with a client there")
	}
	b.close()
	eventually(t, "it goes on without clients", func() bool { return len(r.done) > 0 })
}

// TestStops: a server that is interrupted answers no more, and its clients know at once.
func TestStops(t *testing.T) {
	r := start(t, coraStore(t), Options{})
	k := r.connect(t)
	k.open(protocol.Open{Fanout: []int{5}, Batch: 1, Seed: 1})
	k.start(0, 0)
	if _, err := k.next(); err != nil {
		t.Fatal(err)
	}
	r.stop()
	for {
		if _, err := k.next(); err != nil {
			break
		}
	}
}

// TestMistakes: what a client asks wrongly is told, and it goes on.
func TestMistakes(t *testing.T) {
	r := start(t, coraStore(t), Options{})
	k := r.connect(t)
	far := mem.BytesOf([]uint32{1, 2708})
	for _, c := range []struct {
		kind protocol.Kind
		body any
		data []byte
		want string
	}{
		{protocol.KindHello, protocol.Hello{Protocol: 99}, nil, "speaks version 99"},
		{protocol.KindNext, protocol.Next{}, nil, "open a loader first"},
		{protocol.KindStart, protocol.Start{}, nil, "open a loader first"},
		{protocol.Kind(99), nil, nil, "no request"},
		{protocol.KindRows, nil, far, "node 2708: the store has nodes 0 to 2707"},
		{protocol.KindNeighbors, protocol.Neighbors{Fanout: 0}, nil, "fanout 0"},
		{protocol.KindQuery, protocol.Query{Statement: "NONSENSE"}, nil, "NONSENSE"},
		{protocol.KindQuery, protocol.Query{Statement: "RETURN $x", Params: []byte("[1]")}, nil,
			"parameters: want an object"},
		{protocol.KindQuery, protocol.Query{Statement: "NEIGHBORS 7 INTO 'f.csv'"}, nil,
			"INTO writes a file where the store is"},
		{protocol.KindNodes, protocol.Names{Names: []string{"none"}}, nil, "none"},
		{protocol.KindOpen, protocol.Open{Batch: 0, World: 1}, nil, "batch of 0"},
		{protocol.KindOpen, protocol.Open{Batch: 1, World: 2, Rank: 2}, nil, "rank 2 of 2"},
		{protocol.KindOpen, protocol.Open{Batch: 1, World: 1}, nil, "no fanout"},
		{protocol.KindOpen, protocol.Open{Batch: 1, World: 1, Fanout: []int{0}, Split: "train"},
			nil, "fanout 0"},
		{protocol.KindOpen, protocol.Open{Batch: 1, World: 1, Fanout: []int{1}, Split: "train",
			Cache: "lru"}, nil, "cache lru: trainings keep rows by static, sieve or belady"},
		{protocol.KindOpen, protocol.Open{Batch: 1, World: 1, Fanout: []int{1}, Split: "all"}, nil,
			`split "all"`},
		{protocol.KindOpen, protocol.Open{Batch: 1, World: 1, Fanout: []int{1}, Split: "train@7"},
			nil, "no such split"},
		{protocol.KindOpen, protocol.Open{Batch: 99, World: 3, Fanout: []int{1}, Split: "train"},
			nil, "take smaller batches"},
		{protocol.KindOpen, protocol.Open{Batch: 9, World: 1, Fanout: []int{1}}, far, "node 2708"},
		{protocol.KindOpen, protocol.Open{Batch: 9, World: 1, Fanout: []int{1}, Split: "train",
			Memory: 1 << 20}, nil, "memory"},
	} {
		f, _, err := k.ask(c.kind, c.body, c.data)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("request %d %+v: %v, want %q: %+v", c.kind, c.body, err, c.want, f)
		}
	}
	k.open(protocol.Open{Fanout: []int{5}, Batch: 50, Seed: 1})
	for _, c := range []struct {
		kind protocol.Kind
		body any
		want string
	}{
		{protocol.KindNext, protocol.Next{}, "no epoch was begun"},
		{protocol.KindNext, protocol.Next{Done: []uint32{7}}, "does not have"},
		{protocol.KindStart, protocol.Start{First: 99}, "an epoch has 3"},
		{protocol.KindOpen, protocol.Open{Fanout: []int{5}, Batch: 50, World: 1}, "one loader"},
	} {
		if _, _, err := k.ask(c.kind, c.body, nil); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("request %d %+v: %v, want %q", c.kind, c.body, err, c.want)
		}
	}
	k.start(0, 0)
	if b, err := k.next(); err != nil || b.Seeds != 50 {
		t.Errorf("after all that: %v", err)
	}
}

// TestLookups checks that rows, neighbors and names equal those in the store.
func TestLookups(t *testing.T) {
	st := coraStore(t)
	r := start(t, st, Options{})
	k := r.connect(t)
	asked := mem.BytesOf([]uint32{7, 3, 7})
	f := k.must(protocol.KindNeighbors, protocol.Neighbors{Fanout: sample.All}, asked,
		protocol.KindArrays)
	numbers := mem.View[int64](f.Data)
	off, all := numbers[:4], numbers[4:]
	if off[3] != int64(len(all)) || !slices.Equal(all[:off[1]], all[off[2]:off[3]]) || off[1] == 0 {
		t.Errorf("neighbors %v at %v", all, off)
	}
	f = k.must(protocol.KindRows, nil, asked, protocol.KindArrays)
	rows := mem.View[float32](f.Data)
	if dim := st.Meta().Features[0].Dim; len(rows) != 3*dim ||
		!slices.Equal(rows[:dim], rows[2*dim:]) {
		t.Errorf("%d values", len(rows))
	}
	f = k.must(protocol.KindLabels, nil, asked, protocol.KindArrays)
	if y := mem.View[int64](f.Data); len(y) != 3 || y[0] != y[2] || y[0] < 0 || y[0] > 6 {
		t.Errorf("labels %v", y)
	}
	var names protocol.Names
	f = k.must(protocol.KindNames, nil, asked, protocol.KindNamed)
	if err := f.Decode(&names); err != nil || !slices.Equal(names.Names, []string{"7", "3", "7"}) {
		t.Errorf("%v, %v", names, err)
	}
	var table protocol.Table
	f = k.must(protocol.KindQuery, protocol.Query{Statement: "NEIGHBORS 7"}, nil,
		protocol.KindTable)
	if err := f.Decode(&table); err != nil || table.Rows != int(off[1]) {
		t.Errorf("%v, %v", table, err)
	}
}

// TestCancelledBeforeServe: a server that is told to end before it begins does.
func TestCancelledBeforeServe(t *testing.T) {
	r := start(t, coraStore(t), Options{})
	r.stop()
	if err := <-r.done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	r.done <- nil
}

// TestInterruptedWithClients: an interrupt is the error of a server also where it ends its last
// client, whose end would end it too.
func TestInterruptedWithClients(t *testing.T) {
	st := coraStore(t)
	for range 30 {
		r := start(t, st, Options{UntilIdle: true})
		r.connect(t)
		r.stop()
		err := <-r.done
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("an interrupted server ends with %v", err)
		}
		r.done <- err
	}
}

// TestNobodyComes: a server that nobody has come to when it is late ends with an error; one with
// clients goes on until the last of them is gone.
func TestNobodyComes(t *testing.T) {
	s, late := New(Options{Memory: testMemory, UntilIdle: true}), make(chan time.Time)
	go func() { late <- time.Time{} }()
	if err := s.wait(t.Context(), nil, late); err == nil {
		t.Error("it ends without an error")
	}
	s.clients.Add(1)
	go func() {
		late <- time.Time{}
		close(s.mu.idle)
	}()
	if err := s.wait(t.Context(), nil, late); err != nil {
		t.Errorf("with a client: %v", err)
	}
}

// fullTaker has no room for clients at first.
type fullTaker struct {
	errs  []error
	conns chan *net.UnixConn
}

func (f *fullTaker) AcceptUnix() (*net.UnixConn, error) {
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
	}
	c, ok := <-f.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

// TestNoRoomForClients: a server without descriptors for one more client waits, says so once, and
// goes on; other errors of its socket end it.
func TestNoRoomForClients(t *testing.T) {
	notes := 0
	s := New(Options{Store: coraStore(t), Memory: testMemory, Notes: func(string) { notes++ }})
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range pair {
		f := os.NewFile(uintptr(fd), "client")
		ends[i], err = net.FileConn(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	full := &fullTaker{errs: []error{unix.EMFILE, unix.ENFILE, unix.EMFILE, unix.ECONNABORTED},
		conns: make(chan *net.UnixConn, 1)}
	full.conns <- ends[0].(*net.UnixConn)
	close(full.conns)
	if err := s.accept(t.Context(), full); err != nil || notes != 1 {
		t.Errorf("%v, %d notes", err, notes)
	}
	if _, err := io.ReadFull(ends[1], make([]byte, 12)); err != nil {
		t.Errorf("no welcome for who was taken in the end: %v", err)
	}
	_ = ends[1].Close()
	s.work.Wait()
	broken := &fullTaker{errs: []error{unix.EINVAL}}
	if err := s.accept(t.Context(), broken); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a socket that is broken: %v", err)
	}
}
