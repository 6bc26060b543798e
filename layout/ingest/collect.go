package ingest

import (
	"errors"

	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
)

// idCollector turns the ids of chunks to keys, one uint64 an id, and remembers what is needed to
// number them: equal ids have equal keys, and keys of different ids differ (of text, that is
// checked when the ids are numbered).
type idCollector interface {
	// nodeKeys takes the ids of node tables, before edges.
	nodeKeys(c *source.IDChunk, out []uint64) error
	edgeKeys(c *source.EdgeChunk, src, dst []uint64) error
	// finish returns the runs that number them.
	finish() ([]extsort.Run, error)
	close() error
}

func newIDCollector(p *pipeline, out *scanResult) (idCollector, error) {
	switch out.Mode {
	case idRanked:
		set, err := steps.NewIDSet(p.Budget, p.Memory.IDLimit())
		return &rankedCollector{p: p, set: set}, err
	case idWide:
		s, err := extsort.NewWords(p.Sorter("ids", 1, p.Memory.Strings))
		return &wideCollector{sorter: s}, err
	case idTable:
		t, err := steps.NewNumberTable(p.Budget, p.Memory.Table,
			steps.NumberSlots(p.Memory.Table, p.info.Paths, p.info.Bytes, p.info.IDsAbout),
			nodesMax-1)
		return &tableCollector{p: p, table: t, seed: out.HashSeed}, err
	case idText:
		opt := p.Sorter("ids", 0, p.Memory.Strings)
		opt.Distinct = true
		s, err := extsort.NewStrings(opt)
		return &textCollector{sorter: s, seed: out.HashSeed, hash: p.hash,
			recent: make([]recentID, recentIDs)}, err
	}
	return rowCollector{}, nil
}

// rowCollector takes row numbers as they are.
type rowCollector struct{}

func (rowCollector) nodeKeys(*source.IDChunk, []uint64) error { return nil }

func (rowCollector) edgeKeys(c *source.EdgeChunk, src, dst []uint64) error {
	copy(src, c.SrcInt)
	copy(dst, c.DstInt)
	return nil
}

func (rowCollector) finish() ([]extsort.Run, error) { return nil, nil }
func (rowCollector) close() error                   { return nil }

// rankedCollector keeps the set of integer ids.
type rankedCollector struct {
	p   *pipeline
	set *steps.IDSet
}

func (r *rankedCollector) nodeKeys(c *source.IDChunk, out []uint64) error {
	copy(out, c.Ints)
	return r.addAll(c.Ints)
}

func (r *rankedCollector) edgeKeys(c *source.EdgeChunk, src, dst []uint64) error {
	copy(src, c.SrcInt)
	copy(dst, c.DstInt)
	if err := r.addAll(src); err != nil {
		return err
	}
	return r.addAll(dst)
}

func (r *rankedCollector) addAll(ids []uint64) error {
	for _, id := range ids {
		if !r.set.Add(id) {
			return errWide
		}
	}
	return nil
}

func (r *rankedCollector) finish() ([]extsort.Run, error) {
	run, err := extsort.WriteWords(r.p.Sorter("set", 1, 0), "runs/set.run", r.set.Used())
	return []extsort.Run{run}, err
}

func (r *rankedCollector) close() error { return r.set.Free() }

// recentIDs is the number of ids that are remembered as seen: a power of two. Most ids of a graph
// with hubs are met again soon, and need not be sorted again.
const recentIDs = 1 << 16

// wideCollector sorts integer ids.
type wideCollector struct {
	sorter *extsort.Words
	recent [recentIDs]uint64
}

func (w *wideCollector) nodeKeys(c *source.IDChunk, out []uint64) error {
	copy(out, c.Ints)
	return w.addAll(out)
}

func (w *wideCollector) edgeKeys(c *source.EdgeChunk, src, dst []uint64) error {
	copy(src, c.SrcInt)
	copy(dst, c.DstInt)
	if err := w.addAll(src); err != nil {
		return err
	}
	return w.addAll(dst)
}

func (w *wideCollector) addAll(ids []uint64) error {
	var one [1]uint64
	for _, id := range ids {
		// The cache holds the id plus one: zero is an empty slot, and the largest id is never
		// found.
		slot := &w.recent[id*0x9e3779b97f4a7c15>>(64-16)]
		if *slot == id+1 && id+1 != 0 {
			continue
		}
		*slot, one[0] = id+1, id
		if err := w.sorter.Add(one[:]); err != nil {
			return err
		}
	}
	return nil
}

func (w *wideCollector) finish() ([]extsort.Run, error) { return w.sorter.Finish() }
func (w *wideCollector) close() error                   { return w.sorter.Abort() }

// errIntegerNodes says that a source gives ids of two kinds.
var errIntegerNodes = input.Usage("node ids are integers, but edges have text ids")

// recentID is an id that was seen, if it is short enough to be remembered.
type recentID struct {
	hash uint64
	size uint8 // of the text, plus one; 0 is an empty slot
	text [55]byte
}

// textCollector sorts text ids by their hash.
type textCollector struct {
	sorter *extsort.Strings
	hash   func(seed uint64, external []byte) uint64
	seed   uint64
	place  uint64 // of the next id, in order of appearance
	recent []recentID
}

func (t *textCollector) nodeKeys(c *source.IDChunk, out []uint64) (err error) {
	if c.Text == nil {
		return errIntegerNodes
	}
	for i, id := range c.Text {
		if out[i], err = t.add(id); err != nil {
			return err
		}
	}
	return nil
}

func (t *textCollector) edgeKeys(c *source.EdgeChunk, src, dst []uint64) error {
	for i := range c.SrcText {
		a, err := t.add(c.SrcText[i])
		b, err2 := t.add(c.DstText[i])
		if err != nil || err2 != nil {
			return errors.Join(err, err2)
		}
		src[i], dst[i] = a, b
	}
	return nil
}

// add returns the key of an id.
func (t *textCollector) add(id []byte) (uint64, error) {
	h := t.hash(t.seed, id)
	place := t.place
	t.place++
	slot := &t.recent[h%recentIDs]
	if slot.hash == h && int(slot.size) == len(id)+1 && string(slot.text[:len(id)]) == string(id) {
		return h, nil
	}
	if len(id) <= len(slot.text) {
		slot.hash, slot.size = h, uint8(len(id)+1)
		copy(slot.text[:], id)
	}
	return h, t.sorter.Add(extsort.Entry{Key: h, Text: id, Aux: place})
}

func (t *textCollector) finish() ([]extsort.Run, error) { return t.sorter.Finish() }
func (t *textCollector) close() error                   { return t.sorter.Abort() }
