package topology

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"gdb/internal/bug"
	"gdb/layout"
	"gdb/layout/listfile"
)

// Windows reads the lists of a paged reader in the order of its file, a window at a time. Lists of
// many nodes are read in one pass, which reads each block at most once, in large reads. While one
// window is used, the next is read.
//
// Its sessions read lists of the current window only. It takes the memory of two windows.
type Windows struct {
	p      *paged
	cuts   []listfile.Window
	blocks int // most blocks of a window
	held   [2]*listfile.WindowBlocks
	wanted [2][]bool
	now    int // which of held is current
	read   atomic.Uint64
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
	p, is := t.(*paged)
	if !is || p.ix.Version < listfile.CodedLayout {
		return nil, false, nil
	}
	w = &Windows{p: p, blocks: windowBlocks(&p.f.Shape, bytes)}
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
		return layout.NodeID(w.p.f.Nodes)
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
