package superbatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/sample"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// minCache is Belady's rule written plainly: of what it held and the batch, it keeps the rows that
// are used next. Among rows that are used at the same time it keeps any; the hits are the same.
type minCache struct {
	slots int
	held  []sample.NodeID
}

// run returns the number of hits of each batch.
func (m *minCache) run(batches [][]sample.NodeID) (hits []int) {
	for i, b := range batches {
		n := 0
		all := slices.Clone(m.held)
		for _, v := range b {
			if slices.Contains(m.held, v) {
				n++
			} else {
				all = append(all, v)
			}
		}
		hits = append(hits, n)
		next := func(v sample.NodeID) int { return nextUse(batches[i+1:], v) }
		slices.SortStableFunc(all, func(a, b sample.NodeID) int { return next(a) - next(b) })
		m.held = all[:min(m.slots, len(all))]
	}
	return hits
}

// runInPlace is run where rows are used in slots: what a batch misses takes the place of rows that
// neither it nor the batch before has, the farthest ones; if there are not enough, that it has not.
// ok is false if there are still not enough.
func (m *minCache) runInPlace(batches [][]sample.NodeID) (hits []int, ok bool) {
	for i, b := range batches {
		n := 0
		for _, v := range b {
			if slices.Contains(m.held, v) {
				n++
			}
		}
		hits = append(hits, n)
		before := batches[max(i-1, 0)]
		if !m.place(b, before, batches[i+1:]) && !m.place(b, nil, batches[i+1:]) {
			return hits, false
		}
	}
	return hits, true
}

// place makes the cache hold a batch and the rows it has of the one before, if they fit.
func (m *minCache) place(b, before []sample.NodeID, later [][]sample.NodeID) bool {
	held := slices.Clone(b)
	var free []sample.NodeID
	for _, v := range m.held {
		if slices.Contains(b, v) {
			continue
		}
		if slices.Contains(before, v) {
			held = append(held, v)
		} else {
			free = append(free, v)
		}
	}
	if len(held) > m.slots {
		return false
	}
	slices.SortStableFunc(free, func(a, b sample.NodeID) int {
		return nextUse(later, a) - nextUse(later, b)
	})
	m.held = append(held, free[:min(m.slots-len(held), len(free))]...)
	return true
}

// nextUse is the first batch that has a node.
func nextUse(batches [][]sample.NodeID, v sample.NodeID) int {
	for t, later := range batches {
		if slices.Contains(later, v) {
			return t
		}
	}
	return math.MaxInt
}

// best is the most hits that any choice of rows has: over all sets that can be held after each
// batch. Nodes are below 8.
func best(slots int, batches [][]sample.NodeID) int {
	states := map[uint8]int{0: 0}
	for _, b := range batches {
		var batch uint8
		for _, v := range b {
			batch |= 1 << v
		}
		next := map[uint8]int{}
		for held, hits := range states {
			hits += ones(held & batch)
			all := held | batch
			for sub := all; ; sub = (sub - 1) & all {
				if have, ok := next[sub]; ones(sub) <= slots && (!ok || have < hits) {
					next[sub] = hits
				}
				if sub == 0 {
					break
				}
			}
		}
		states = next
	}
	most := 0
	for _, h := range states {
		most = max(most, h)
	}
	return most
}

func ones(x uint8) (n int) {
	for ; x != 0; x &= x - 1 {
		n++
	}
	return n
}

// passes plans superbatches in memory file systems.
type passes struct {
	dev     blockdev.Device
	budget  *mem.Budget
	ranges  ranges
	workers int
	memory  int64 // of accesses and of next uses: the rest is in files
	state   *cacheState
	seq     uint64
	rows    []sample.NodeID // what each slot really holds, by Keep alone
	before  []uint32        // in place: the slots of the batch before
	full    bool            // a batch did not fit
}

func newPasses(t rapid.TB, r ranges, slots int) *passes {
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory, QueueDepth: 2})
	if err != nil {
		t.Fatal(err)
	}
	p := &passes{dev: dev, budget: mem.NewBudget(0), ranges: r,
		rows: make([]sample.NodeID, slots)}
	if p.state, err = newCacheState(slots, p.budget); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *passes) close(t rapid.TB) {
	if err := p.state.Close(); err != nil {
		t.Error(err)
	}
	if err := p.dev.Close(); err != nil {
		t.Error(err)
	}
	if used := p.budget.Used(); used != 0 {
		t.Errorf("%d bytes are still counted", used)
	}
}

// superbatch runs all passes over batches, applies the changes, and returns the hits.
func (p *passes) superbatch(t rapid.TB, batches [][]sample.NodeID) (hits []int) {
	ctx := context.Background()
	p.seq++
	id := identity{FS: vfs.NewMem(), Dir: "", Seq: p.seq}
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	a, err := newAccesses(id, p.ranges, p.memory, p.budget)
	must(err)
	must(a.Add(p.state.Rows()))
	for _, b := range batches {
		must(a.Add(b))
	}
	must(a.Finish())
	opt := nextOptions{Memory: p.memory, Workers: p.workers}
	n, err := findNextUses(ctx, id, p.dev, a, opt, p.budget)
	must(err)
	a.Free()
	r, err := n.Read(ctx, p.dev, p.budget)
	must(err)
	next := func(turn uint32, nodes []sample.NodeID) []uint32 {
		uses := make([]uint32, len(nodes))
		must(r.Of(ctx, turn, nodes, uses))
		return uses
	}
	must(p.state.Begin(len(batches), n.Bits))
	for slot, v := range p.state.Rows() {
		p.state.Resume(slot, next(0, []sample.NodeID{v}))
	}
	var c changes
	for i, b := range batches {
		turn := uint32(i + 1)
		err := p.state.Step(turn, b, next(turn, b), &c)
		if hits = append(hits, c.Hits); errors.Is(err, errNoSlot) {
			p.full = true
			break
		}
		must(err)
		must(p.apply(b, &c))
	}
	p.state.UnpinAll()
	must(r.Close())
	must(n.Free())
	return hits
}

// apply does what the changes say, and checks that the rows that are taken from slots are there.
func (p *passes) apply(nodes []sample.NodeID, c *changes) error {
	hits := 0
	for i, s := range c.From {
		if s == 0 {
			continue
		}
		hits++
		if p.rows[s-1] != nodes[i] {
			return fmt.Errorf("node %d is to come from slot %d, which holds %d", nodes[i], s-1,
				p.rows[s-1])
		}
	}
	if hits != c.Hits || !slices.IsSorted(c.Keep) {
		return fmt.Errorf("%d hits, counted %d; kept %v", hits, c.Hits, c.Keep)
	}
	taken := map[uint32]bool{}
	if p.state.InPlace {
		if hits+len(c.Keep) != len(nodes) {
			return fmt.Errorf("%d hits and %d in new slots, of %d", hits, len(c.Keep), len(nodes))
		}
		if c.Alone {
			p.before = nil
		}
		for _, s := range append(p.before, c.From...) {
			if s != 0 {
				taken[s-1] = true // what the batches use stays
			}
		}
		p.before = slices.Clone(c.From)
		for k, i := range c.Keep {
			p.before[i] = c.Slots[k] + 1
		}
	}
	for k, i := range c.Keep {
		if taken[c.Slots[k]] || c.From[i] != 0 {
			return fmt.Errorf("position %d goes to slot %d, which is given twice, or is a hit", i,
				c.Slots[k])
		}
		taken[c.Slots[k]] = true
		p.rows[c.Slots[k]] = nodes[i]
	}
	return nil
}

// drawBatches draws batches of distinct nodes.
func drawBatches(t *rapid.T, nodes, batches, size int) (all [][]sample.NodeID) {
	for range rapid.IntRange(1, batches).Draw(t, "batches") {
		b := rapid.SliceOfNDistinct(rapid.IntRange(0, nodes-1), 1, min(size, nodes),
			rapid.ID[int]).Draw(t, "batch")
		var ids []sample.NodeID
		for _, v := range b {
			ids = append(ids, sample.NodeID(v))
		}
		all = append(all, ids)
	}
	return all
}

// TestHitsAreBeladys checks that every batch has the same hits as under the plain rule of Belady,
// over superbatches that follow each other, for any number of ranges, blocks, slots and batches.
func TestHitsAreBeladys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 40).Draw(t, "nodes")
		slots := rapid.IntRange(0, nodes+2).Draw(t, "slots")
		shift := rapid.IntRange(0, 6).Draw(t, "shift")
		p := newPasses(t, ranges{Shift: shift, Count: (nodes-1)>>shift + 1,
			Window: rapid.IntRange(1, 30).Draw(t, "window")}, slots)
		p.workers = rapid.IntRange(1, 3).Draw(t, "workers")
		p.memory = int64(rapid.SampledFrom([]int{0, 1, 5, 100}).Draw(t,
			"units")) * unitBytes
		defer p.close(t)
		plain := &minCache{slots: slots}
		for range rapid.IntRange(1, 3).Draw(t, "superbatches") {
			batches := drawBatches(t, nodes, 12, 10)
			// What a superbatch ends with is arbitrary where no use is known, so the plain cache
			// goes on from the same rows.
			plain.held = slices.Clone(p.state.Rows())
			got := p.superbatch(t, batches)
			if want := plain.run(batches); !slices.Equal(got, want) {
				t.Fatalf("hits %v, want %v", got, want)
			}
			if len(p.state.Rows()) > slots || !slices.Equal(p.state.Rows(),
				p.rows[:len(p.state.Rows())]) {
				t.Fatalf("held are %v, the slots have %v", p.state.Rows(), p.rows)
			}
		}
	})
}

// TestHitsInPlace checks that, where rows are used in slots, every batch has the same hits as under
// the plain rule, and that no slot is taken that the batch or the one before uses.
func TestHitsInPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 40).Draw(t, "nodes")
		slots := rapid.IntRange(0, nodes+2).Draw(t, "slots")
		p := newPasses(t, ranges{Shift: 3, Count: (nodes-1)>>3 + 1, Window: 5}, slots)
		defer p.close(t)
		p.state.InPlace = true
		plain := &minCache{slots: slots}
		for range rapid.IntRange(1, 3).Draw(t, "superbatches") {
			batches := drawBatches(t, nodes, 12, 10)
			plain.held, p.before = slices.Clone(p.state.Rows()), nil
			got := p.superbatch(t, batches)
			want, ok := plain.runInPlace(batches)
			if !slices.Equal(got, want) || ok == p.full {
				t.Fatalf("hits %v, too few slots %v; want %v, %v", got, p.full, want, !ok)
			}
			if p.full {
				return
			}
		}
	})
}

// TestNoChoiceHasMoreHits compares with all choices of rows, in small.
func TestNoChoiceHasMoreHits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(0, 6).Draw(t, "slots")
		batches := drawBatches(t, 6, 7, 4)
		p := newPasses(t, ranges{Shift: 2, Count: 2, Window: 3}, slots)
		defer p.close(t)
		sum := 0
		for _, h := range p.superbatch(t, batches) {
			sum += h
		}
		if want := best(slots, batches); sum != want {
			t.Fatalf("%d hits, the best choice has %d", sum, want)
		}
	})
}

// TestCapacities: a cache of nothing hits nothing; one of all rows reads each once.
func TestCapacities(t *testing.T) {
	draw := rng.NewStream(5)
	var batches [][]sample.NodeID
	seen := map[sample.NodeID]bool{}
	for range 300 {
		b := map[sample.NodeID]bool{}
		for range 50 {
			b[sample.NodeID(draw.Below(1000))] = true
		}
		var ids []sample.NodeID
		for v := range b {
			ids, seen[v] = append(ids, v), true
		}
		batches = append(batches, ids)
	}
	for _, slots := range []int{0, 1000, 5000} {
		r, err := planRanges(1000, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		p := newPasses(t, r, slots)
		hits, all := 0, 0
		for i, h := range p.superbatch(t, batches) {
			hits, all = hits+h, all+len(batches[i])
		}
		want := all - len(seen)
		if slots == 0 {
			want = 0
		}
		if hits != want {
			t.Errorf("%d slots: %d hits of %d, want %d", slots, hits, all, want)
		}
		p.close(t)
	}
}

// TestTurnSet compares with a sorted list.
func TestTurnSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 63, 64, 65, 4096, 4097, 300000}).Draw(t, "n")
		s, plain := newTurnSet(n), map[uint32]bool{}
		bytes := int64(0)
		for _, l := range s.Levels {
			bytes += 8 * int64(len(l))
		}
		if bytes != turnSetBytes(n) {
			t.Fatalf("%d bytes, said to be %d", bytes, turnSetBytes(n))
		}
		for range 40 {
			v := uint32(rapid.IntRange(0, n-1).Draw(t, "turn"))
			if rapid.Bool().Draw(t, "add") {
				s.Add(v)
				plain[v] = true
			} else if !s.Empty() {
				delete(plain, s.Last())
				s.Remove(s.Last())
			}
			want := uint32(0)
			for v := range plain {
				want = max(want, v)
			}
			if got := s.Last(); got != want || s.Empty() != (len(plain) == 0) {
				t.Fatalf("last is %d, empty %v, want %d of %v", got, s.Empty(), want, plain)
			}
		}
	})
}

// TestRanges: what is planned covers all nodes within the memory.
func TestRanges(t *testing.T) {
	for _, nodes := range []uint64{0, 1, 2, 1000, 1 << 20, 1<<20 + 1, 111e6, 1 << 32} {
		for _, memory := range []int64{64 << 10, 1 << 20, 16 << 20, 64 << 20, 1 << 30} {
			r, err := planRanges(nodes, memory)
			if err != nil {
				if nodes <= 111e6 && memory >= 16<<20 || memory >= 64<<20 {
					t.Error(err)
				}
				continue
			}
			last := int((max(nodes, 1) - 1) >> r.Shift)
			if last != r.Count-1 || r.Memory() > memory || r.Window < 1 {
				t.Errorf("%d nodes in %d: %+v of %d bytes", nodes, memory, r, r.Memory())
			}
		}
	}
}
