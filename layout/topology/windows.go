package topology

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/listcode"
	"gdb/layout/listfile"
)

// Windows reads the lists of a paged reader in the order of its file, a window at a time. Lists of
// many nodes are read in one pass, which reads each block at most once, in large reads. While one
// window is used, the next is read.
//
// Its sessions read lists of the current window only. It takes the memory of two windows.
type Windows struct {
	numbers *layout.NodeLists // nil if each node has one list
	p       *paged
	cuts    []listfile.Window
	blocks  int // most blocks of a window
	held    [2]*listfile.WindowBlocks
	wanted  [2][]bool
	now     int // which of held is current
	read    atomic.Uint64
}

// windowLeast is the smallest size of a window, in bytes. With smaller ones, reads would be small.
const windowLeast = 512 << 10

// windowBlocks returns how many blocks a window has, given this memory for two.
func windowBlocks(s *listfile.Shape, bytes int64) int {
	blocks := int(bytes / 2 / int64(s.BlockBytes))
	for blocks > 0 && 2*listfile.WindowBytes(s, blocks) > bytes {
		blocks -= max(1, blocks/32)
	}
	return blocks
}

// NewWindows returns windows of a paged reader that take this many bytes of memory. ok is false if
// there are none: the reader is not a paged one, its store is of the former layout, or a list is
// longer than a window. The caller calls Close.
func NewWindows(t Reader, bytes int64) (w *Windows, ok bool, err error) {
	t, numbers := ByList(t)
	p, is := t.(*paged)
	if !is || p.ix.Version < listfile.CodedLayout {
		return nil, false, nil
	}
	w = &Windows{p: p, numbers: numbers, blocks: windowBlocks(&p.f.Shape, bytes)}
	w.blocks = min(w.blocks, int(p.ix.Blocks))
	if w.blocks*p.f.BlockBytes < windowLeast && w.blocks < int(p.ix.Blocks) {
		return nil, false, nil
	}
	if w.cuts, ok = p.ix.Windows(w.blocks); !ok {
		return nil, false, nil
	}
	for i := range w.held {
		w.held[i], err = listfile.NewWindowBlocks(p.f, p.ix, w.blocks, p.budget)
		if err != nil {
			return nil, false, errors.Join(err, w.Close())
		}
		w.wanted[i] = make([]bool, w.blocks)
	}
	return w, true, nil
}

// Count returns the number of windows.
func (w *Windows) Count() int { return len(w.cuts) }

// After returns the node after the last one whose list a window has.
func (w *Windows) After(window int) layout.NodeID {
	if window+1 == len(w.cuts) {
		return layout.NodeID(w.p.f.Lists)
	}
	return w.cuts[window+1].From
}

// Nodes returns the number of lists.
func (w *Windows) Nodes() uint64 { return w.p.Nodes() }

// Edges returns the number of entries.
func (w *Windows) Edges() uint64 { return w.p.Edges() }

// Stats returns the number of blocks read, and the memory held.
func (w *Windows) Stats() Stats {
	st := Stats{Kind: "in passes", BlocksRead: w.read.Load(),
		Bytes: 2 * listfile.WindowBytes(&w.p.f.Shape, w.blocks)}
	st.BytesRead = st.BlocksRead * uint64(w.p.f.BlockBytes)
	return st
}

// Close frees the memory. The paged reader stays open.
func (w *Windows) Close() (err error) {
	for i, h := range w.held {
		if h != nil {
			err = errors.Join(err, h.Free())
		}
		w.held[i] = nil
	}
	return err
}

// Each calls fn with each window that has wanted lists, in the order of the file. During the call
// sessions can read these lists, and no others. nodes returns, for each of several users, the nodes
// whose lists are wanted of a window, in any order; another goroutine calls it, once for each
// window and ahead of fn. There may be one pass at a time.
func (w *Windows) Each(ctx context.Context, nodes func(window int) [][]layout.NodeID,
	fn func(window int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	type loaded struct {
		window, buffer int
		err            error
	}
	next, free := make(chan loaded), make(chan int, len(w.held))
	for i := range w.held {
		free <- i
	}
	done := make(chan struct{})
	go func() {
		defer bug.Catch()
		defer close(done)
		defer close(next)
		for i := range w.cuts {
			lists := nodes(i)
			if !slices.ContainsFunc(lists, func(l []layout.NodeID) bool { return len(l) > 0 }) {
				continue
			}
			var l loaded
			select {
			case l.buffer = <-free:
			case <-ctx.Done():
				return
			}
			l.window, l.err = i, w.load(ctx, i, l.buffer, lists)
			select {
			case next <- l:
			case <-ctx.Done():
				return
			}
			if l.err != nil {
				return
			}
		}
	}()
	defer func() {
		cancel()
		<-done
	}()
	for l := range next {
		if l.err != nil {
			return l.err
		}
		w.now = l.buffer
		if err := fn(l.window); err != nil {
			return err
		}
		free <- l.buffer
	}
	return ctx.Err()
}

// load reads the blocks of a window that have wanted lists.
func (w *Windows) load(ctx context.Context, window, buffer int, lists [][]layout.NodeID) error {
	c := w.cuts[window]
	wanted := w.want(c, w.wanted[buffer][:c.End-c.First], lists)
	n, err := w.held[buffer].Read(ctx, c, wanted)
	w.read.Add(uint64(n))
	w.p.blocksRead.Add(uint64(n))
	return err
}

// want marks the blocks that have wanted lists, or returns nil for all blocks if most would be
// marked, since finding them takes longer than reading the rest.
func (w *Windows) want(c listfile.Window, wanted []bool, lists [][]layout.NodeID) []bool {
	n := 0
	for _, l := range lists {
		n += len(l)
	}
	if n >= len(wanted)/2 {
		return nil
	}
	clear(wanted)
	keys := w.p.ix.Keys[c.First:c.End]
	for _, l := range lists {
		for _, v := range l {
			key := listfile.Key(v, 1<<32-1)
			at, _ := slices.BinarySearch(keys, key) // no list ends there
			for at--; at >= 0; at-- {
				wanted[at] = true
				if keys[at]>>32 != uint64(v) || uint32(keys[at]) == 0 {
					break
				}
			}
		}
	}
	return wanted
}

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
