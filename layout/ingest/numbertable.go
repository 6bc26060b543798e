package ingest

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"path"
	"slices"

	"gdb/internal/mem"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/source"
)

// numberTable numbers text ids in memory, in order of first appearance:
//
//	slots   hash (64) | place in texts, plus one (64)     open addressing, 3/4 full at most
//	texts   number (32) | length (32) | text, …           in order of number
//
// Memory: 29 bytes an id and its text. When it is full the ids are numbered by sorting instead.
type numberTable struct {
	arena *mem.Arena
	slots []uint64 // two words each
	texts []byte
	used  int
	count uint32
	most  uint32
	near  []uint64 // place plus one of the first candidate of each id of a chunk
}

// errTableFull says that the ids do not fit.
var errTableFull = errors.New("the ids do not fit in memory")

// numberBytes is what an id takes in texts besides its text.
const numberBytes = 8

// tableSlots is how many slots a table of size bytes has. An id takes four bytes of its file or
// more, with rare exceptions: more slots than that would only spread the ids of a small file over
// memory that the system must clear first, a huge page for each of them. What is read from
// compressed files is not known.
func tableSlots(size int64, info *source.Info) int64 {
	n := size / 2 / 16
	for _, p := range info.Paths {
		if slices.Contains([]string{".gz", ".bz2", ".zst"}, path.Ext(p)) {
			return n
		}
	}
	return min(n, max(info.Bytes/3, 1024))
}

// newNumberTable makes a table of n slots in size bytes.
func newNumberTable(budget *mem.Budget, size, n int64) (*numberTable, error) {
	a, err := mem.NewArena(budget, "the table of ids", size)
	if err != nil {
		return nil, err
	}
	t := &numberTable{arena: a, texts: a.Bytes()[n*16:],
		slots: mem.View[uint64](a.Bytes()[:n*16]), most: uint32(min(n*3/4, nodesMax-1))}
	return t, nil
}

func (t *numberTable) free() error { return t.arena.Free() }

// slot is where the probing of a hash begins.
func (t *numberTable) slot(h uint64) uint64 {
	at, _ := bits.Mul64(h, uint64(len(t.slots)/2))
	return 2 * at
}

// candidates looks up the first slot of each hash. It is a loop of its own so that the cache
// misses of many ids overlap.
func (t *numberTable) candidates(hashes []uint64) []uint64 {
	t.near = slices.Grow(t.near[:0], len(hashes))[:len(hashes)]
	for i, h := range hashes {
		at := t.slot(h)
		place := t.slots[at+1]
		if t.slots[at] != h {
			place = 0
		}
		t.near[i] = place
	}
	return t.near
}

// number returns the number of an id, which is the next one if the id is new. near is its
// candidate.
func (t *numberTable) number(id []byte, h, near uint64) (uint64, error) {
	if near != 0 {
		if n, same := t.at(near, id); same {
			return n, nil
		}
	}
	for at := t.slot(h); ; at += 2 {
		if at == uint64(len(t.slots)) {
			at = 0
		}
		s := t.slots[at : at+2]
		switch {
		case s[1] == 0:
			return t.insert(s, id, h)
		case s[0] == h:
			n, same := t.at(s[1], id)
			if !same {
				return 0, errCollision
			}
			return n, nil
		}
	}
}

// at returns the number of the id at a place, and whether it is the one that is looked for.
func (t *numberTable) at(place uint64, id []byte) (n uint64, same bool) {
	b := t.texts[place-1:]
	size := binary.LittleEndian.Uint32(b[4:])
	if int(size) != len(id) || string(b[numberBytes:numberBytes+len(id)]) != string(id) {
		return 0, false
	}
	return uint64(binary.LittleEndian.Uint32(b)), true
}

func (t *numberTable) insert(s []uint64, id []byte, h uint64) (uint64, error) {
	need := numberBytes + len(id)
	if t.count == t.most || t.used+need > len(t.texts) {
		return 0, errTableFull
	}
	b := t.texts[t.used:]
	binary.LittleEndian.PutUint32(b, t.count)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(id)))
	copy(b[numberBytes:], id)
	s[0], s[1] = h, uint64(t.used)+1
	t.used += need
	t.count++
	return uint64(t.count) - 1, nil
}

// write writes the ids as entries in order of number.
func (t *numberTable) write(w *extsort.RunWriter) error {
	for at, n := 0, uint64(0); at < t.used; n++ {
		size := int(binary.LittleEndian.Uint32(t.texts[at+4:]))
		text := t.texts[at+numberBytes : at+numberBytes+size]
		if err := w.Add(extsort.Entry{Key: n, Text: text}); err != nil {
			return err
		}
		at += numberBytes + size
	}
	return nil
}

// tableCollector numbers text ids as they come.
type tableCollector struct {
	p        *pipeline
	table    *numberTable
	seed     uint64
	src, dst []uint64 // hashes
}

func (t *tableCollector) nodeKeys(c *source.IDChunk, out []uint64) (err error) {
	if c.Text == nil {
		return errIntegerNodes
	}
	t.src = t.hashes(t.src, c.Text)
	near := t.table.candidates(t.src)
	for i, id := range c.Text {
		if out[i], err = t.table.number(id, t.src[i], near[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *tableCollector) edgeKeys(c *source.EdgeChunk, src, dst []uint64) (err error) {
	t.src, t.dst = t.hashes(t.src, c.SrcText), t.hashes(t.dst, c.DstText)
	n := len(t.src)
	t.src = append(t.src, t.dst...)
	near := t.table.candidates(t.src)
	for i := range n {
		if src[i], err = t.table.number(c.SrcText[i], t.src[i], near[i]); err != nil {
			return err
		}
		if dst[i], err = t.table.number(c.DstText[i], t.dst[i], near[n+i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *tableCollector) hashes(out []uint64, ids [][]byte) []uint64 {
	out = out[:0]
	for _, id := range ids {
		out = append(out, t.p.hash(t.seed, id))
	}
	return out
}

func (t *tableCollector) finish() ([]extsort.Run, error) {
	w, err := t.p.newRun("table")
	if err != nil {
		return nil, err
	}
	err = t.table.write(w)
	run, err2 := w.Finish()
	return []extsort.Run{run}, errors.Join(err, err2)
}

func (t *tableCollector) close() error { return t.table.free() }
