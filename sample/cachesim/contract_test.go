package cachesim

// The contract of cache policies: every rowcache.Policy runs it, those of rowcache too, against a
// twin, which is the same policy written plainly.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout"
	"gdb/sample/rowcache"
	"gdb/sample/sampletest"
)

// twin is a cache with a policy that is written as plainly as possible, with sets of nodes.
type twin interface {
	// Holds reports whether the cache holds the row of a node.
	Holds(v layout.NodeID) bool
	// Hit is called, in order, for each request of a gather whose row was held before that gather.
	Hit(v layout.NodeID)
	// Place is called afterwards for each other node of the gather whose row is not held by then.
	Place(v layout.NodeID)
}

// gather asks a twin for nodes, and returns the nodes whose rows it held.
func gather(w twin, nodes []layout.NodeID) (hits []layout.NodeID) {
	var missed []layout.NodeID
	for _, v := range nodes {
		if w.Holds(v) {
			hits = append(hits, v)
		} else {
			missed = append(missed, v)
		}
	}
	for _, v := range hits {
		w.Hit(v)
	}
	for _, v := range missed {
		if !w.Holds(v) {
			w.Place(v)
		}
	}
	return hits
}

// checkPolicy checks a policy: values, counts and memory through the cache, the rules of Place, and
// that each gather has the same hits as with the twin. newTwin may be nil.
func checkPolicy(t *testing.T, newPolicy func() rowcache.Policy, newTwin func(slots int) twin) {
	t.Run("rules", func(t *testing.T) { rules(t, newPolicy) })
	t.Run("values", func(t *testing.T) { values(t, newPolicy) })
	t.Run("concurrent", func(t *testing.T) { concurrent(t, newPolicy) })
	t.Run("errors", func(t *testing.T) { readErrors(t, newPolicy) })
	t.Run("allocations", func(t *testing.T) { allocations(t, newPolicy) })
	if newTwin != nil {
		t.Run("twin", func(t *testing.T) { sameHits(t, newPolicy, newTwin) })
	}
}

// trace returns the nodes of a gather. They are distinct, skewed so that low ids are hot, and move
// slowly from gather to gather.
func trace(gather uint64, size int) []layout.NodeID {
	stream, seen := rng.NewStream(rng.Key(gather)), map[layout.NodeID]bool{}
	var out []layout.NodeID
	for len(out) < size {
		x := stream.Float64()
		v := layout.NodeID((uint64(x*x*x*nodes) + gather/8) % nodes)
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}

// rules drives the policy alone, and keeps a plain record of what each slot holds.
func rules(t *testing.T, newPolicy func() rowcache.Policy) {
	for _, slots := range []int{0, 1, 2, 7, 64} {
		p, held, where := newPolicy(), make([]layout.NodeID, slots), map[layout.NodeID]uint32{}
		used := uint32(0)
		if p.Name() == "" || p.SlotBytes() < 0 {
			t.Fatalf("name %q, %d bytes a slot", p.Name(), p.SlotBytes())
		}
		for _, v := range p.Start(held) {
			if _, twice := where[v]; twice || int(used) == slots {
				t.Fatalf("%d slots: Start gives node %d twice or too many", slots, v)
			}
			held[used], where[v] = v, used
			used++
		}
		for g := range uint64(200) {
			var hits []uint32
			var missed []layout.NodeID
			batch := trace(g, 20)
			for _, v := range batch {
				if s, ok := where[v]; ok {
					hits = append(hits, s)
				} else {
					missed = append(missed, v)
				}
			}
			p.Begin(batch)
			p.Hits(hits)
			for _, v := range missed {
				s, keep := p.Place(v)
				if !keep {
					continue
				}
				if s > used || int(s) >= slots {
					t.Fatalf("%d slots, %d used: node %d goes to slot %d", slots, used, v, s)
				}
				if s == used {
					used++
				} else {
					delete(where, held[s])
				}
				held[s], where[v] = v, s
			}
		}
	}
}

func mustCache(t *testing.T, rows rowcache.Rows, p rowcache.Policy, bytes int64,
	b *mem.Budget) rowcache.Features {
	t.Helper()
	f, err := rowcache.New(context.Background(), rows, p,
		rowcache.Options{Bytes: bytes, Threads: 2, Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func checkRows(ids []layout.NodeID, out []float32) error {
	for i, v := range ids {
		for j := range dim {
			if got, want := out[i*dim+j], sampletest.Value(v, j); got != want {
				return fmt.Errorf("row %d, node %d, element %d: %v, want %v", i, v, j, got, want)
			}
		}
	}
	return nil
}

// values gathers through caches of many sizes, and also asks for the same node twice.
func values(t *testing.T, newPolicy func() rowcache.Policy) {
	for _, bytes := range []int64{0, 60, 200, 3000, 1 << 20} {
		budget := mem.NewBudget(0)
		f := mustCache(t, &sampletest.Rows{Count: nodes, Dim: dim}, newPolicy(), bytes, budget)
		requests := uint64(0)
		for g := range uint64(100) {
			ids := trace(g, 40)
			ids = append(ids, ids[3], ids[17])
			out := make([]float32, len(ids)*dim)
			if err := f.Gather(context.Background(), ids, out); err != nil {
				t.Fatal(err)
			}
			if err := checkRows(ids, out); err != nil {
				t.Fatalf("%d bytes, gather %d: %v", bytes, g, err)
			}
			requests += uint64(len(ids))
		}
		s := f.Stats()
		if s.Requests != requests || s.Hits > s.Requests || s.Used > s.Capacity ||
			s.Capacity != bytes || s.BytesRead < 4*dim*(s.Requests-s.Hits) {
			t.Errorf("%d bytes: %d requests, stats %+v", bytes, requests, s)
		}
		if err := f.Close(); err != nil || budget.Used() != 0 {
			t.Errorf("after Close: %v, %d bytes still counted", err, budget.Used())
		}
	}
}

// concurrent gathers from several goroutines, for the race detector and to find mixed up rows.
func concurrent(t *testing.T, newPolicy func() rowcache.Policy) {
	f := mustCache(t, &sampletest.Rows{Count: nodes, Dim: dim}, newPolicy(), 4000, nil)
	defer f.Close()
	var wg sync.WaitGroup
	for w := range uint64(4) {
		wg.Go(func() {
			for g := range uint64(150) {
				ids := trace(g+w, 50)
				out := make([]float32, len(ids)*dim)
				err := f.Gather(context.Background(), ids, out)
				if err == nil {
					err = checkRows(ids, out)
				}
				if err != nil {
					t.Errorf("worker %d, gather %d: %v", w, g, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// readErrors checks that a failed read is reported and that the cache is right afterwards.
func readErrors(t *testing.T, newPolicy func() rowcache.Policy) {
	rows := &sampletest.Rows{Count: nodes, Dim: dim}
	f := mustCache(t, rows, newPolicy(), 4000, nil)
	defer f.Close()
	bad := layout.NodeID(nodes - 1) // it is in no list of nodes to load
	rows.Fail = &bad
	out := make([]float32, 10*dim)
	if err := f.Gather(context.Background(), []layout.NodeID{1, bad, 2}, out); err == nil {
		t.Fatal("a failed read is not reported")
	}
	rows.Fail = nil
	ids := []layout.NodeID{2, bad, 1, 3}
	if err := f.Gather(context.Background(), ids, out); err != nil {
		t.Fatal(err)
	}
	if err := checkRows(ids, out); err != nil {
		t.Error(err)
	}
}

// allocations checks that a policy allocates its memory in Start and nothing at an access.
func allocations(t *testing.T, newPolicy func() rowcache.Policy) {
	const slots = 40
	p, held := newPolicy(), make([]layout.NodeID, slots)
	used := copy(held, p.Start(held))
	next, hits := layout.NodeID(0), []uint32{0}
	allocs := testing.AllocsPerRun(1000, func() {
		next++
		batch := [1]layout.NodeID{next}
		if used > 0 {
			hits[0] = uint32(next) % uint32(used)
			p.Hits(hits)
		}
		p.Begin(batch[:])
		if s, keep := p.Place(next); keep {
			held[s] = next
			used = max(used, int(s)+1)
		}
	})
	if allocs > 1 { // one is for batch
		t.Errorf("%v allocations an access", allocs-1)
	}
}

// sameHits compares the hits of cache and twin, in caches of one row up to all rows, with gathers
// that hold some nodes twice.
func sameHits(t *testing.T, newPolicy func() rowcache.Policy, newTwin func(slots int) twin) {
	total := 0
	for _, slots := range []int{1, 2, 9, 25, 60, 200, nodes, nodes + 50} {
		p := &counting{Policy: newPolicy()}
		f := mustCache(t, &sampletest.Rows{Count: nodes, Dim: dim}, p, bytesFor(p, slots), nil)
		if p.slots != slots {
			t.Fatalf("%d slots, want %d", p.slots, slots)
		}
		plain := newTwin(slots)
		for g := range uint64(300) {
			ids := trace(g+uint64(1000*slots), 1+int(g%37))
			if g%3 == 0 {
				ids = append(ids, ids[len(ids)/2], ids[0])
			}
			if err := f.Gather(context.Background(), ids,
				make([]float32, len(ids)*dim)); err != nil {
				t.Fatal(err)
			}
			want := gather(plain, ids)
			if !slices.Equal(p.hits, want) {
				t.Fatalf("%d slots: gather %d hits %v, the twin's hits are %v", slots, g, p.hits,
					want)
			}
			total += len(want)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if total == 0 {
		t.Error("no hit at all: the test shows nothing")
	}
}

// bytesFor returns the least size in bytes of a cache that holds slots rows.
func bytesFor(p rowcache.Policy, slots int) int64 {
	bytes := int64(0)
	for rowcache.RowsIn(bytes, dim, p.SlotBytes()) < slots {
		bytes++
	}
	return bytes
}

// counting is a policy that notes which nodes were hit.
type counting struct {
	rowcache.Policy
	slots int
	held  []layout.NodeID
	hits  []layout.NodeID
}

// Start notes the slots.
func (c *counting) Start(held []layout.NodeID) []layout.NodeID {
	c.slots, c.held = len(held), held
	return c.Policy.Start(held)
}

// Hits notes the nodes.
func (c *counting) Hits(slots []uint32) {
	c.hits = c.hits[:0]
	for _, s := range slots {
		c.hits = append(c.hits, c.held[s])
	}
	c.Policy.Hits(slots)
}
