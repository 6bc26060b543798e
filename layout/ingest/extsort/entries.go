package extsort

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
)

// Entries delivers the entries of sorted runs in order: the counterpart of Strings. It is pulled,
// not pushed, so that two of them can be joined.
type Entries struct {
	opt    Options
	blocks *mem.Arena // of the readers
	heap   entryHeap
	made   []Run // by reduce, removed by Close
	n      int   // entries delivered
	last   Entry // the last one delivered, if Distinct
	any    bool  // last is set
}

// entryReader reads one run of entries.
type entryReader struct {
	*runReader
	head  Entry
	size  int // bytes of head in block; negative if it was delivered
	block []byte
}

// entryHeap has the reader with the least head at 0.
type entryHeap []*entryReader

// sink restores the order below i.
func (h entryHeap) sink(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h); c++ {
			if h[c].head.compare(&h[least].head) < 0 {
				least = c
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// OpenEntries opens the runs of a Strings sorter; opt.Memory bounds the block buffers. If there
// are more runs than fit, they are first merged to longer ones.
func OpenEntries(ctx context.Context, opt Options, runs []Run) (*Entries, error) {
	opt.ensureDefaults()
	e := &Entries{opt: opt}
	runs, err := e.reduce(ctx, runs)
	if err == nil {
		err = e.open(runs)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Entries) open(runs []Run) (err error) {
	if e.blocks, err = blockArena(&e.opt, len(runs)); err != nil {
		return err
	}
	for i, run := range runs {
		r, err := openRun(&e.opt, run, blockOf(e.blocks, &e.opt, i))
		if err != nil {
			return err
		}
		er := &entryReader{runReader: r}
		ok, err := er.advance()
		if err != nil || !ok {
			if err = errors.Join(err, r.close()); err != nil {
				return err
			}
			continue
		}
		e.heap = append(e.heap, er)
	}
	for i := len(e.heap)/2 - 1; i >= 0; i-- {
		e.heap.sink(i)
	}
	return nil
}

// reduce merges runs until they can be merged at once.
func (e *Entries) reduce(ctx context.Context, runs []Run) ([]Run, error) {
	fan := fanIn(e.opt.Memory, e.opt.BlockBytes)
	for len(runs) > fan {
		n := min(fan, len(runs)-fan+1)
		name := fmt.Sprintf("%s-m%d.run", e.opt.Prefix, len(e.made))
		sub := &Entries{opt: e.opt}
		err := sub.open(runs[:n])
		var run Run
		if err == nil {
			run, err = sub.writeTo(ctx, name)
		}
		if err = errors.Join(err, sub.Close()); err != nil {
			return nil, err
		}
		e.made = append(e.made, run)
		runs = append(append([]Run{}, runs[n:]...), run)
	}
	return runs, nil
}

func (e *Entries) writeTo(ctx context.Context, name string) (Run, error) {
	w, err := NewRunWriter(e.opt, name)
	if err != nil {
		return Run{}, err
	}
	for err == nil {
		entry, ok, err2 := e.Next(ctx)
		if err = err2; err != nil || !ok {
			break
		}
		err = w.Add(entry)
	}
	run, err2 := w.Finish()
	return run, errors.Join(err, err2)
}

// Next returns the next entry; ok is false at the end. Its text is valid until the next call.
func (e *Entries) Next(ctx context.Context) (entry Entry, ok bool, err error) {
	if e.n++; e.n&0xfff == 0 {
		if err := ctx.Err(); err != nil {
			return Entry{}, false, err
		}
	}
	for {
		if err := e.step(); err != nil || len(e.heap) == 0 {
			return Entry{}, false, err
		}
		top := e.heap[0]
		top.block, top.size = top.block[top.size:], -1
		if !e.opt.Distinct {
			return top.head, true, nil
		}
		if e.last.same(&top.head) && e.any {
			continue
		}
		e.last = Entry{Key: top.head.Key, Text: append(e.last.Text[:0], top.head.Text...)}
		e.any = true
		return top.head, true, nil
	}
}

// step takes the run whose head was delivered to its next entry.
func (e *Entries) step() error {
	if len(e.heap) == 0 || e.heap[0].size >= 0 {
		return nil
	}
	top := e.heap[0]
	more, err := top.advance()
	if err != nil {
		return err
	}
	if !more {
		last := len(e.heap) - 1
		e.heap[0], e.heap = e.heap[last], e.heap[:last]
		err = top.close()
	}
	e.heap.sink(0)
	return err
}

// advance decodes the next entry of the run to head.
func (r *entryReader) advance() (bool, error) {
	if len(r.block) == 0 {
		block, err := r.next()
		if err != nil || block == nil {
			return false, err
		}
		r.block = block
	}
	r.head, r.size = decodeEntry(r.block)
	if r.size == 0 {
		return false, r.damaged("an entry is cut off")
	}
	r.records++
	return true, nil
}

// Close closes the runs and removes those that were made on the way. The runs given stay.
func (e *Entries) Close() error {
	var errs []error
	for _, r := range e.heap {
		errs = append(errs, r.close())
	}
	e.heap = nil
	if e.blocks != nil {
		errs = append(errs, e.blocks.Free())
	}
	for _, run := range e.made {
		errs = append(errs, e.opt.Remove(run))
	}
	e.made = nil
	return errors.Join(errs...)
}

// RunWriter writes one run of entries that come in order already.
type RunWriter struct{ w *runWriter }

// NewRunWriter starts a run with a name below opt.Dir.
func NewRunWriter(opt Options, name string) (*RunWriter, error) {
	opt.ensureDefaults()
	w, err := newRunWriter(&opt, name)
	return &RunWriter{w}, err
}

// Add appends an entry, which is not before the last.
func (w *RunWriter) Add(e Entry) error { return w.w.entry(&e) }

// Finish makes the run durable and closes it.
func (w *RunWriter) Finish() (Run, error) { return w.w.finish() }
