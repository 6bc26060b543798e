package extsort

import (
	"bytes"
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

// same says whether key and text are equal.
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
			return fmt.Errorf("extsort: an id of %d bytes does not fit in the memory given",
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
	w, err := newRunWriter(&s.opt, fmt.Sprintf("%s-%d.run", s.opt.Prefix, len(s.runs)))
	if err != nil {
		return err
	}
	var last Entry
	for i, k := range keys {
		e, _ := decodeEntry(s.text[k[1]:s.used])
		if s.opt.Distinct && i > 0 && last.same(&e) {
			continue
		}
		if err = w.entry(&e); err != nil {
			break
		}
		last = e
	}
	run, err2 := w.finish()
	s.runs = append(s.runs, run)
	s.n, s.used = 0, 0
	return errors.Join(err, err2)
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

func (w *runWriter) entry(e *Entry) error {
	if err := w.room(entryBytes + len(e.Text)); err != nil {
		return err
	}
	w.block = e.appendTo(w.block)
	w.run.Records++
	return nil
}

// Finish spills what is left, frees the arena and returns the runs, which are durable.
func (s *Strings) Finish() ([]Run, error) {
	err := s.spill()
	return s.runs, errors.Join(err, s.arena.Free())
}

// Abort frees the arena. After Finish it does nothing.
func (s *Strings) Abort() error { return s.arena.Free() }
