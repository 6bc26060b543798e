package partbuffer

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/layout/listfile"
	"gdb/layout/topology"
	"gdb/sample"

	"github.com/RoaringBitmap/roaring/v2"
)

// halves has a macro-batch in one half of the memory, while the next is read to the other half by a
// goroutine ("Hanoi", section 4.2.2), and hubs beside both.
type halves struct {
	topology.Held
	rows
	cfg   *Config
	inner topology.Held // lists without neighbors outside memory
	arenas
	held    mem.Account // of reading
	hubs    hubs
	two     []*half // or one that has all partitions
	now     int
	reading chan error // of the other half; nil while nothing is read
	stop    context.CancelFunc
}

// half has the partitions of a set, one after the other.
type half struct {
	set *roaring.Bitmap // nil if nothing is there
	// base has, by partition, the number of its first node in the half, from 1 on; 0 if it is not
	// there.
	base  []uint32
	lists entries // hubs first
	// inner is, with a halo, how many entries of each list are in memory: the first.
	inner []uint32
	slots uint32 // slot of its first node
}

// readingBytes is what reading rows and lists ahead takes: two buffers of lists, and their entries.
const readingBytes = 10 << 20

// halfCount returns the number of halves: one is enough for all partitions.
func halfCount(c *Config) int64 {
	if c.capacity() == c.Deal.Parts() {
		return 1
	}
	return 2
}

// setSlots returns the room for nodes of a set.
func setSlots(c *Config) int64 { return int64(c.Deal.Most(c.capacity())) }

// halfArrays returns the sizes of the memory of halves, in bytes.
func halfArrays(c *Config, dim int) []int64 {
	hubs := hubArrays(c)
	h := int64(len(c.Macro.Hubs))
	all := append(hubs[:], 4*int64(dim)*(h+halfCount(c)*setSlots(c)))
	for range halfCount(c) {
		n := h + setSlots(c)
		all = append(all, 4*int64(c.Deal.Parts()), 8*n, 4*n)
		if c.Macro.inner() {
			all = append(all, 4*n)
		}
		for range blocksOf(c.Macro.SetEntries + c.Macro.HubEntries) {
			all = append(all, 4*topology.BlockEntries)
		}
	}
	return all
}

// MacroBytes returns what the nodes and entries of two macro-batches take, in bytes, without hubs
// and without read buffers.
func MacroBytes(c *Config, dim int) int64 {
	return halfCount(c) * (setSlots(c)*(4*int64(dim)+12) + 4*int64(c.Macro.SetEntries))
}

func newHalves(c *Config) (b *halves, err error) {
	if !c.Deal.Ranges() {
		return nil, errors.New("macro-batches are made of ranges of nodes")
	}
	b = &halves{cfg: c, arenas: arenas{budget: c.Budget},
		held: mem.NewAccount(c.Budget, "reading partitions")}
	b.rows = rows{from: c.Rows, threads: c.Threads, slot: b.slotOf, halo: c.Macro.Halo,
		summed: c.Macro.Summed}
	b.Held = topology.Held{NodeCount: c.Deal.Nodes(), Place: b.place}
	b.inner = topology.Held{NodeCount: c.Deal.Nodes(), Place: b.placeInner}
	if c.Rows != nil {
		b.dim = c.Rows.Meta().Dim
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if err := b.held.Add(readingBytes); err != nil {
		return b, err
	}
	if err := b.hubs.place(c, b.take); err != nil {
		return b, err
	}
	hubs := int64(len(c.Macro.Hubs))
	all, err := b.take("features", 4*int64(b.dim)*(hubs+halfCount(c)*setSlots(c)))
	if err != nil {
		return b, err
	}
	b.rows.all = mem.View[float32](all)
	for i := range halfCount(c) {
		h := &half{slots: uint32(1 + hubs + i*setSlots(c))}
		if err := h.take(c, b.take); err != nil {
			return b, err
		}
		b.two = append(b.two, h)
	}
	return b, nil
}

// take takes the memory of a half.
func (h *half) take(c *Config, take func(what string, bytes int64) ([]byte, error)) error {
	n := int64(len(c.Macro.Hubs)) + setSlots(c)
	for _, array := range []struct {
		what  string
		bytes int64
		to    func(all []byte)
	}{
		{"places", 4 * int64(c.Deal.Parts()), func(a []byte) { h.base = mem.View[uint32](a) }},
		{"places of lists", 8 * n, func(a []byte) { h.lists.start = mem.View[uint64](a) }},
		{"lengths of lists", 4 * n, func(a []byte) { h.lists.degree = mem.View[uint32](a) }},
		{"lengths of inner lists", 4 * n, func(a []byte) { h.inner = mem.View[uint32](a) }},
	} {
		if array.what == "lengths of inner lists" && !c.Macro.inner() {
			break
		}
		all, err := take(array.what, array.bytes)
		if err != nil {
			return err
		}
		array.to(all)
	}
	h.lists.more = func() ([]byte, error) { return take("edges", 4*topology.BlockEntries) }
	return h.lists.grow(max(1, c.Macro.SetEntries+c.Macro.HubEntries))
}

// Close ends reading, and frees the memory.
func (b *halves) Close() error {
	if b.reading != nil {
		b.stop()
		<-b.reading // nobody waits for what it read
		b.reading = nil
	}
	b.held.Release()
	return b.free()
}

// number returns the number of a node in a half, from 1 on; 0 if it is not there, or a hub.
func (b *halves) number(h *half, v sample.NodeID) uint32 {
	part := b.cfg.Deal.Part(v)
	base := h.base[part]
	if base == 0 {
		return 0
	}
	from, _ := b.cfg.Deal.Range(part)
	return base + uint32(v-from)
}

// slotOf returns the slot of the row of a node in memory; 0 for other nodes.
func (b *halves) slotOf(v sample.NodeID) uint32 {
	if s := b.hubs.slot(v); s != 0 {
		return s
	}
	h := b.two[b.now]
	if n := b.number(h, v); n != 0 {
		return h.slots + n - 1
	}
	return 0
}

// place returns where the list of a node begins, and its length. To ask for a node that is not in
// memory is an error; with a halo it has an empty list.
func (b *halves) place(v sample.NodeID) (first uint64, degree uint32, err error) {
	h := b.two[b.now]
	at, err := b.listOf(h, v)
	if at == 0 {
		return 0, 0, err
	}
	return h.lists.start[at-1], h.lists.degree[at-1], nil
}

// placeInner is place of the lists without neighbors outside memory.
func (b *halves) placeInner(v sample.NodeID) (first uint64, degree uint32, err error) {
	h := b.two[b.now]
	at, err := b.listOf(h, v)
	if at == 0 {
		return 0, 0, err
	}
	return h.lists.start[at-1], h.inner[at-1], nil
}

// listOf returns the number of a node's list in a half, from 1 on; 0 if it has none.
func (b *halves) listOf(h *half, v sample.NodeID) (uint32, error) {
	if uint64(v) >= b.NodeCount || h.set == nil {
		return 0, notThere(v)
	}
	if at := b.hubs.slot(v); at != 0 {
		return at, nil
	}
	at := b.number(h, v)
	if at != 0 {
		return at + uint32(len(b.hubs.nodes)), nil
	}
	if b.cfg.Macro.Halo {
		return 0, nil
	}
	return 0, notThere(v)
}

// Has says whether a node is in memory.
func (b *halves) Has(v sample.NodeID) bool { return b.slotOf(v) != 0 }

// Inner returns the lists without neighbors outside memory: with a halo, those of the last hop.
func (b *halves) Inner() topology.Reader {
	if !b.cfg.Macro.inner() {
		return nil
	}
	return &b.inner
}

// load is described at memory.
func (b *halves) load(ctx context.Context, lists topology.Reader, now,
	next *roaring.Bitmap) error {
	if ctx.Err() != nil { // even if the set is there already
		return context.Cause(ctx)
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	if !b.hubs.loaded {
		if err := b.loadHubs(ctx, lists); err != nil {
			return err
		}
	}
	if h := b.two[b.now]; h.set == nil || !h.set.Equals(now) {
		b.now = (b.now + 1) % len(b.two)
	}
	h := b.two[b.now]
	if h.set == nil || !h.set.Equals(now) {
		if err := b.fill(ctx, lists, h, now); err != nil {
			return err
		}
	}
	h.lists.show(&b.Held)
	h.lists.show(&b.inner)
	if next == nil || len(b.two) == 1 || next.Equals(now) {
		return nil
	}
	other := b.two[1-b.now]
	ctx, b.stop = context.WithCancel(context.WithoutCancel(ctx))
	b.reading = make(chan error, 1)
	go func() {
		defer bug.Catch()
		b.reading <- b.fill(ctx, lists, other, next)
	}()
	return nil
}

// settle waits until what is being read is there.
func (b *halves) settle(ctx context.Context) error {
	if b.reading == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-b.reading:
		b.stop()
		b.reading = nil
		return err
	}
}

// loadHubs reads the rows and the lists of the hubs, once.
func (b *halves) loadHubs(ctx context.Context, lists topology.Reader) error {
	_, err := b.read(ctx, 1, func(take func(v sample.NodeID)) {
		for _, v := range b.hubs.nodes {
			take(v)
		}
	})
	if err == nil {
		err = b.hubs.load(ctx, lists)
	}
	if err != nil {
		return fmt.Errorf("sample: read hubs: %w", err)
	}
	return nil
}

// fill reads a set to a half: rows by one goroutine, and lists by another.
func (b *halves) fill(ctx context.Context, lists topology.Reader, h *half,
	set *roaring.Bitmap) error {
	h.set = nil
	clear(h.base)
	next := uint32(1)
	for it := set.Iterator(); it.HasNext(); {
		part := int(it.Next())
		h.base[part] = next
		next += uint32(b.cfg.Deal.Size(part))
	}
	rows := make(chan error, 1)
	go func() {
		defer bug.Catch()
		rows <- b.readRows(ctx, h, set)
	}()
	err := b.readLists(ctx, lists, h, set)
	if err = errors.Join(err, <-rows); err == nil {
		h.set = set
	}
	return err
}

// runs calls fn with the nodes from … to-1 of partitions that follow each other in a set, in order,
// until it fails.
func (b *halves) runs(set *roaring.Bitmap, fn func(from, to sample.NodeID) error) error {
	for it := set.Iterator(); it.HasNext(); {
		from, to := b.cfg.Deal.Range(int(it.Next()))
		for it.HasNext() {
			after, end := b.cfg.Deal.Range(int(it.PeekNext()))
			if after != to {
				break
			}
			it.Next()
			to = end
		}
		if err := fn(from, to); err != nil {
			return err
		}
	}
	return nil
}

// readRows reads the features of the nodes of a set.
func (b *halves) readRows(ctx context.Context, h *half, set *roaring.Bitmap) error {
	if b.from == nil {
		return nil
	}
	slot := uint64(h.slots - 1)
	return b.runs(set, func(from, to sample.NodeID) error {
		n := uint64(to - from)
		out := b.rows.all[slot*uint64(b.dim) : (slot+n)*uint64(b.dim)]
		slot += n
		if err := b.from.Scan(ctx, from, int(n), out); err != nil {
			return fmt.Errorf("sample: read the features of partitions: %w", err)
		}
		return nil
	})
}

// readLists reads the lists of the nodes of a set, and keeps the neighbors that are in it or hubs;
// then it keeps those of hubs.
func (b *halves) readLists(ctx context.Context, lists topology.Reader, h *half,
	set *roaring.Bitmap) error {
	in := func(u sample.NodeID) bool {
		return h.base[b.cfg.Deal.Part(u)] != 0 || b.hubs.has(u)
	}
	keep := in
	if b.cfg.Macro.Halo {
		keep = func(sample.NodeID) bool { return true }
	}
	h.lists.count = 0
	clear(h.lists.degree)
	hubs := uint32(len(b.hubs.nodes))
	take := func(first sample.NodeID, cont bool, l *listfile.Lists) error {
		for i := range len(l.Off) - 1 {
			v, nbrs := first+sample.NodeID(i), l.Nbrs[l.Off[i]:l.Off[i+1]]
			if len(nbrs) == 0 || b.hubs.has(v) {
				continue
			}
			if err := checkNodes(nbrs, b.NodeCount); err != nil {
				return err
			}
			at := hubs + b.number(h, v) - 1
			if i > 0 || !cont {
				h.lists.begin(at)
			}
			if err := h.lists.keep(at, nbrs, keep); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	err := b.runs(set, func(from, to sample.NodeID) error {
		return topology.EachInRange(ctx, lists, from, to, take)
	})
	if err != nil {
		return fmt.Errorf("sample: read the neighbor lists of partitions: %w", err)
	}
	for i := range b.hubs.nodes {
		h.lists.begin(uint32(i))
		if err := h.lists.keep(uint32(i), b.hubs.list(i), keep); err != nil {
			return err
		}
	}
	for i := range h.inner {
		h.inner[i] = h.lists.first(uint32(i), in)
	}
	return nil
}
