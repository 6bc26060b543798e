package steps

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"path"
	"slices"

	"gdb/internal/mem"
	"gdb/layout/ingest/columnar"
	"gdb/layout/ingest/extsort"
)

// rankWords is the number of bitmap words that share a counter.
const rankWords = 8

// IDSet is the set of integer ids that occur, as a bitmap over [0, limit), and after Index the map
// from an id to its rank, which is its number: ids keep their order. Memory: 1 bit an id of the
// range and 1/16 of that for the ranks; untouched parts of the range cost nothing.
type IDSet struct {
	arena  *mem.Arena
	bitmap []uint64
	ranks  []uint32 // ids below each group of rankWords words
	limit  uint64
	top    uint64 // the largest id plus one
	count  uint64
}

// NewIDSet returns an empty set of ids below limit.
func NewIDSet(budget *mem.Budget, limit uint64) (*IDSet, error) {
	words := (limit/64 + rankWords) &^ (rankWords - 1)
	a, err := mem.NewArena(budget, "the set of ids", int64(words*8+words/rankWords*4+64))
	if err != nil {
		return nil, err
	}
	b := a.Bytes()
	return &IDSet{arena: a, bitmap: mem.View[uint64](b[:words*8]),
		ranks: mem.View[uint32](b[words*8:]), limit: limit}, nil
}

// Add puts an id into the set; false if it is out of range.
func (s *IDSet) Add(id uint64) bool {
	if id >= s.limit {
		return false
	}
	if w, bit := &s.bitmap[id/64], uint64(1)<<(id%64); *w&bit == 0 {
		*w |= bit
		s.top = max(s.top, id+1)
	}
	return true
}

// Index counts the ids and prepares Rank.
func (s *IDSet) Index() {
	s.count = 0
	for i, w := range s.Used() {
		if i%rankWords == 0 {
			s.ranks[i/rankWords] = uint32(s.count)
		}
		s.count += uint64(bits.OnesCount64(w))
	}
}

// Used returns the part of the bitmap that has ones.
func (s *IDSet) Used() []uint64 { return s.bitmap[:(s.top+63)/64] }

// Rank returns the number of smaller ids in the set; false if id is not in it.
func (s *IDSet) Rank(id uint64) (uint32, bool) {
	if id >= s.top {
		return 0, false
	}
	w, bit := id/64, uint64(1)<<(id%64)
	if s.bitmap[w]&bit == 0 {
		return 0, false
	}
	r := s.ranks[w/rankWords]
	for k := w &^ (rankWords - 1); k < w; k++ {
		r += uint32(bits.OnesCount64(s.bitmap[k]))
	}
	return r + uint32(bits.OnesCount64(s.bitmap[w]&(bit-1))), true
}

// Count returns the number of ids, after Index.
func (s *IDSet) Count() uint64 { return s.count }

// Load fills an empty set with what Used of another gave, in pieces: one goes to word at and on,
// and the next to the word that is returned.
func (s *IDSet) Load(at int, words []uint64) int {
	n := copy(s.bitmap[at:], words)
	for i := n - 1; i >= 0; i-- {
		if words[i] != 0 {
			s.top = uint64(at+i)*64 + uint64(bits.Len64(words[i]))
			break
		}
	}
	return at + n
}

// Dense reports whether the ids are exactly 0..count-1.
func (s *IDSet) Dense() bool { return s.count == s.top }

// Each calls fn with all ids in ascending order.
func (s *IDSet) Each(fn func(id uint64) error) error {
	for i, w := range s.Used() {
		for ; w != 0; w &= w - 1 {
			if err := fn(uint64(i)*64 + uint64(bits.TrailingZeros64(w))); err != nil {
				return err
			}
		}
	}
	return nil
}

// Free gives the memory back.
func (s *IDSet) Free() error { return s.arena.Free() }

// NumberTable numbers texts, the ids of nodes, in memory, in order of first appearance:
//
//	slots   hash (64) | place in texts, plus one (64)     open addressing, 3/4 full at most
//	texts   number (32) | length (32) | text, …           in order of number
//
// Memory: 29 bytes an id and its text. When it is full the ids are numbered by sorting instead.
type NumberTable struct {
	arena *mem.Arena
	slots []uint64 // two words each
	texts []byte
	used  int
	count uint32
	most  uint32
	near  []uint64 // place plus one of the first candidate of each id of a chunk
}

// Errors of numbering.
var (
	// ErrNumbersFull says that the ids do not fit.
	ErrNumbersFull = errors.New("the ids do not fit in memory")
	// ErrCollision says that two texts have one hash.
	ErrCollision = errors.New("two ids have one hash")
)

// headBytes is what an id takes in texts besides its text.
const headBytes = 8

// NumberSlots returns how many slots a table of size bytes has for the ids of files, which have
// bytes in all and about ids ids, each counted as often as it occurs; ids is 0 where that is not
// known. More slots would only spread the ids of a small file over memory that the system must
// clear first, a huge page for each of them. An id takes four bytes of text or more, with rare
// exceptions; in compressed files and tables of columns less.
func NumberSlots(size int64, files []string, bytes int64, ids uint64) int64 {
	n := size / 2 / 16
	packed := func(p string) bool {
		return slices.Contains([]string{".gz", ".bz2", ".zst"}, path.Ext(p))
	}
	tables := slices.ContainsFunc(files, columnar.Is)
	switch {
	case slices.ContainsFunc(files, packed), tables && (ids == 0 || ids >= 1<<40):
		return n
	case tables:
		return min(n, max(int64(ids)*3/2, 1024))
	}
	return min(n, max(bytes/3, 1024))
}

// NewNumberTable makes a table of n slots in size bytes, for most texts at most.
func NewNumberTable(budget *mem.Budget, size, n int64, most uint32) (*NumberTable, error) {
	a, err := mem.NewArena(budget, "the table of ids", size)
	if err != nil {
		return nil, err
	}
	t := &NumberTable{arena: a, texts: a.Bytes()[n*16:],
		slots: mem.View[uint64](a.Bytes()[:n*16]), most: uint32(min(n*3/4, int64(most)))}
	return t, nil
}

// Free gives the memory back.
func (t *NumberTable) Free() error { return t.arena.Free() }

// slot returns where the probing of a hash begins.
func (t *NumberTable) slot(h uint64) uint64 {
	at, _ := bits.Mul64(h, uint64(len(t.slots)/2))
	return 2 * at
}

// Candidates looks up the first slot of each hash. It is a loop of its own so that the cache
// misses of many ids overlap.
func (t *NumberTable) Candidates(hashes []uint64) []uint64 {
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

// Number returns the number of an id, which is the next one if the id is new. near is its
// candidate.
func (t *NumberTable) Number(id []byte, h, near uint64) (uint64, error) {
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
				return 0, ErrCollision
			}
			return n, nil
		}
	}
}

// at returns the number of the id at a place, and whether it is the one that is looked for.
func (t *NumberTable) at(place uint64, id []byte) (n uint64, same bool) {
	b := t.texts[place-1:]
	size := binary.LittleEndian.Uint32(b[4:])
	if int(size) != len(id) || string(b[headBytes:headBytes+len(id)]) != string(id) {
		return 0, false
	}
	return uint64(binary.LittleEndian.Uint32(b)), true
}

func (t *NumberTable) insert(s []uint64, id []byte, h uint64) (uint64, error) {
	need := headBytes + len(id)
	if t.count == t.most || t.used+need > len(t.texts) {
		return 0, ErrNumbersFull
	}
	b := t.texts[t.used:]
	binary.LittleEndian.PutUint32(b, t.count)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(id)))
	copy(b[headBytes:], id)
	s[0], s[1] = h, uint64(t.used)+1
	t.used += need
	t.count++
	return uint64(t.count) - 1, nil
}

// Write writes the ids as entries in order of number.
func (t *NumberTable) Write(w *extsort.RunWriter) error {
	for at, n := 0, uint64(0); at < t.used; n++ {
		size := int(binary.LittleEndian.Uint32(t.texts[at+4:]))
		text := t.texts[at+headBytes : at+headBytes+size]
		if err := w.Add(extsort.Entry{Key: n, Text: text}); err != nil {
			return err
		}
		at += headBytes + size
	}
	return nil
}
