package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/sample"
	"gdb/serve/protocol"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// smallMemory leaves lookups few MiB.
const smallMemory = 128 << 20

// allocated is what was ever made on the heap.
func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}

// checkFree waits until requests and answers count for nothing.
func (r *running) checkFree(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	fixed := int64(0) // what the database of lookups keeps
	if r.mu.db != nil {
		fixed = r.lookup.Limit()/4 + r.lookup.Limit()/16 + (4 << 20)
	}
	if used := r.lookup.Used(); used > fixed {
		t.Errorf("%d bytes of requests and answers are still counted", used)
	}
}

// TestAnnouncedIsNotMade: headers that announce much make nothing before it comes.
func TestAnnouncedIsNotMade(t *testing.T) {
	r := start(t, coraStore(t), Options{Memory: smallMemory})
	r.checkServes(t)
	before := allocated()
	some := make([]byte, 256<<10)
	for _, kind := range []protocol.Kind{protocol.KindRows, protocol.KindOpen, protocol.KindHello} {
		c := r.dial(t)
		defer func() { _ = c.Close() }()
		if _, err := c.Write(frame(0, 1<<30, uint16(kind), some...)); err != nil {
			t.Fatal(err)
		}
	}
	r.connect(t).must(protocol.KindStats, nil, nil, protocol.KindStatsNow)
	if made := allocated() - before; made > 32<<20 {
		t.Errorf("%d bytes were made for what was only announced", made)
	}
}

// wideStore has nodes with many features.
func wideStore(t *testing.T) *layout.Store {
	g := layouttest.Random(3, 300, 2500)
	g.Dim, g.Features = 3703, layouttest.Features(300, 3703)
	g.Classes, g.Labels = layouttest.ClassNames(3), make([]int32, 300)
	g.Splits = layouttest.Splits(300)
	return layouttest.Build(t, vfs.NewMem(), "wide", g)
}

// TestRequestsWithinMemory: requests and answers that do not fit are told to the client, which goes
// on, and make no more than the memory of lookups.
func TestRequestsWithinMemory(t *testing.T) {
	r := start(t, wideStore(t), Options{Memory: smallMemory})
	k := r.connect(t)
	few := mem.BytesOf([]uint32{1, 2})
	k.must(protocol.KindRows, nil, few, protocol.KindArrays)
	many := make([]uint32, 100_000)
	names := protocol.Names{Names: make([]string, 4<<20)}
	text, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	before := allocated()
	for _, c := range []struct {
		kind protocol.Kind
		body any
		data []byte
	}{
		{protocol.KindRows, nil, mem.BytesOf(many)},
		{protocol.KindNodes, json.RawMessage(text), nil},
		{protocol.KindNodes, json.RawMessage(`"` + strings.Repeat("x", 42<<20) + `"`), nil},
		{protocol.KindLabels, nil, mem.BytesOf(make([]uint32, 4<<20))},
		{protocol.KindNames, nil, mem.BytesOf(make([]uint32, 1<<20))},
		{protocol.KindNeighbors, protocol.Neighbors{Fanout: sample.All}, mem.BytesOf(many)},
	} {
		_, _, err := k.ask(c.kind, c.body, c.data)
		if err == nil || !strings.Contains(err.Error(), "ask for") {
			t.Errorf("request %d: %v", c.kind, err)
		}
		k.must(protocol.KindRows, nil, few, protocol.KindArrays)
		r.checkFree(t)
	}
	if made := allocated() - before - int64(len(text)) - 2*(42<<20); made > 150<<20 {
		t.Errorf("%d bytes were made for requests that were refused", made)
	}
}

// TestForeignFrames: who does not speak the protocol is told so before the connection ends.
func TestForeignFrames(t *testing.T) {
	r := start(t, coraStore(t), Options{})
	k := r.connect(t)
	if _, err := k.c.Write(frame(1<<31, 1<<31, 1)); err != nil {
		t.Fatal(err)
	}
	var failed protocol.Failed
	kind, f, _, err := k.receive()
	if err == nil {
		err = f.Decode(&failed)
	}
	if err != nil || kind != protocol.KindFailed || !strings.Contains(failed.Message, "speak") {
		t.Errorf("frame %d, %v, %+v", kind, err, failed)
	}
	if _, _, _, err := k.receive(); err == nil {
		t.Error("the connection goes on")
	}
}

// TestOddNodes: data that are no whole numbers of nodes are a mistake, not fewer nodes.
func TestOddNodes(t *testing.T) {
	k := start(t, coraStore(t), Options{}).connect(t)
	open := protocol.Open{Fanout: []int{5}, Batch: 5, Seed: 1, World: 1}
	for kind, body := range map[protocol.Kind]any{protocol.KindRows: nil, protocol.KindOpen: open} {
		_, _, err := k.ask(kind, body, []byte{1, 0, 0, 0, 2, 0})
		if err == nil || !strings.Contains(err.Error(), "6 bytes of nodes") {
			t.Errorf("request %d: %v", kind, err)
		}
	}
}

// TestLoadersAreFreed: loaders that were opened and closed leave nothing, those of a split and
// those of seeds of a client, and those that fail.
func TestLoadersAreFreed(t *testing.T) {
	r := start(t, coraStore(t), Options{Memory: smallMemory})
	seeds := make([]uint32, 2000)
	for i := range seeds {
		seeds[i] = uint32(i)
	}
	used := func() int64 {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.mu.src.Budget.Used()
	}
	stays := r.connect(t)
	stays.open(protocol.Open{Fanout: []int{5}, Batch: 50, Seed: 1})
	first := int64(0)
	for i := range 400 {
		k := r.connect(t)
		o := protocol.Open{Fanout: []int{5}, Batch: 50, Seed: uint64(i % 300), World: 1,
			Split: "train"}
		data := mem.BytesOf(seeds[:len(seeds)-i%5])
		if i%2 == 0 {
			data = nil
		}
		k.must(protocol.KindOpen, o, data, protocol.KindOpened)
		k.start(uint64(i), 0)
		if b, err := k.next(); b == nil || err != nil {
			t.Fatalf("loader %d: %v, %v", i, b, err)
		}
		k.close()
		other := r.connect(t)
		o.Batch, o.World = 5000, 3
		if _, _, err := other.ask(protocol.KindOpen, o, data); err == nil {
			t.Fatal("a loader without a batch for each client")
		}
		other.close()
		eventually(t, "loaders that were closed are still there", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.mu.feeds) == 1 && r.mu.here == 1
		})
		if i == 20 {
			first = used()
		}
	}
	if last := used(); last > first+64<<10 { // batches differ a little
		t.Errorf("%d bytes are counted after 20 loaders, %d after 400", first, last)
	}
	stays.start(0, 0)
	if b, err := stays.next(); b == nil || err != nil {
		t.Errorf("the loader of another: %v, %v", b, err)
	}
}

// TestSeedsAreCounted: seeds of a client are counted while its loader is there, once.
func TestSeedsAreCounted(t *testing.T) {
	r := start(t, coraStore(t), Options{})
	r.connect(t).open(protocol.Open{Fanout: []int{5}, Batch: 50, Seed: 1})
	heldBy := func(seeds int) int64 {
		k := r.connect(t)
		defer k.close()
		k.must(protocol.KindOpen, protocol.Open{Fanout: []int{5}, Batch: 50, Seed: 2, World: 1},
			mem.BytesOf(make([]uint32, seeds)), protocol.KindOpened)
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, f := range r.mu.feeds {
			if f.open.Seed == 2 && len(f.seeds) == seeds {
				return f.held
			}
		}
		return -1
	}
	for _, n := range []int{100, 5000} { // the frame of the second is counted while it comes
		if held := heldBy(n); held != int64(4*n) {
			t.Errorf("%d seeds are counted with %d bytes", n, held)
		}
	}
}

// TestLookupsInOneBudget: lookups are counted with the loaders, where they come first as well as
// where a loader does, and a cache that has filled the memory makes way for them.
func TestLookupsInOneBudget(t *testing.T) {
	st := coraStore(t)
	for _, lookupFirst := range []bool{false, true} {
		for _, cache := range []string{"auto", "sieve"} {
			t.Run(fmt.Sprint(cache, lookupFirst), func(t *testing.T) {
				r := start(t, st, Options{Memory: smallMemory})
				k := r.connect(t)
				if lookupFirst {
					k.must(protocol.KindRows, nil, nil, protocol.KindArrays)
				}
				k.open(protocol.Open{Fanout: []int{5}, Batch: 50, Seed: 1, Cache: cache})
				before, lookups := r.budget.Used(), r.lookup.Used()
				nodes := mem.BytesOf([]uint32{3, 5})
				k.must(protocol.KindRows, nil, nodes, protocol.KindArrays)
				k.must(protocol.KindNames, nil, nodes, protocol.KindNamed)
				if r.lookup.Used() == 0 {
					t.Error("lookups are not counted")
				}
				if more := r.lookup.Used() - lookups; cache == "auto" &&
					r.budget.Used() < before+more {
					t.Errorf("%d bytes were counted, and with %d of lookups %d", before, more,
						r.budget.Used())
				}
				if limit := r.budget.Limit(); r.budget.Used() > limit {
					t.Errorf("%d bytes of %d", r.budget.Used(), limit)
				}
			})
		}
	}
}

// TestLookupsThatDoNotOpen: a client whose lookup finds no memory for the database is told so, and
// may ask again.
func TestLookupsThatDoNotOpen(t *testing.T) {
	r := start(t, coraStore(t), Options{Memory: smallMemory})
	k, nodes := r.connect(t), mem.BytesOf([]uint32{1, 2})
	taken := r.lookup.Limit() - (1 << 20)
	if err := r.lookup.Reserve("a test", taken); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.ask(protocol.KindRows, nil, nodes); err == nil ||
		!strings.Contains(err.Error(), "memory") {
		t.Errorf("a lookup without memory for the database: %v", err)
	}
	r.lookup.Release(taken)
	k.must(protocol.KindRows, nil, nodes, protocol.KindArrays)
}

// TestServerEndsWithNothing: a server that ended holds nothing of what its clients opened, but the
// numbers of the 140 seeds, which end with it.
func TestServerEndsWithNothing(t *testing.T) {
	r := start(t, coraStore(t), Options{Memory: smallMemory})
	r.connect(t).open(protocol.Open{Fanout: []int{5}, Batch: 50, Seed: 1})
	if r.budget.Used() == 0 {
		t.Error("a loader is not counted")
	}
	r.stop()
	err := <-r.done
	if r.done <- nil; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := r.budget.Used(); n > mem.HeapCost(4*140) {
		t.Errorf("%d bytes are held", n)
	}
}
