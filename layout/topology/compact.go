package topology

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listcode"
	"gdb/layout/listfile"
)

// compact holds the blocks of a file as they are; an entry is decoded when it is drawn.
type compact struct {
	f     listfile.File
	held  *listfile.Held
	edges uint64
	kinds int // types that edges may have
}

func loadCompact(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	opt Options) (t Reader, err error) {
	f, err := listfile.Open(ctx, s, dev, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c := &compact{f: *f, edges: s.Meta().Edges, kinds: len(s.Meta().EdgeTypes)}
	if c.held, err = listfile.NewHeld(f, opt.Budget); err != nil {
		return nil, err
	}
	stop := c.held.Populate()
	err = c.load(ctx, f)
	if stop(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// load reads the whole file, and checks that lists are in their blocks. Ids are looked at when they
// are drawn.
func (c *compact) load(ctx context.Context, f *listfile.File) error {
	total := uint64(0)
	var l listfile.Lists
	err := f.Each(ctx, func(k *listfile.Block, _ uint64, _ bool) error {
		if err := c.held.Add(k, &l); err != nil {
			n := k.Number()
			return f.Damage(n, listfile.BlockOffset(n, f.BlockBytes), "%v", err)
		}
		total += uint64(k.Entries)
		return nil
	})
	if err == nil && total != c.edges {
		err = f.Damage(-1, 0, "file has %d edges, the store %d", total, c.edges)
	}
	if err == nil {
		c.held.Finish()
	}
	return err
}

// Nodes is the number of lists.
func (c *compact) Nodes() uint64 { return c.f.Nodes }

// Edges is the number of entries.
func (c *compact) Edges() uint64 { return c.edges }

// NewSession returns a reader for one goroutine.
func (c *compact) NewSession() Session {
	return &compactSession{c: c, take: c.held.NewGatherer()}
}

// Stats has the memory held; nothing is ever missed.
func (c *compact) Stats() Stats { return Stats{Kind: "resident", Bytes: c.held.Bytes()} }

// Close frees the blocks.
func (c *compact) Close() error { return c.held.Free() }

// damage is the error of what blocks hold.
func (c *compact) damage(err error) error { return c.f.Damage(-1, 0, "%v", err) }

// compactSession reads from blocks in memory. It keeps 28 bytes for each node of a frontier.
type compactSession struct {
	c    *compact
	take *listcode.Gatherer

	// The frontier of the last Degrees: of each node, the part of its list in the last block that
	// has some, the position of its first entry, and the blocks where the list begins and ends.
	nodes []layout.NodeID
	part  []listcode.Ref
	start []uint32
	head  []uint32
	last  []uint32

	// Of entries under way: their lists, where they are, and their positions there.
	lists    []listcode.Ref
	off, pos []uint32
	// Lists under way that are to be looked up: which, in what block, and where in memory.
	which, block []uint32
	places       []uint64

	whole  listfile.Lists
	weight []float32
	times  []int64
}

// atOnce is how many lists are looked up, or gathered from, at a time.
const atOnce = 128

// Degrees finds the lists.
func (s *compactSession) Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	c := s.c
	s.nodes = nodes
	s.part = mem.Resize(s.part, len(nodes))
	s.start = mem.Resize(s.start, len(nodes))
	s.head = mem.Resize(s.head, len(nodes))
	s.last = mem.Resize(s.last, len(nodes))
	s.places = mem.Resize(s.places, atOnce)
	for from := 0; from < len(nodes); from += atOnce {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(from+atOnce, len(nodes))
		places := s.places[:end-from]
		for i, v := range nodes[from:end] {
			if uint64(v) >= c.f.Nodes {
				s.nodes = nil
				return layout.OutOfRange(v, c.f.Nodes)
			}
			places[i] = c.held.EndsAt(v)
		}
		c.held.PrefetchIndex(places)
		for i := from; i < end; i++ {
			places[i-from] = s.locate(i)
		}
		c.held.PrefetchLists(places)
		for i := from; i < end; i++ {
			if s.last[i] == nowhere {
				s.part[i], deg[i] = listcode.Ref{}, 0
				continue
			}
			s.part[i] = c.held.Ref(int(s.last[i]), places[i-from])
			deg[i] = s.start[i] + s.part[i].Count
		}
	}
	return ctx.Err()
}

// locate finds where the list of node i of the frontier ends, and returns the place in memory.
func (s *compactSession) locate(i int) (at uint64) {
	h, v := s.c.held, s.nodes[i]
	s.start[i], s.last[i] = 0, nowhere
	last := h.Last(v)
	if last < 0 {
		return 0
	}
	at, ok := h.Place(v, last)
	if !ok {
		return 0
	}
	s.last[i] = uint32(last)
	if key := h.Keys[last]; key>>32 == uint64(v) && uint32(key) > 0 {
		s.start[i], s.head[i] = uint32(key), uint32(h.Head(v, last))
	}
	return at
}

// Gather decodes entries.
func (s *compactSession) Gather(ctx context.Context, off, pos []uint32, out []layout.NodeID) error {
	ids := mem.View[uint32](mem.BytesOf(out))
	for from := 0; from < len(s.nodes); from += atOnce {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(from+atOnce, len(s.nodes))
		if err := s.gather(from, end, off, pos, ids); err != nil {
			return s.c.damage(err)
		}
	}
	return ctx.Err()
}

// gather decodes entries of nodes from … end-1 of the frontier.
func (s *compactSession) gather(from, end int, off, pos []uint32, out []uint32) error {
	first := off[from]
	s.lists, s.off, s.pos = s.lists[:0], append(s.off[:0], 0), s.pos[:0]
	s.which, s.block, s.places = s.which[:0], s.block[:0], s.places[:0]
	for i := from; i < end; i++ {
		lo, hi := off[i], off[i+1]
		if start := s.start[i]; start > 0 {
			s.wantParts(i, start, pos[lo:hi])
			continue
		}
		s.lists = append(s.lists, s.part[i])
		s.pos = append(s.pos, pos[lo:hi]...)
		s.off = append(s.off, hi-first)
	}
	h := s.c.held
	h.PrefetchLists(s.places)
	for k, i := range s.which {
		s.lists[i] = h.Ref(int(s.block[k]), s.places[k])
		if s.pos[s.off[i]] >= s.lists[i].Count {
			return fmt.Errorf("block %d has %d entries of a list where other blocks speak of more",
				s.block[k]+1, s.lists[i].Count)
		}
	}
	ids := out[first:off[end]]
	s.take.Gather(s.lists, s.off, s.pos, ids)
	return h.CheckGathered(ids)
}

// wantParts notes entries of a list in several blocks: each is one of a list of its own. Those in
// other blocks than the last are to be looked up.
func (s *compactSession) wantParts(i int, start uint32, pos []uint32) {
	h, v, head, last := s.c.held, s.nodes[i], int(s.head[i]), int(s.last[i])
	for _, p := range pos {
		s.off = append(s.off, s.off[len(s.off)-1]+1)
		if p >= start {
			s.lists, s.pos = append(s.lists, s.part[i]), append(s.pos, p-start)
			continue
		}
		b := h.Of(v, p, head, last, start)
		if key := h.Keys[b]; key>>32 == uint64(v) {
			p -= uint32(key)
		}
		s.which = append(s.which, uint32(len(s.lists)))
		s.block = append(s.block, uint32(b))
		s.places = append(s.places, h.PlaceBefore(v, b))
		s.lists, s.pos = append(s.lists, listcode.Ref{}), append(s.pos, p)
	}
}

// Release ends the session.
func (s *compactSession) Release() {}
