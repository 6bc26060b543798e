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

// Windows reads the lists of a paged reader in the order of its file, a window of them at a time:
// who needs lists of many nodes asks for all of them in one pass, which reads each block at most
// once, in large reads. While one window is used the next is read.
//
// Its sessions read what the window at hand has. Memory: two windows.
type Windows struct {
	p      *paged
	cuts   []listfile.Window
	blocks int // of a window at most
	held   [2]*listfile.WindowBlocks
	wanted [2][]bool
	now    int // which of held is at hand
	read   atomic.Uint64
}

// windowLeast is the least size of a window in bytes: much less is read than used.
const windowLeast = 512 << 10

// windowBlocks is how many blocks a window has for so much memory.
func windowBlocks(s *listfile.Shape, bytes int64) int {
	blocks := int(bytes / 2 / int64(s.BlockBytes))
	for blocks > 0 && 2*listfile.WindowBytes(s, blocks) > bytes {
		blocks -= max(1, blocks/32)
	}
	return blocks
}

// NewWindows returns windows of a paged reader that take so many bytes of memory. ok is false if
// the reader has none: it is not a paged one, its store is of the former layout, or there is a list
// that is longer than a window.
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

// Count is how many windows there are.
func (w *Windows) Count() int { return len(w.cuts) }

// After is the node after the last whose list a window has.
func (w *Windows) After(window int) layout.NodeID {
	if window+1 == len(w.cuts) {
		return layout.NodeID(w.p.f.Nodes)
	}
	return w.cuts[window+1].From
}

// Nodes is the number of lists.
func (w *Windows) Nodes() uint64 { return w.p.Nodes() }

// Edges is the number of entries.
func (w *Windows) Edges() uint64 { return w.p.Edges() }

// Stats has what was read, and the memory held.
func (w *Windows) Stats() Stats {
	st := Stats{Kind: "in passes", BlocksRead: w.read.Load(),
		Bytes: 2 * listfile.WindowBytes(&w.p.f.Shape, w.blocks)}
	st.BytesRead = st.BlocksRead * uint64(w.p.f.BlockBytes)
	return st
}

// Close frees the memory; the paged reader stays open.
func (w *Windows) Close() (err error) {
	for i, h := range w.held {
		if h != nil {
			err = errors.Join(err, h.Free())
		}
		w.held[i] = nil
	}
	return err
}

// Each calls fn with each window that has wanted lists, in the order of the file; sessions read
// these during the call, and no others. nodes gives the nodes whose lists are wanted of a window,
// in any order, of each of several users: it is called by another goroutine, once for each window
// and ahead of fn. One pass at a time.
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

// load reads a window as far as lists in it are wanted.
func (w *Windows) load(ctx context.Context, window, buffer int, lists [][]layout.NodeID) error {
	c := w.cuts[window]
	wanted := w.want(c, w.wanted[buffer][:c.End-c.First], lists)
	n, err := w.held[buffer].Read(ctx, c, wanted)
	w.read.Add(uint64(n))
	w.p.blocksRead.Add(uint64(n))
	return err
}

// want marks the blocks that have wanted lists; nil is all of them: most would be marked, and
// looking them up takes longer than reading the rest.
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
