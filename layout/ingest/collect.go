package ingest

import (
	"strconv"

	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/keys"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
)

// idColumn holds ids as a source gives them: integers, or text.
type idColumn struct {
	ints []uint64
	text [][]byte
}

// idCollector turns the ids of chunks to keys, one uint64 an id, and remembers what is needed to
// number them: equal ids have equal keys, and keys of different ids differ (of text, that is
// checked when the ids are numbered).
type idCollector interface {
	// keys takes the ids of a node table, a, or the two ends of edges. Text appears in the order
	// of the rows.
	keys(a, b idColumn, outA, outB []uint64) error
	// Finish returns the runs that number the ids.
	Finish() ([]extsort.Run, error)
	// Abort frees the memory; after Finish too.
	Abort() error
}

func newIDCollector(p *pipeline, out *scanResult, index *keys.Indexes) (idCollector, error) {
	switch out.Mode {
	case idRanked:
		set, err := steps.NewIDSet(p.Budget, p.Memory.IDLimit())
		return &rankedCollector{p: p, set: set}, err
	case idWide:
		s, err := extsort.NewWords(p.Sorter("ids", 1, p.Memory.Strings))
		return &wideCollector{Words: s}, err
	case idTable:
		memory := p.Memory.Table
		if index != nil {
			memory -= index.Bytes()
		}
		n := steps.NumberSlots(memory, p.info.Paths, p.info.Bytes, p.info.IDsAbout)
		t, err := steps.NewNumberTable(p.Budget, max(memory, tableLeast), n, nodesMax-1)
		return &tableCollector{p: p, table: t, seed: out.HashSeed}, err
	case idText:
		opt := p.Sorter("ids", 0, p.Memory.Strings)
		opt.Distinct = true
		s, err := extsort.NewStrings(opt)
		return &textCollector{Strings: s, seed: out.HashSeed, hash: p.hash,
			recent: make([]recentID, recentIDs)}, err
	}
	return rowCollector{}, nil
}

// tableLeast is the least size of a table of text ids, in bytes.
const tableLeast = 64

// rowCollector takes row numbers as they are.
type rowCollector struct{}

func (rowCollector) keys(a, b idColumn, outA, outB []uint64) error {
	copy(outA, a.ints)
	copy(outB, b.ints)
	return nil
}

// Finish returns nothing: row numbers are nodes.
func (rowCollector) Finish() ([]extsort.Run, error) { return nil, nil }

// Abort does nothing.
func (rowCollector) Abort() error { return nil }

// rankedCollector keeps the set of integer ids.
type rankedCollector struct {
	rowCollector
	p   *pipeline
	set *steps.IDSet
}

func (r *rankedCollector) keys(a, b idColumn, outA, outB []uint64) error {
	for _, ids := range [][]uint64{a.ints, b.ints} {
		for _, id := range ids {
			if !r.set.Add(id) {
				return errWide
			}
		}
	}
	return r.rowCollector.keys(a, b, outA, outB)
}

// Finish writes the set to a run.
func (r *rankedCollector) Finish() ([]extsort.Run, error) {
	run, err := extsort.WriteWords(r.p.Sorter("set", 1, 0), "runs/set.run", r.set.Used())
	return []extsort.Run{run}, err
}

// Abort frees the set.
func (r *rankedCollector) Abort() error { return r.set.Free() }

// recentIDs is the number of ids that are remembered as seen: a power of two. Most ids of a graph
// with hubs are met again soon, and need not be sorted again.
const recentIDs = 1 << 16

// wideCollector sorts integer ids.
type wideCollector struct {
	*extsort.Words
	recent [recentIDs]uint64
}

func (w *wideCollector) keys(a, b idColumn, outA, outB []uint64) error {
	var one [1]uint64
	for _, ids := range [][]uint64{a.ints, b.ints} {
		for _, id := range ids {
			// The cache holds the id plus one: zero is an empty slot, and the largest id is never
			// found.
			slot := &w.recent[id*0x9e3779b97f4a7c15>>(64-16)]
			if *slot == id+1 && id+1 != 0 {
				continue
			}
			*slot, one[0] = id+1, id
			if err := w.Add(one[:]); err != nil {
				return err
			}
		}
	}
	return rowCollector{}.keys(a, b, outA, outB)
}

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
	*extsort.Strings
	hash   func(seed uint64, external []byte) uint64
	seed   uint64
	place  uint64 // of the next id, in order of appearance
	recent []recentID
}

func (t *textCollector) keys(a, b idColumn, outA, outB []uint64) (err error) {
	if a.text == nil {
		return errIntegerNodes
	}
	for i, id := range a.text {
		if outA[i], err = t.key(id); err != nil {
			return err
		}
		if i < len(b.text) {
			if outB[i], err = t.key(b.text[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// key returns the key of an id.
func (t *textCollector) key(id []byte) (uint64, error) {
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
	return h, t.Add(extsort.Entry{Key: h, Text: id, Aux: place})
}

// tableCollector numbers text ids as they come.
type tableCollector struct {
	p      *pipeline
	table  *steps.NumberTable
	seed   uint64
	hashes []uint64
}

func (t *tableCollector) keys(a, b idColumn, outA, outB []uint64) (err error) {
	if a.text == nil {
		return errIntegerNodes
	}
	t.hashes = t.hashes[:0]
	for _, ids := range [][][]byte{a.text, b.text} {
		for _, id := range ids {
			t.hashes = append(t.hashes, t.p.hash(t.seed, id))
		}
	}
	near, n := t.table.Candidates(t.hashes), len(a.text)
	for i, id := range a.text {
		if outA[i], err = t.table.Number(id, t.hashes[i], near[i]); err != nil {
			return err
		}
		if i < len(b.text) {
			outB[i], err = t.table.Number(b.text[i], t.hashes[n+i], near[n+i])
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Finish writes the ids to a run, in order of their numbers.
func (t *tableCollector) Finish() ([]extsort.Run, error) {
	run, err := t.p.WriteRun("table", t.table.Write)
	return []extsort.Run{run}, err
}

// Abort frees the table.
func (t *tableCollector) Abort() error { return t.table.Free() }

// sharedRows is how many ids of the table of nodes are looked for among the edges.
const sharedRows = 1 << 16

// sharedWatch finds out whether any id of the table of nodes is an end of an edge. If none is, the
// wrong column was read as the ids. It holds the keys of the first ids until one is found.
type sharedWatch struct {
	keys  map[uint64]struct{}
	rows  uint64 // of the table
	file  string
	first string // the first id
	found bool
}

// nodes takes ids of the table, and their keys.
func (w *sharedWatch) nodes(c *source.IDChunk, keys []uint64) {
	if w.keys == nil && len(keys) > 0 {
		w.keys, w.file = map[uint64]struct{}{}, c.File
		if c.Ints != nil {
			w.first = strconv.FormatUint(c.Ints[0], 10)
		} else {
			w.first = string(c.Text[0])
		}
	}
	w.rows += uint64(len(keys))
	for _, k := range keys {
		if len(w.keys) == sharedRows {
			return
		}
		w.keys[k] = struct{}{}
	}
}

// edges takes the keys of the ends of edges.
func (w *sharedWatch) edges(src, dst []uint64) {
	if w.keys == nil || w.found {
		return
	}
	for i, k := range src {
		_, isSrc := w.keys[k]
		_, isDst := w.keys[dst[i]]
		if isSrc || isDst {
			w.found, w.keys = true, map[uint64]struct{}{}
			return
		}
	}
}

// check returns an error if no id of the table is an end of an edge, and gives a note instead if
// the table is larger than what was looked at. Sources whose ids are not read from a column, such
// as a part of a store, may have nodes that no edge touches, and so may those that need no edges.
func (w *sharedWatch) check(p *pipeline) error {
	if w.keys == nil || w.found || p.opt.NoEdges {
		return nil
	}
	column := ""
	for _, c := range p.info.Columns {
		if c.File == w.file && c.Role == "node id" {
			column = c.Name
		}
	}
	if column == "" {
		return nil
	}
	if w.rows > sharedRows {
		p.note("%s: none of its first %d ids, such as %q, is in the edges", w.file, sharedRows,
			w.first)
		return nil
	}
	return input.Wrong(w.file, "name the column of the ids with --id-col", "none of its %d ids, "+
		"such as %q, is in the edges; they were read from the column %s", w.rows, w.first, column)
}
