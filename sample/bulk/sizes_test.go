package bulk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout/topology"
	"gdb/sample"
)

// TestBytesByHand works out what passes and macro-batches are planned to take.
func TestBytesByHand(t *testing.T) {
	for memory, want := range map[int64]int64{300 << 20: 100 << 20, 384 << 20: 128 << 20,
		3 << 30: 128 << 20, 5: 1} {
		if got := PassWindowsBytes(memory); got != want {
			t.Errorf("of %d bytes %d are for windows, want %d", memory, got, want)
		}
	}
	// While it is drawn an edge has its index and its node, a node its id, and one with neighbors
	// its place in the order and in the batch, and where its list begins.
	const drawn, waits = 1000*(8+5) + 100*(4+3) + 40*(16+12), 1000*(4+5) + 100*(4+3) + 40*4
	if got := PassBatchBytes(100, 40, 1000, 3, 5); got != drawn {
		t.Errorf("a batch takes %d bytes, want %d", got, drawn)
	}
	if got := PassHeldBytes(100, 40, 1000, 3, 5); got != waits {
		t.Errorf("a batch that waits takes %d bytes, want %d", got, waits)
	}
	d := &sample.Dense{NodeIDs: make([]sample.NodeID, 10), Nbrs: make([]sample.NodeID, 40)}
	d.NodeIDOffsets = []uint32{0, 5, 10}
	d.Weights, d.Types = make([]float32, 40), make([]uint32, 40)
	d.Degrees = make([]uint32, 10)
	// Two batches of twice the size have 40 nodes and 160 entries, with two extras and one.
	plain, wide := int64(40*11+160*12), int64(40*5+160*4)
	if got, want := MacroBytes(2, d, 10, 1000), mem.HeapCost(4*(2*plain+wide)*5/4); got != want {
		t.Errorf("macro-batches take %d bytes, want %d", got, want)
	}
	// A graph of 15 nodes has 15 lists of 8 entries.
	plain, wide = 15*11+120*12, 15*5+120*4
	if got, want := MacroBytes(2, d, 10, 15), mem.HeapCost(4*(2*plain+wide)*5/4); got != want {
		t.Errorf("macro-batches of a small graph take %d bytes, want %d", got, want)
	}
}

// opened opens a drawing of a group that has drawn nothing.
func opened(t *testing.T, g *Passes) *drawing {
	t.Helper()
	d := &drawing{Passes: g, before: g.room.Bytes()}
	if err := d.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestAsManyAsFit: batches are begun until one of them has no room, and that one is left out, to
// the byte.
func TestAsManyAsFit(t *testing.T) {
	f := newFixture(t)
	g, _ := f.group(t, sample.Config{Fanout: []int{3, 4}, Seed: 9}, 5<<20, 64<<20, 0, nil, nil)
	d := opened(t, g)
	if err := d.start(t.Context(), 6); err != nil || len(d.members) != 6 {
		t.Fatalf("%d batches of 6 are begun: %v", len(d.members), err)
	}
	room := int64(0)
	for i, m := range d.members {
		if m.Epoch != 0 || m.Batch != uint64(i) || len(m.Frontier()) != batchSize {
			t.Fatalf("batch %d is batch %d of epoch %d with %d seeds", i, m.Batch, m.Epoch,
				len(m.Frontier()))
		}
		need := d.needOf(m, 0)
		if want := m.Bytes() + batchSize*16 + batchSize*3*8; need != want {
			t.Errorf("batch %d needs %d bytes, want %d", i, need, want)
		}
		if i < 3 {
			room += need
		}
	}
	for _, c := range []struct {
		room, before  int64
		begun, remain int
	}{{room, 0, 4, 3}, {room + 100, 100, 4, 3}, {room - 1, 0, 3, 2}, {1, 0, 1, 1},
		{room, room, 1, 1}} {
		d.members, d.before, g.cfg.Room = nil, c.before, c.room
		if err := d.start(t.Context(), 6); err != nil || len(d.members) != c.begun {
			t.Errorf("%+v: %d batches are begun: %v", c, len(d.members), err)
		}
		if d.trim(0); len(d.members) != c.remain {
			t.Errorf("%+v: %d batches are drawn", c, len(d.members))
		}
	}
}

// TestEdgesPerNode: batches are estimated by their fanout, or by the lists of the graph, until some
// were drawn, and then by these.
func TestEdgesPerNode(t *testing.T) {
	f := newFixture(t)
	g, _ := f.group(t, sample.Config{Fanout: []int{3, sample.All}, Seed: 9}, 5<<20, 64<<20, 0, nil,
		nil)
	d := opened(t, g)
	if got := d.perNode(0); got != 3 {
		t.Errorf("%g edges for each node, want 3", got)
	}
	if got, want := d.perNode(1), 620_000./30_000; got != want {
		t.Errorf("%g edges for each node where lists are drawn whole, want %g", got, want)
	}
	var batch sample.Dense
	if ok, err := g.take(t.Context(), 0, 0, &batch); !ok || err != nil {
		t.Fatal(ok, err)
	}
	n := g.next
	nodes, edges := [2]int{}, [2]int{}
	for step := range n {
		if ok, err := g.take(t.Context(), step/g.cfg.PerEpoch, step%g.cfg.PerEpoch,
			&batch); ok != (step > 0) || err != nil {
			t.Fatal(ok, err)
		}
		for hop := range 2 { // the seeds are the last nodes, and their lists the last lists
			first, end := batch.NodeIDOffsets[2-hop], batch.NodeIDOffsets[3-hop]
			nodes[hop] += int(end - first)
			skip := batch.NodeIDOffsets[1]
			edges[hop] += int(batch.NbrOffsets[end-skip] - batch.NbrOffsets[first-skip])
		}
	}
	for hop := range 2 {
		want := float64(edges[hop]) / float64(nodes[hop])
		if got := d.perNode(hop); got != want {
			t.Errorf("hop %d: %g edges for each node, want %g", hop, got, want)
		}
	}
	if held := g.room.Bytes(); held != 0 {
		t.Errorf("%d bytes are held of batches that are all taken", held)
	}
}

// mustSamplers returns a sampler that draws batches one by one.
func mustSamplers(t *testing.T, topo topology.Reader, c sample.Config) *sample.Samplers {
	t.Helper()
	s, err := sample.NewSamplers(1, func() (*sample.Sampler, error) {
		return sample.NewSampler([]topology.Reader{topo}, c)
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDrawnAlone: a batch that the group does not have is drawn by a worker, and is the same.
func TestDrawnAlone(t *testing.T) {
	f := newFixture(t)
	g, _ := f.group(t, sample.Config{Fanout: []int{3, 4}, Seed: 9}, 5<<20, 1<<20, 0, nil, nil)
	order, err := f.order(1)
	if err != nil {
		t.Fatal(err)
	}
	var first sample.Batch
	for i := range 2 {
		b := sample.Batch{Epoch: 1, Index: 3}
		b.Seeds = order.Seeds(3, nil)
		if err := g.Draw(t.Context(), 0, &b); err != nil || len(b.Dense.NodeIDs) <= batchSize {
			t.Fatalf("batch of %d nodes: %v", len(b.Dense.NodeIDs), err)
		}
		if i == 0 {
			first = b
		} else if !same(&first.Dense, &b.Dense) {
			t.Error("another batch, the second time")
		}
	}
	broken := errors.New("broken")
	g.next, g.cfg.Windows = 0, func() (*topology.Windows, error) { return nil, broken }
	if err := g.Draw(t.Context(), 0, &sample.Batch{}); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

// TestLessMemoryThanRoom: where the budget has less than there is room for, fewer batches are drawn
// together, and they are the same; without memory for one, others draw them.
func TestLessMemoryThanRoom(t *testing.T) {
	f, c := newFixture(t), sample.Config{Fanout: []int{3, 4}, Seed: 9}
	all, topo := f.group(t, c, 5<<20, 64<<20, 0, nil, nil)
	s, err := sample.NewSampler([]topology.Reader{topo}, c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, limit := range []int64{40 << 10, 110 << 10} {
		cfg := all.cfg
		cfg.Budget = mem.NewBudget(limit)
		cfg.Samplers = mustSamplers(t, topo, c)
		g, d := NewPasses(cfg), sample.Dense{}
		if ok, err := g.take(t.Context(), 0, 0, &d); !ok || err != nil || g.alone {
			t.Fatalf("%d bytes: %v, %v", limit, ok, err)
		}
		if g.next < 2 || g.next == cfg.End || cfg.Budget.Used() != g.room.Bytes() {
			t.Errorf("%d bytes: %d batches are drawn together, %d bytes are counted of %d", limit,
				g.next, cfg.Budget.Used(), g.room.Bytes())
		}
		if !slices.Contains([]uint64{25, 12, 6, 3}, g.next) { // of 50
			t.Errorf("%d bytes: %d batches are drawn together, want a half, or a half of that",
				limit, g.next)
		}
		if err := g.Close(); err != nil || cfg.Budget.Used() != 0 {
			t.Errorf("%d bytes are counted after Close: %v", cfg.Budget.Used(), err)
		}
		cfg.Samplers = mustSamplers(t, topo, c)
		g = NewPasses(cfg)
		f.compare(t, g, s)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	cfg := all.cfg
	cfg.Budget, cfg.Stage = mem.NewBudget(100), &stageLog{rows: 100}
	cfg.Samplers = mustSamplers(t, topo, c)
	g := NewPasses(cfg)
	if !g.Begins(0, 0) || g.Begins(2, 0) {
		t.Error("rows are read ahead for the first batch, and not after the end")
	}
	if ok, err := g.take(t.Context(), 0, 0, &sample.Dense{}); ok || err != nil {
		t.Errorf("without memory: %v, %v", ok, err)
	}
	if g.Begins(0, 1) {
		t.Error("rows are read ahead for batches that others draw")
	}
	if err := g.Close(); err != nil || cfg.Budget.Used() != 0 {
		t.Errorf("%d bytes are counted after Close: %v", cfg.Budget.Used(), err)
	}
}

// TestEndedPasses: a context that has ended ends the drawing with its error, which names the step.
func TestEndedPasses(t *testing.T) {
	f := newFixture(t)
	g, _ := f.group(t, sample.Config{Fanout: []int{3}, Seed: 9}, 5<<20, 1<<20, 7, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := g.take(ctx, 0, 8, &sample.Dense{})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "sample from step 7") {
		t.Errorf("error %v", err)
	}
	if ok, err := g.take(t.Context(), 0, 8, &sample.Dense{}); !ok || err != nil {
		t.Errorf("the next time: %v, %v", ok, err)
	}
	if ok, err := g.take(t.Context(), 0, 6, &sample.Dense{}); ok || err != nil {
		t.Errorf("a batch before the first: %v, %v", ok, err)
	}
	if g.Begins(0, 8) {
		t.Error("rows are read ahead where nothing stages them")
	}
}

// TestSamplersOfGroups: a group makes a sampler for each worker, and one at least; an error of any
// reaches who takes the batch.
func TestSamplersOfGroups(t *testing.T) {
	f := newFixture(t)
	for workers, want := range map[int]int{0: 1, 1: 1, 3: 3} {
		g, _ := f.group(t, sample.Config{Fanout: []int{3}, Seed: 9}, 5<<20, 1<<20, 0, nil, nil)
		made, make := 0, g.cfg.Sampler
		g.cfg.Workers = workers
		g.cfg.Sampler = func(r topology.Reader) (*sample.Sampler, error) {
			made++
			return make(r)
		}
		ok, err := g.take(t.Context(), 0, 0, &sample.Dense{})
		if !ok || err != nil || made != want {
			t.Errorf("%d workers: %d samplers, want %d: %v, %v", workers, made, want, ok, err)
		}
	}
	broken := errors.New("broken")
	for what, set := range map[string]func(c *PassesConfig){
		"samplers": func(c *PassesConfig) {
			c.Sampler = func(topology.Reader) (*sample.Sampler, error) { return nil, broken }
		},
		"the order": func(c *PassesConfig) {
			c.Order = func(uint64) (*sample.Order, error) { return nil, broken }
		},
	} {
		g, _ := f.group(t, sample.Config{Fanout: []int{3}, Seed: 9}, 5<<20, 1<<20, 0, nil, nil)
		set(&g.cfg)
		if ok, err := g.take(t.Context(), 0, 0, &sample.Dense{}); ok || !errors.Is(err, broken) {
			t.Errorf("%s: %v, %v", what, ok, err)
		}
	}
}

// TestEqualParts: rows are staged in parts of about equal size, and none of them larger than there
// is room for.
func TestEqualParts(t *testing.T) {
	list := func(n int) []sample.NodeID { return make([]sample.NodeID, n) }
	for _, c := range []struct {
		lists []int
		rows  int
		parts []int // batches of each
	}{
		{[]int{10, 10, 10, 10}, 40, []int{4}},
		{[]int{10, 10, 10, 10}, 39, []int{2, 2}},
		{[]int{10, 10, 10, 10}, 30, []int{2, 2}},
		{[]int{10, 10, 10, 10, 10, 10}, 20, []int{2, 2, 2}},
		{[]int{30, 10, 10}, 20, []int{0}},
		{[]int{0, 0, 5}, 3, []int{2, 0}},
		{[]int{20, 1, 1}, 21, []int{1, 2}},
	} {
		g := &Passes{cfg: PassesConfig{Stage: &stageLog{rows: c.rows}}}
		for _, n := range c.lists {
			g.absent = append(g.absent, list(n))
		}
		for _, want := range c.parts {
			lists := g.part()
			if len(lists) != want {
				t.Errorf("%v in %d rows: a part of %d batches, want %d of %v", c.lists, c.rows,
					len(lists), want, c.parts)
			}
			g.absent = g.absent[len(lists):]
		}
	}
}

// TestStagedRoom: rows may take what is free of the memory of batches and windows, less the lists
// of those that are to be staged, which are counted until they are.
func TestStagedRoom(t *testing.T) {
	f, s := newFixture(t), &fitLog{stageLog: stageLog{rows: 1 << 30}}
	g, _ := f.group(t, sample.Config{Fanout: []int{5, 5}, Seed: 2}, 5<<20, 2<<20, 0, nil, s)
	var d sample.Dense
	for step := range g.cfg.End {
		if ok, err := g.take(t.Context(), step/g.cfg.PerEpoch, step%g.cfg.PerEpoch,
			&d); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if step == 0 {
			lists := int64(0)
			for _, l := range s.lists {
				lists += 4 * int64(len(l))
			}
			// What the batches take that wait, and the one that was just taken.
			heap := s.free - mem.HeapGarbage(s.free)
			if held := g.cfg.Room + g.cfg.WindowBytes - heap - lists; held < g.room.Bytes() ||
				held > g.room.Bytes()+100<<10 {
				t.Errorf("rows may take %d bytes, lists %d, and batches have %d of %d", s.free,
					lists, g.room.Bytes(), g.cfg.Room+g.cfg.WindowBytes)
			}
		}
	}
	if held := g.room.Bytes(); held != 0 || len(g.absent) != 0 {
		t.Errorf("%d bytes and %d lists are left", held, len(g.absent))
	}
}

// fitLog keeps how many bytes rows may take, and the lists that were staged first.
// heapLog notes the memory that a budget has left when rows are staged: as it is counted, and if
// the heap counted for no more than what is in use.
type heapLog struct {
	stageLog
	budget     *mem.Budget
	left, most int64
}

func (s *heapLog) Fit(bytes int64) int {
	s.left = s.budget.Limit() - s.budget.Used()
	s.most = mem.HeapCost(s.budget.Free())
	return s.stageLog.Fit(bytes)
}

// TestHeapOfDrawing: what drawing took of the heap no longer counts when rows are staged in its
// memory, at the first batches and at the last.
func TestHeapOfDrawing(t *testing.T) {
	f, budget := newFixture(t), mem.NewProcessBudget(256<<20)
	s := &heapLog{stageLog: stageLog{rows: 1 << 30}, budget: budget}
	g, _ := f.group(t, sample.Config{Fanout: []int{5, 5}, Seed: 2}, 5<<20, 64<<20, 0, budget, s)
	s.rows = 2000 // a few batches at a time
	for batch := range g.cfg.PerEpoch {
		s.most = 0
		if ok, err := g.take(t.Context(), 0, batch, &sample.Dense{}); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if batch == 0 && s.most == 0 || s.most > 0 && s.left < s.most-16 {
			t.Errorf("batch %d: %d bytes are left to stage rows in, %d without what drawing took",
				batch, s.left, s.most)
		}
	}
	if got := PassRoom(100<<20, 20<<20); got != 60<<20 {
		t.Errorf("of 100 MiB with 20 of windows %d bytes are for batches", got)
	}
}

type fitLog struct {
	stageLog
	free  int64
	lists [][]sample.NodeID
}

func (s *fitLog) Fit(bytes int64) int {
	if s.free == 0 {
		s.free = bytes
	}
	return s.stageLog.Fit(bytes)
}

func (s *fitLog) Stage(ctx context.Context, lists [][]sample.NodeID) error {
	if s.lists == nil {
		s.lists = slices.Clone(lists)
	}
	return s.stageLog.Stage(ctx, lists)
}

// TestMacroErrors: an error of drawing a macro-batch reaches who takes a batch of it, nothing is
// counted for it, and the next time it is drawn anew. Where there is no memory the error says what
// to do.
func TestMacroErrors(t *testing.T) {
	f, c, broken := newMacroFixture(t), sample.Config{Fanout: []int{5, 4}, Seed: 1},
		errors.New("broken")
	for name, fail := range map[string]func(b *MacroBatches) error{
		"sampler": func(b *MacroBatches) error {
			b.cfg.Sampler = func() (*sample.Sampler, error) { return nil, broken }
			return broken
		},
		"order": func(b *MacroBatches) error {
			b.cfg.Order = func(uint64) (*sample.Order, error) { return nil, broken }
			return broken
		},
		"memory": func(b *MacroBatches) error {
			b.cfg.Budget = mem.NewBudget(10 << 10)
			return errNoRoom
		},
		"memory at the end": func(b *MacroBatches) error {
			b.cfg.Budget = mem.NewBudget(100 << 10)
			return errNoRoom
		},
	} {
		b := f.batches(t, c, 8, 1)
		good := b.cfg
		want := fail(b)
		for range 2 {
			err := b.Draw(t.Context(), 0, &sample.Batch{Index: 9})
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
		if b.work.Wait(); b.cfg.Budget.Used() != 0 && want == errNoRoom || len(b.mu.macros) != 0 {
			t.Errorf("%s: %d bytes are counted, %d macro-batches are there", name,
				b.cfg.Budget.Used(), len(b.mu.macros))
		}
		b.cfg = good
		mustTake(t, b, 0, 9, &sample.Dense{})
	}
}

// TestMacroWaiters: who waits for a macro-batch that another draws stops with its context.
func TestMacroWaiters(t *testing.T) {
	f := newMacroFixture(t)
	b := f.batches(t, sample.Config{Fanout: []int{5}, Seed: 1}, 8, 1)
	b.drawing.Lock()
	taken := make(chan error)
	go func() {
		taken <- b.Draw(t.Context(), 0, &sample.Batch{})
	}()
	for there := false; !there; {
		b.mu.Lock()
		there = len(b.mu.macros) > 0
		b.mu.Unlock()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Draw(ctx, 0, &sample.Batch{Index: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("who waits has the error %v", err)
	}
	b.drawing.Unlock()
	if err := <-taken; err != nil {
		t.Error(err)
	}
	if b.Begins(0, 0) {
		t.Error("macro-batches read no rows ahead")
	}
}

// TestDrawnAhead: the next macro-batch is drawn while one is sliced, if it is of the same epoch and
// begins before the end.
func TestDrawnAhead(t *testing.T) {
	f := newMacroFixture(t)
	for _, c := range []struct {
		end, batch uint64
		ahead      bool
	}{{100, 0, true}, {9, 0, true}, {8, 0, false}, {100, 16, false}, {100, 8, true}} {
		b := f.batches(t, sample.Config{Fanout: []int{3}, Seed: 1}, 8, 2)
		b.cfg.End = c.end
		var d sample.Dense
		mustTake(t, b, 0, c.batch, &d)
		b.work.Wait()
		if _, ahead := b.mu.macros[place{0, c.batch/8 + 1}]; ahead != c.ahead {
			t.Errorf("%+v: drawn ahead %v", c, ahead)
		}
	}
}

// TestMacroSamplers: each worker has a sampler, which is made once; after the last batch no
// macro-batch is left.
func TestMacroSamplers(t *testing.T) {
	f := newMacroFixture(t)
	for workers, want := range map[int]int{0: 1, 1: 1, 3: 3} {
		b := f.batches(t, sample.Config{Fanout: []int{3}, Seed: 1}, 4, workers)
		made, make := 0, b.cfg.Sampler
		b.cfg.Sampler = func() (*sample.Sampler, error) {
			made++
			return make()
		}
		for i := range b.cfg.PerEpoch {
			mustTake(t, b, 0, i, &sample.Dense{})
		}
		if b.work.Wait(); made != want {
			t.Errorf("%d workers: %d samplers are made, want %d", workers, made, want)
		}
		left := ""
		for at := range b.mu.macros {
			left += fmt.Sprint(at)
		}
		if left != "" {
			t.Errorf("%d workers: after the last batch there are %s", workers, left)
		}
	}
}

// TestMembersAreCounted: batches that are drawn count with all that they have, beside those that
// were drawn before.
func TestMembersAreCounted(t *testing.T) {
	f := newFixture(t)
	g, _ := f.group(t, sample.Config{Fanout: []int{3}, Seed: 9}, 5<<20, 1<<20, 0, nil, nil)
	d := &drawing{Passes: g, before: 7}
	want := int64(7)
	for i := range 2 {
		d.members = append(d.members, &member{order: make([]uint32, 0, 10+i),
			nodes: make([]sample.NodeID, 0, 20), ends: make([]uint32, 0, 3),
			absent: make([]sample.NodeID, 0, 5), held: 100})
		want += 100 + 4*int64(10+i+20+3+5)
	}
	for range 2 {
		if err := d.count(); err != nil || g.room.Bytes() != want {
			t.Errorf("%d bytes are counted, want %d: %v", g.room.Bytes(), want, err)
		}
	}
	d.members, d.before = nil, 0
	if err := d.count(); err != nil || g.room.Bytes() != 0 {
		t.Errorf("%d bytes are counted of nothing: %v", g.room.Bytes(), err)
	}
}

// TestMacroOfOneNode: a macro-batch of one seed without hops has what extras say of its node.
func TestMacroOfOneNode(t *testing.T) {
	f := newMacroFixture(t)
	f.seeds = f.seeds[:1]
	for name, extras := range map[string]sample.Extras{"degrees": {Degrees: true},
		"sums of weights": {WeightSums: true}} {
		c := sample.Config{Seed: 1, Extras: extras}
		s, err := f.sampler(c)()
		if err != nil {
			t.Fatal(err)
		}
		var want, got sample.Dense
		if err := s.Sample(t.Context(), 0, 0, f.seeds, &want); err != nil {
			t.Fatal(err)
		}
		mustTake(t, f.batches(t, c, 4, 1), 0, 0, &got)
		if !same(&got, &want) || len(got.Degrees)+len(got.WeightSums) != 1 {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		s.Close()
	}
}
