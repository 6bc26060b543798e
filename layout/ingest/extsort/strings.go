package extsort

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/mem"
)

// Entry is a record of Strings. Entries sort by Key, then Text, then Aux.
type Entry struct {
	Key  uint64
	Text []byte // valid as long as the call that delivers it
	Aux  uint64
}

// entryBytes is what an entry takes besides its text: key, aux and length.
const entryBytes = 8 + 8 + 4

func (e *Entry) compare(o *Entry) int {
	switch {
	case e.Key != o.Key && e.Key < o.Key:
		return -1
	case e.Key != o.Key:
		return 1
	}
	if c := bytes.Compare(e.Text, o.Text); c != 0 {
		return c
	}
	switch {
	case e.Aux < o.Aux:
		return -1
	case e.Aux > o.Aux:
		return 1
	}
	return 0
}

// same reports whether key and text are equal.
func (e *Entry) same(o *Entry) bool { return e.Key == o.Key && bytes.Equal(e.Text, o.Text) }

// appendTo encodes the entry as it stands in arenas and runs.
func (e *Entry) appendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, e.Key)
	b = binary.LittleEndian.AppendUint64(b, e.Aux)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(e.Text)))
	return append(b, e.Text...)
}

// decodeEntry decodes the entry at the start of b and returns its size, or 0 if it is cut off.
func decodeEntry(b []byte) (e Entry, n int) {
	if len(b) < entryBytes {
		return e, 0
	}
	n = entryBytes + int(binary.LittleEndian.Uint32(b[16:]))
	if n > len(b) {
		return e, 0
	}
	e.Key, e.Aux = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	e.Text = b[entryBytes:n:n]
	return e, n
}

// Strings sorts entries. Half of the arena holds entries, a quarter their keys and places, and a
// quarter is scratch for sorting those. It sorts and spills in the caller's goroutine: there is one
// entry a node, not one an edge.
type Strings struct {
	opt     Options
	arena   *mem.Arena
	text    []byte
	used    int
	keys    [][2]uint64 // key, place in text
	n       int
	scratch [][2]uint64
	runs    []Run
}

// NewStrings starts a sorter.
func NewStrings(opt Options) (*Strings, error) {
	opt.ensureDefaults()
	quarter := opt.Memory / 4 / 16 * 16
	if quarter < 1<<12 {
		return nil, fmt.Errorf("extsort: %d bytes are too few to sort in", opt.Memory)
	}
	arena, err := mem.NewArena(opt.Budget, "sorting ids", 4*quarter)
	if err != nil {
		return nil, err
	}
	b := arena.Bytes()
	return &Strings{opt: opt, arena: arena,
		text:    b[:2*quarter],
		keys:    shaped[[2]uint64](mem.View[uint64](b[2*quarter : 3*quarter])),
		scratch: shaped[[2]uint64](mem.View[uint64](b[3*quarter:]))}, nil
}

// Add appends an entry; its text is copied.
func (s *Strings) Add(e Entry) error {
	need := entryBytes + len(e.Text)
	if s.n == len(s.keys) || s.used+need > len(s.text) {
		if err := s.spill(); err != nil {
			return err
		}
		if need > len(s.text) {
			return fmt.Errorf("extsort: a text of %d bytes does not fit in the memory given",
				len(e.Text))
		}
	}
	s.keys[s.n] = [2]uint64{e.Key, uint64(s.used)}
	e.appendTo(s.text[s.used:s.used])
	s.n++
	s.used += need
	return nil
}

func (s *Strings) spill() error {
	if s.n == 0 {
		return nil
	}
	keys := radixSort(s.keys[:s.n], s.scratch, 1)
	s.orderTies(keys)
	run, err := WriteRun(s.opt, fmt.Sprintf("%s-%d.run", s.opt.Prefix, len(s.runs)),
		func(w *RunWriter) error {
			var last Entry
			for i, k := range keys {
				e, _ := decodeEntry(s.text[k[1]:s.used])
				if s.opt.Distinct && i > 0 && last.same(&e) {
					continue
				}
				if err := w.Add(e); err != nil {
					return err
				}
				last = e
			}
			return nil
		})
	s.runs = append(s.runs, run)
	s.n, s.used = 0, 0
	return err
}

// orderTies sorts entries of one key by text and aux.
func (s *Strings) orderTies(keys [][2]uint64) {
	for i := 0; i < len(keys); {
		j := i + 1
		for j < len(keys) && keys[j][0] == keys[i][0] {
			j++
		}
		if j > i+1 {
			slices.SortFunc(keys[i:j], func(a, b [2]uint64) int {
				x, _ := decodeEntry(s.text[a[1]:s.used])
				y, _ := decodeEntry(s.text[b[1]:s.used])
				return x.compare(&y)
			})
		}
		i = j
	}
}

// SortEntries sorts the entries that fill adds, and returns their runs, which are durable.
func SortEntries(opt Options, fill func(s *Strings) error) ([]Run, error) {
	return sortWith(NewStrings, opt, fill)
}

// Finish spills what is left, frees the arena and returns the runs, which are durable.
func (s *Strings) Finish() ([]Run, error) {
	err := s.spill()
	return s.runs, errors.Join(err, s.arena.Free())
}

// Abort frees the arena. After Finish it does nothing.
func (s *Strings) Abort() error { return s.arena.Free() }

// Entries delivers the entries of sorted runs in order: the counterpart of Strings. It is pulled,
// not pushed, so that two of them can be joined.
type Entries struct {
	opt  Options
	runs openRuns
	heap entryHeap
	made []Run // by reduce, removed by Close
	n    int   // entries delivered
	last Entry // the last one delivered, if Distinct
	any  bool  // last is set
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
	runs, made, err := reduce(opt, runs, func(group []Run, w *RunWriter) error {
		return writeEntries(ctx, opt, group, w)
	})
	e.made = made
	if err == nil {
		err = e.open(runs)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Entries) open(runs []Run) error {
	if err := e.runs.open(&e.opt, runs); err != nil {
		return err
	}
	for _, r := range e.runs.readers {
		er := &entryReader{runReader: r}
		ok, err := er.advance()
		if err != nil {
			return err
		}
		if ok {
			e.heap = append(e.heap, er)
		}
	}
	for i := len(e.heap)/2 - 1; i >= 0; i-- {
		e.heap.sink(i)
	}
	return nil
}

// writeEntries merges runs to one.
func writeEntries(ctx context.Context, opt Options, runs []Run, w *RunWriter) error {
	e := &Entries{opt: opt}
	err := e.open(runs)
	for err == nil {
		entry, ok, err2 := e.Next(ctx)
		if err = err2; err != nil || !ok {
			break
		}
		err = w.Add(entry)
	}
	return errors.Join(err, e.Close())
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
	}
	e.heap.sink(0)
	return nil
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
	e.heap = nil
	errs := []error{e.runs.close()}
	for _, run := range e.made {
		errs = append(errs, e.opt.Remove(run))
	}
	e.made = nil
	return errors.Join(errs...)
}
