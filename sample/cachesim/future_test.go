package cachesim

import (
	"context"
	"testing"

	"gdb/layout"
	"gdb/sample/rowcache"
	"gdb/sample/sampletest"
)

// seer knows all gathers to come: it counts Begin calls and evicts the row that is needed last,
// or does not keep the new one. It is here to show that the interface has room for such policies.
type seer struct {
	future [][]layout.NodeID
	now    int
	held   []layout.NodeID
	used   uint32
}

func (b *seer) Name() string                               { return "seer" }
func (b *seer) SlotBytes() int                             { return 0 }
func (b *seer) Start(held []layout.NodeID) []layout.NodeID { b.held = held; return nil }
func (b *seer) Begin([]layout.NodeID)                      { b.now++ }
func (b *seer) Hits([]uint32)                              {}

// next is when a node is needed after the gather under way.
func (b *seer) next(v layout.NodeID) int {
	for g := b.now; g < len(b.future); g++ {
		for _, u := range b.future[g] {
			if u == v {
				return g
			}
		}
	}
	return len(b.future)
}

func (b *seer) Place(v layout.NodeID) (uint32, bool) {
	if int(b.used) < len(b.held) {
		b.used++
		return b.used - 1, true
	}
	last, slot := b.next(v), -1
	for s, u := range b.held {
		if n := b.next(u); n > last {
			last, slot = n, s
		}
	}
	return uint32(max(slot, 0)), slot >= 0
}

func TestPolicyThatKnowsTheFuture(t *testing.T) {
	const gathers, size, bytes = 120, 30, 1500
	var future [][]layout.NodeID
	for g := range uint64(gathers) {
		future = append(future, trace(g, size))
	}
	checkPolicy(t, func() rowcache.Policy { return &seer{} }, nil)
	misses := map[string]uint64{}
	for _, p := range []rowcache.Policy{rowcache.NewSIEVE(), &seer{future: future}} {
		// With no SlotBytes seer gets a few slots more; give it the bytes of as many as SIEVE.
		size := int64(bytes)
		for rowcache.RowsIn(size, dim, p.SlotBytes()) > rowcache.RowsIn(bytes, dim, 5) {
			size--
		}
		f := mustCache(t, &sampletest.Rows{Count: nodes, Dim: dim}, p, size, nil)
		for _, ids := range future {
			if err := f.Gather(context.Background(), ids,
				make([]float32, len(ids)*dim)); err != nil {
				t.Fatal(err)
			}
		}
		s := f.Stats()
		misses[s.Policy] = s.Requests - s.Hits
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(misses)
	if misses["seer"]*10 > misses["sieve"]*8 {
		t.Errorf("misses %v: knowing the future saves too little", misses)
	}
}
