package keys

import (
	"context"
	"errors"
	"math/bits"
	"slices"

	"gdb/internal/mem"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
)

// Indexes lead from the integer ids of types to rows while edges are read.
type Indexes struct {
	work   *steps.Work
	src    Source
	types  []source.KeyIndex // nil where ids are text
	arenas []*mem.Arena
	bytes  int64
}

// Load makes the indexes of what Find found, in at most the memory of the table of text ids, and
// has the source use them. It returns steps.ErrNumbersFull if they do not fit. The caller calls
// Close.
func Load(ctx context.Context, work *steps.Work, src Source, found *Found) (*Indexes, error) {
	x := &Indexes{work: work, src: src, types: make([]source.KeyIndex, len(found.Types))}
	for typ, k := range found.Types {
		switch {
		case k == nil:
			continue
		case k.Meta.Rows == nil:
			x.types[typ] = counted{k.Meta.Base, k.Rows}
			continue
		}
		if err := x.load(ctx, &writer{work: work, src: src, typ: typ, keys: *k}); err != nil {
			return nil, errors.Join(err, x.Close())
		}
	}
	src.UseKeys(x.types)
	return x, nil
}

// Bytes returns the memory that the indexes take.
func (x *Indexes) Bytes() int64 { return x.bytes }

// load makes the index of a type whose ids do not count up by one: of the bits of its ids, unless
// these are so far apart that the ids themselves take less.
func (x *Indexes) load(ctx context.Context, w *writer) error {
	k := &w.keys
	var rows int64 // bytes
	if k.Runs != nil {
		rows = 4 * int64(k.Rows)
	}
	ids, buckets := idsBytes(k)
	words := (k.Greatest-k.Least)/64 + 1
	if size := words * bitsBytes; size <= uint64(ids)+4*buckets {
		b, err := x.arena(int64(size) + rows)
		if err != nil {
			return err
		}
		t := &keyBits{least: k.Least, span: k.Greatest - k.Least,
			bits: mem.View[uint64](b[:8*words]), ranks: mem.View[uint32](b[8*words : 12*words])}
		if k.Runs != nil {
			t.rows = mem.View[uint32](b[size:])[:k.Rows]
		}
		x.types[w.typ] = t
		return t.fill(ctx, w)
	}
	b, err := x.arena(ids + 4*int64(buckets) + rows)
	if err != nil {
		return err
	}
	_, shift := bucketsOf(k)
	index := keyTable{least: k.Least, span: k.Greatest - k.Least, shift: shift,
		first: mem.View[uint32](b[ids:][:4*buckets])}
	if k.Runs != nil {
		index.rows = mem.View[uint32](b[ids+4*int64(buckets):])[:k.Rows]
	}
	if k.wide() {
		t := &sortedKeys[uint64]{keyTable: index, keys: mem.View[uint64](b[:ids])}
		x.types[w.typ] = t
		return t.fill(ctx, w)
	}
	t := &sortedKeys[uint32]{keyTable: index, keys: mem.View[uint32](b[:ids])}
	x.types[w.typ] = t
	return t.fill(ctx, w)
}

// arena returns memory for an index.
func (x *Indexes) arena(bytes int64) ([]byte, error) {
	if x.bytes += bytes; x.bytes > x.work.Memory.Table {
		return nil, steps.ErrNumbersFull
	}
	a, err := mem.NewArena(x.work.Budget, "the index of ids", bytes+8)
	if err != nil {
		return nil, err
	}
	x.arenas = append(x.arenas, a)
	return a.Bytes(), nil
}

// wide reports whether ids less the least one take more than 32 bits.
func (k *Type) wide() bool { return (k.Greatest-k.Least)>>32 != 0 }

// idsBytes returns the bytes of the ids in sortedKeys, and the length of first.
func idsBytes(k *Type) (bytes int64, firsts uint64) {
	size := int64(4)
	if k.wide() {
		size = 8
	}
	buckets, _ := bucketsOf(k)
	return int64(k.Rows) * size, buckets + 1
}

// bucketsOf returns the number of buckets of about four ids each, if ids are spread evenly, and
// the bits of an id below those that tell its bucket.
func bucketsOf(k *Type) (buckets uint64, shift int) {
	shift = max(0, bits.Len64(k.Greatest-k.Least)-bits.Len64(k.Rows/4))
	return (k.Greatest-k.Least)>>shift + 1, shift
}

// Close frees the indexes. The source reads ids as text again.
func (x *Indexes) Close() error {
	if x == nil {
		return nil
	}
	x.src.UseKeys(nil)
	var errs []error
	for _, a := range x.arenas {
		errs = append(errs, a.Free())
	}
	x.arenas = nil
	return errors.Join(errs...)
}

// counted leads from ids that count up by one to rows.
type counted struct{ base, rows uint64 }

// Rows implements source.KeyIndex.
func (c counted) Rows(ids []uint64) int {
	for i, id := range ids {
		row := id - c.base
		if row >= c.rows {
			return i
		}
		ids[i] = row
	}
	return -1
}

// keyTable is what sortedKeys have of any width.
type keyTable struct {
	least, span uint64
	shift       int
	// first holds for each bucket, the ids with the same bits above shift, the place of its first.
	first []uint32
	rows  []uint32 // by place; nil: places are rows
}

// sortedKeys are ids in ascending order, less the least one. A lookup takes two or three cache
// misses where ids are spread evenly, else O(log ids). Memory: 5 bytes an id whose difference to
// the least fits in 32 bits, else 9, and 4 more where ids do not ascend by row.
type sortedKeys[K uint32 | uint64] struct {
	keyTable
	keys []K
}

// fill takes the ids of a type.
func (t *sortedKeys[K]) fill(ctx context.Context, w *writer) error {
	at, bucket := 0, uint64(0)
	err := w.eachID(ctx, t.rows != nil, func(id, row uint64) error {
		k := id - t.least
		if at == len(t.keys) || k > t.span {
			return errChanged
		}
		for ; bucket <= k>>t.shift; bucket++ {
			t.first[bucket] = uint32(at)
		}
		t.keys[at] = K(k)
		if t.rows != nil {
			t.rows[at] = uint32(row)
		}
		at++
		return nil
	})
	for ; bucket < uint64(len(t.first)); bucket++ {
		t.first[bucket] = uint32(at)
	}
	if err == nil && at != len(t.keys) {
		err = errChanged
	}
	return err
}

// Rows implements source.KeyIndex.
func (t *sortedKeys[K]) Rows(ids []uint64) int {
	for i, id := range ids {
		k := id - t.least
		if k > t.span {
			return i
		}
		b := k >> t.shift
		at, found := t.place(K(k), int(t.first[b]), int(t.first[b+1]))
		if !found {
			return i
		}
		ids[i] = uint64(at)
		if t.rows != nil {
			ids[i] = uint64(t.rows[at])
		}
	}
	return -1
}

// place finds an id among the places from lo to hi.
func (t *sortedKeys[K]) place(k K, lo, hi int) (at int, found bool) {
	const few = 16
	if hi-lo > few {
		i, has := slices.BinarySearch(t.keys[lo:hi], k)
		return lo + i, has
	}
	for at = lo; at < hi; at++ {
		if t.keys[at] >= k {
			return at, t.keys[at] == k
		}
	}
	return at, false
}

// keyBits are ids as bits, from the least one on. A lookup takes two cache misses, and these of
// little memory: 12 bytes for 64 possible ids, and 4 an id where ids do not ascend by row.
type keyBits struct {
	least, span uint64
	bits        []uint64
	ranks       []uint32 // ids below each word of bits
	rows        []uint32 // by rank; nil: ranks are rows
}

// bitsBytes is what a word of bits takes with its rank.
const bitsBytes = 12

// fill takes the ids of a type.
func (t *keyBits) fill(ctx context.Context, w *writer) error {
	at := uint64(0)
	err := w.eachID(ctx, t.rows != nil, func(id, row uint64) error {
		k := id - t.least
		if at == w.keys.Rows || k > t.span {
			return errChanged
		}
		t.bits[k/64] |= 1 << (k % 64)
		if t.rows != nil {
			t.rows[at] = uint32(row)
		}
		at++
		return nil
	})
	below := uint64(0)
	for i, word := range t.bits {
		t.ranks[i] = uint32(below)
		below += uint64(bits.OnesCount64(word))
	}
	if err == nil && below != w.keys.Rows {
		err = errChanged
	}
	return err
}

// Rows implements source.KeyIndex.
func (t *keyBits) Rows(ids []uint64) int {
	for i, id := range ids {
		k := id - t.least
		if k > t.span {
			return i
		}
		word, bit := t.bits[k/64], uint64(1)<<(k%64)
		if word&bit == 0 {
			return i
		}
		at := t.ranks[k/64] + uint32(bits.OnesCount64(word&(bit-1)))
		if t.rows != nil {
			at = t.rows[at]
		}
		ids[i] = uint64(at)
	}
	return -1
}
