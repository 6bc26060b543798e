package topology

import (
	"context"
	"errors"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
)

// compact holds the blocks of a file as they are. An entry is decoded when it is drawn.
type compact struct {
	f     listfile.File
	held  *listfile.Held
	edges uint64
	kinds int // number of edge types
	// budget counts the memory that sessions take for their frontiers.
	budget *mem.Budget
}

func loadCompact(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	opt Options) (t Reader, err error) {
	f, err := listfile.Open(ctx, s, dev, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c := &compact{f: *f, edges: s.Meta().Edges, kinds: len(s.Meta().EdgeTypes),
		budget: opt.Budget}
	if c.held, err = listfile.NewHeld(&f.Fields, f.Blocks, opt.Budget); err != nil {
		return nil, err
	}
	stop := c.held.Populate()
	err = c.load(ctx, f)
	if stop(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// load reads the whole file, and checks that lists fit in their blocks. Ids are checked when they
// are drawn.
func (c *compact) load(ctx context.Context, f *listfile.File) error {
	total := uint64(0)
	var l listfile.Lists
	err := f.EachRun(ctx, func(run []listfile.Placed) error {
		for i := range run {
			k := &run[i].Block
			if err := c.held.Add(k, &l); err != nil {
				return f.DamageBlock(k.Number(), err)
			}
			total += uint64(k.Entries)
		}
		return nil
	})
	if err == nil && total != c.edges {
		err = f.Damage(-1, 0, "file has %d edges, the store %d", total, c.edges)
	}
	if err == nil {
		if err = c.held.Finish(); err != nil {
			err = f.Damage(-1, 0, "%v", err)
		}
	}
	return err
}

// Nodes returns the number of lists.
func (c *compact) Nodes() uint64 { return c.f.Lists }

// Edges returns the number of entries.
func (c *compact) Edges() uint64 { return c.edges }

// NewSession returns a session for one goroutine.
func (c *compact) NewSession() Session {
	s := &compactSession{blockLists: blockLists{f: &c.f, types: c.kinds}, c: c,
		draw: c.held.NewDrawer(), count: mem.NewAccount(c.budget, "lists of a frontier")}
	s.of = s
	return s
}

// Stats returns the memory held. There are no misses.
func (c *compact) Stats() Stats { return Stats{Kind: "resident", Bytes: c.held.Bytes()} }

// Close frees the blocks.
func (c *compact) Close() error { return c.held.Free() }

// compactSession reads lists from blocks in memory.
type compactSession struct {
	blockLists
	c     *compact
	draw  *listfile.Drawer
	block listfile.Block // block of the last part
	count mem.Account
}

// Degrees finds the lists of nodes, and writes their lengths to deg.
func (s *compactSession) Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	s.nodes = nil
	if err := s.draw.Find(ctx, nodes, deg); err != nil {
		return err
	}
	s.nodes = nodes
	return s.count.AtLeast(s.draw.Bytes())
}

// Gather decodes entries of the lists to out.
func (s *compactSession) Gather(ctx context.Context, off, pos []uint32, out []layout.NodeID) error {
	err := s.draw.Gather(ctx, off, pos, mem.View[uint32](mem.BytesOf(out)))
	if err != nil && ctx.Err() == nil {
		return s.damage(err)
	}
	return err
}

// Lists decodes the whole lists of nodes. They are valid until the next call.
func (s *compactSession) Lists(ctx context.Context, nodes []layout.NodeID) (*listfile.Lists,
	error) {
	s.draw.Forget()
	s.nodes = nodes
	return s.lists(ctx)
}

func (s *compactSession) span(i int) (first, last int, err error) {
	v := s.nodes[i]
	if uint64(v) >= s.f.Lists {
		return 0, -1, layout.OutOfRange(v, s.f.Lists)
	}
	head, ok := s.c.held.Head(v)
	if !ok {
		return 0, -1, nil
	}
	return head, s.c.held.Last(v, head), nil
}

func (s *compactSession) blockAt(i int, pos uint32) int { return s.draw.Block(i, pos) }

func (s *compactSession) part(i, block int) (b *listfile.Block, p listfile.Part, err error) {
	b = &s.block
	*b, err = s.c.held.Block(block)
	if slot := uint32(s.nodes[i]) - uint32(b.First); err == nil && slot < b.Slots {
		p, err = s.f.Shape.Part(b, slot)
	}
	if err != nil {
		err = s.damage(err)
	}
	return b, p, err
}

// Release ends the session.
func (s *compactSession) Release() { s.count.Release() }
