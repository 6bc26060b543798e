package serve

import (
	"testing"
	"time"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/sample"
	"gdb/serve/protocol"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestLentBytes: plans count what a node and an edge of a batch take in an arena.
func TestLentBytes(t *testing.T) {
	for _, c := range []struct{ types, weights, places bool }{{}, {types: true},
		{weights: true}, {places: true}, {true, true, true}} {
		bytes := func(nodes, edges int) int64 {
			b := &sample.Batch{}
			b.Dense.NodeIDs, b.Dense.Nbrs = make([]sample.NodeID, nodes), make([]sample.NodeID,
				edges)
			b.Dense.NodeIDOffsets = []uint32{0, 1, uint32(nodes)} // all but the first have lists
			if c.types {
				b.Dense.Types = make([]uint32, edges)
			}
			if c.weights {
				b.Dense.Weights = make([]float32, edges)
			}
			if c.places {
				b.Dense.Places = make([]sample.Place, edges)
			}
			return int64((&packer{}).layout(b).bytes)
		}
		node, edge := lentBytes(c.types, c.weights, c.places)
		// Arrays of these sizes end at the end of a cache line.
		if got, want := bytes(320, 960)-bytes(64, 192), (320-64)*node+(960-192)*edge; got != want {
			t.Errorf("%+v: 256 nodes and 768 edges more take %d bytes, want %d", c, got, want)
		}
	}
}

// TestTimesOfBatches: what making batches took is counted from the first one on, each part of it
// by itself and no more than passed.
func TestTimesOfBatches(t *testing.T) {
	var none protocol.Stats
	r := start(t, coraStore(t), Options{})
	k, begun := r.connect(t), time.Now()
	stats := func() (st protocol.Stats) {
		f := k.must(protocol.KindStats, nil, nil, protocol.KindStatsNow)
		if err := f.Decode(&st); err != nil {
			t.Fatal(err)
		}
		return st
	}
	if st := stats(); st.Batches != 0 || st.Sample != 0 || st.Gather != 0 || st.Pack != 0 ||
		st.Requests != none.Requests {
		t.Errorf("before the first batch: %+v", st)
	}
	k.open(protocol.Open{Fanout: []int{5, 3}, Batch: 20, Seed: 1})
	before := protocol.Stats{}
	for epoch := range uint64(2) {
		k.start(epoch, 0)
		for b, err := k.next(); b != nil; b, err = k.next() {
			if err != nil {
				t.Fatal(err)
			}
			k.give(b)
		}
		st, passed := stats(), time.Since(begun).Seconds()
		if st.Batches != 7*(epoch+1) {
			t.Errorf("%d batches after %d epochs of 7", st.Batches, epoch+1)
		}
		for name, x := range map[string][2]float64{"sampling": {before.Sample, st.Sample},
			"gathering": {before.Gather, st.Gather}, "packing": {before.Pack, st.Pack}} {
			if x[1] <= x[0] || x[1] > passed {
				t.Errorf("%s took %g s, after %g s, in %g s", name, x[1], x[0], passed)
			}
		}
		if st.Requests <= before.Requests || st.Hits > st.Requests || st.RSSPeak < st.RSS {
			t.Errorf("%+v after %+v", st, before)
		}
		before = st
	}
}

// TestAnswersAreCounted: what an answer takes is counted until it was sent, piece by piece.
func TestAnswersAreCounted(t *testing.T) {
	s := New(Options{Store: coraStore(t), Memory: testMemory, Threads: 1})
	x := &session{server: s}
	for i, n := range []int64{1000, 24} {
		if err := x.take(n); err != nil {
			t.Fatal(err)
		}
		if want := []int64{1000, 1024}[i]; x.held != want || s.lookup.Used() != want {
			t.Errorf("%d bytes are held, %d are counted, want %d", x.held, s.lookup.Used(), want)
		}
	}
	if err := x.take(s.lookup.Limit()); err == nil || x.held != 1024 {
		t.Errorf("more than there is: %v, %d bytes are held", err, x.held)
	}
	for range 2 {
		if x.giveBack(); x.held != 0 || s.lookup.Used() != 0 {
			t.Errorf("%d bytes are held, %d are counted after", x.held, s.lookup.Used())
		}
	}
	share := int64(testMemory) / lookupShare
	if want := share - mem.HeapGarbage(share); s.lookup.Limit() != want {
		t.Errorf("lookups have %d bytes, want %d", s.lookup.Limit(), want)
	}
	if got := lookupBytes(1 << 40); got != lookupMost {
		t.Errorf("lookups have %d bytes of much memory, want %d", got, int64(lookupMost))
	}
}

// TestRowsTakeTheirRoom: an answer of rows takes their bytes, to the byte.
func TestRowsTakeTheirRoom(t *testing.T) {
	r := start(t, rowStore(t), Options{})
	k := r.connect(t)
	data := mem.BytesOf([]uint32{0, 1, 2, 3, 4})
	k.must(protocol.KindRows, nil, data, protocol.KindArrays) // the database is open
	for room, fits := range map[int64]bool{5 * 7 * 4: true, 5*7*4 - 1: false} {
		k.settle()
		held := r.lookup.Limit() - r.lookup.Used() - room
		if err := r.lookup.Reserve("others", held); err != nil {
			t.Fatal(err)
		}
		_, _, err := k.ask(protocol.KindRows, nil, data)
		if r.lookup.Release(held); (err == nil) != fits {
			t.Errorf("5 rows of 7 numbers in %d bytes: %v", room, err)
		}
	}
}

// rowStore has 30 nodes with 7 features.
func rowStore(t *testing.T) *layout.Store {
	t.Helper()
	g := layouttest.Random(3, 30, 90)
	g.Dim, g.Features = 7, layouttest.Features(30, 7)
	return layouttest.Build(t, vfs.NewMem(), "rows", g)
}
