package topology

import (
	"context"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/listcode"
	"gdb/layout/listfile"
)

// NewSession returns a session that reads the current window, for one goroutine.
func (w *Windows) NewSession() Session {
	s := &windowSession{w: w, count: mem.NewAccount(w.p.budget, "lists of a frontier")}
	for i, h := range w.held {
		s.take[i] = h.NewGatherer()
	}
	return s
}

// windowSession reads from the window that was current at the last Degrees. It is fastest if nodes
// ascend.
type windowSession struct {
	w    *Windows
	now  int // which of the windows in memory that is
	at   *listfile.WindowBlocks
	take [2]*listcode.Gatherer

	// These describe the frontier of the last Degrees: for each node, the last block that may have
	// some of its list, the position where its part there starts, and that part.
	nodes []layout.NodeID
	last  []uint32
	start []uint32
	part  []listcode.Ref
	count mem.Account // memory of last, start and part

	whole  listfile.Lists
	weight []float32
	times  []int64
}

// Degrees finds the lists of nodes, which must be in the window.
func (s *windowSession) Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	s.now = s.w.now
	s.at = s.w.held[s.now]
	s.nodes = nodes
	s.last = mem.Resize(s.last, len(nodes))
	s.start = mem.Resize(s.start, len(nodes))
	s.part = mem.Resize(s.part, len(nodes))
	held := int64(cap(s.last)+cap(s.start))*4 + int64(cap(s.part))*listcode.RefBytes
	if err := s.count.AtLeast(held); err != nil {
		return err
	}
	block, before := 0, layout.NodeID(0)
	var steps pace.Steps
	for i, v := range nodes {
		if err := steps.Took(ctx, 4); err != nil {
			return err
		}
		if v < before {
			block = 0
		}
		last := s.at.Last(v, block)
		block, before = max(0, last), v
		if s.last[i] = nowhere; last < 0 {
			s.start[i], deg[i] = 0, 0
			continue
		}
		p, err := s.at.Part(last, v)
		if err != nil {
			return err
		}
		if deg[i] = p.Start + p.Count; deg[i] > 0 {
			s.last[i] = uint32(last)
			s.start[i], s.part[i] = p.Start, s.at.Ref(last, &p)
		}
	}
	return ctx.Err()
}

// Gather decodes entries of the lists to out.
func (s *windowSession) Gather(ctx context.Context, off, pos []uint32, out []layout.NodeID) error {
	all := mem.View[uint32](mem.BytesOf(out))
	for from := 0; from < len(s.nodes); from += atOnce {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(from+atOnce, len(s.nodes))
		ids := all[off[from]:off[end]]
		s.take[s.now].Begin(ids)
		for i := from; i < end; i++ {
			if err := s.draw(i, pos[off[i]:off[i+1]]); err != nil {
				return err
			}
		}
		s.take[s.now].End()
		if err := s.at.CheckGathered(ids); err != nil {
			return s.w.damage(err)
		}
	}
	return ctx.Err()
}

// atOnce is how many lists are done between checks of the context.
const atOnce = 1024

// draw draws entries of list i of the frontier. Entries of a list in several blocks are drawn one
// by one.
func (s *windowSession) draw(i int, pos []uint32) error {
	start, take := s.start[i], s.take[s.now]
	if start == 0 {
		take.List(&s.part[i], pos)
		return nil
	}
	for k, p := range pos {
		if p >= start {
			take.List(&s.part[i], pos[k:k+1])
			continue
		}
		list, err := s.at.Entry(s.nodes[i], p, int(s.last[i]))
		if err != nil {
			return err
		}
		take.List(&list, pos[k:k+1])
	}
	return nil
}

// eachPart calls fn with the parts of list i of the frontier, in order.
func (s *windowSession) eachPart(i int, fn func(b *listfile.Block, p *listfile.Part) error) error {
	last, v := int(s.last[i]), s.nodes[i]
	if s.last[i] == nowhere {
		return nil
	}
	for b := s.at.Of(v, 0, last); b <= last; b++ {
		p, err := s.at.Part(b, v)
		if err == nil && p.Count > 0 {
			err = fn(s.at.Block(b), &p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Lists decodes the whole lists of nodes. They are valid until the next call.
func (s *windowSession) Lists(ctx context.Context, nodes []layout.NodeID) (*listfile.Lists,
	error) {
	if err := s.Degrees(ctx, nodes, make([]uint32, len(nodes))); err != nil {
		return nil, err
	}
	shape := &s.w.p.f.Shape
	err := decodeLists(ctx, shape, &s.whole, len(nodes), s.w.damage, s.eachPart)
	return &s.whole, err
}

// Columns decodes columns of the lists, block by block.
func (s *windowSession) Columns(ctx context.Context, want Columns, fn func(p Part) error) error {
	if err := want.lacks(s.w.p.f); err != nil {
		return err
	}
	c := columnParts{shape: &s.w.p.f.Shape, want: want, weight: s.weight, times: s.times}
	defer func() { s.weight, s.times = c.weight, c.times }()
	return c.each(ctx, len(s.nodes), s.eachPart, fn)
}

// GatherAttributes decodes the attributes of entries.
func (s *windowSession) GatherAttributes(ctx context.Context, off, pos []uint32,
	to Attributes) error {
	f := s.w.p.f
	if err := to.lacks(f); err != nil {
		return err
	}
	var steps pace.Steps
	for i := range s.nodes {
		lo, hi := off[i], off[i+1]
		if err := steps.Took(ctx, 1+int(hi-lo)); err != nil {
			return err
		}
		if err := s.gatherAttributes(i, lo, pos[lo:hi], &to); err != nil {
			return err
		}
	}
	return checkTypes(ctx, f, s.w.p.types, off, to.Types)
}

// gatherAttributes decodes the attributes of entries of list i of the frontier.
func (s *windowSession) gatherAttributes(i int, at uint32, pos []uint32, to *Attributes) (
	err error) {
	v, last, now := s.nodes[i], int(s.last[i]), -1
	var part listfile.Part
	for j := range pos {
		b := last
		if pos[j] < s.start[i] {
			b = s.at.Of(v, pos[j], last)
		}
		if b != now {
			if part, err = s.at.Part(b, v); err != nil {
				return err
			}
			now = b
		}
		err := to.take(&s.w.p.f.Shape, s.at.Block(b), &part, pos[j:j+1], at+uint32(j))
		if err != nil {
			return err
		}
	}
	return nil
}

// damage returns err as damage of the file.
func (w *Windows) damage(err error) error { return w.p.f.Damage(-1, 0, "%v", err) }

// Release ends the session.
func (s *windowSession) Release() { s.count.Release() }
