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
	s := &windowSession{blockLists: blockLists{f: w.p.f, types: w.p.types}, w: w,
		count: mem.NewAccount(w.p.budget, "lists of a frontier")}
	s.of = s
	for i, h := range w.held {
		s.take[i] = h.NewGatherer()
	}
	return s
}

// windowSession reads from the window that was current at the last Degrees. It is fastest if nodes
// ascend.
type windowSession struct {
	blockLists
	w    *Windows
	now  int // which of the windows in memory that is
	at   *listfile.WindowBlocks
	take [2]*listcode.Gatherer

	// These describe the frontier of the last Degrees: for each node, the last block that may have
	// some of its list, the position where its part there starts, and that part.
	last  []uint32
	start []uint32
	refs  []listcode.Ref
	count mem.Account // memory of last, start and refs
}

// Degrees finds the lists of nodes, which must be in the window.
func (s *windowSession) Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	s.now = s.w.now
	s.at = s.w.held[s.now]
	s.nodes = nodes
	s.last = mem.Resize(s.last, len(nodes))
	s.start = mem.Resize(s.start, len(nodes))
	s.refs = mem.Resize(s.refs, len(nodes))
	held := int64(cap(s.last)+cap(s.start))*4 + int64(cap(s.refs))*listcode.RefBytes
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
			s.start[i], s.refs[i] = p.Start, s.at.Ref(last, &p)
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
			return s.damage(err)
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
		take.List(&s.refs[i], pos)
		return nil
	}
	for k, p := range pos {
		if p >= start {
			take.List(&s.refs[i], pos[k:k+1])
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

func (s *windowSession) span(i int) (first, last int, err error) {
	if s.last[i] == nowhere {
		return 0, -1, nil
	}
	last = int(s.last[i])
	return s.at.Of(s.nodes[i], 0, last), last, nil
}

func (s *windowSession) blockAt(i int, pos uint32) int {
	if pos >= s.start[i] {
		return int(s.last[i])
	}
	return s.at.Of(s.nodes[i], pos, int(s.last[i]))
}

func (s *windowSession) part(i, block int) (*listfile.Block, listfile.Part, error) {
	p, err := s.at.Part(block, s.nodes[i])
	return s.at.Block(block), p, err
}

// Lists decodes the whole lists of nodes. They are valid until the next call.
func (s *windowSession) Lists(ctx context.Context, nodes []layout.NodeID) (*listfile.Lists,
	error) {
	if err := s.Degrees(ctx, nodes, make([]uint32, len(nodes))); err != nil {
		return nil, err
	}
	return s.lists(ctx)
}

// Release ends the session.
func (s *windowSession) Release() { s.count.Release() }
