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

// load makes the index of a type whose ids do not count up by one.
func (x *Indexes) load(ctx context.Context, w *writer) error {
	k := &w.keys
	wide := (k.Greatest-k.Least)>>32 != 0
	buckets, shift := bucketsOf(k)
	bytes := 4 * int64(buckets+1)
	size := int64(4)
	if wide {
		size = 8
	}
	bytes += int64(k.Rows) * size
	if k.Runs != nil {
		bytes += 4 * int64(k.Rows)
	}
	if x.bytes += bytes; x.bytes > x.work.Memory.Table {
		return steps.ErrNumbersFull
	}
	arena, err := mem.NewArena(x.work.Budget, "the index of ids", bytes+8)
	if err != nil {
		return err
	}
	x.arenas = append(x.arenas, arena)
	b := arena.Bytes()
	ids, b := b[:int64(k.Rows)*size], b[int64(k.Rows)*size:]
	index := keyTable{least: k.Least, span: k.Greatest - k.Least, shift: shift,
		first: mem.View[uint32](b[:4*(buckets+1)])}
	if k.Runs != nil {
		index.rows = mem.View[uint32](b[4*(buckets+1):])[:k.Rows]
	}
	if wide {
		t := &sortedKeys[uint64]{keyTable: index, keys: mem.View[uint64](ids)}
		x.types[w.typ] = t
		return t.fill(ctx, w)
	}
	t := &sortedKeys[uint32]{keyTable: index, keys: mem.View[uint32](ids)}
	x.types[w.typ] = t
	return t.fill(ctx, w)
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
	add := func(id, row uint64) error {
		k := id - t.least
		if at == len(t.keys) || k > t.span {
			return errors.New("ingest: a table changed while it was read")
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
	}
	var err error
	if t.rows != nil {
		err = w.eachSorted(ctx, add)
	} else {
		err = w.src.Keys(ctx, w.typ, func(c *source.IDChunk) error {
			for _, id := range c.Ints {
				if err := add(id, 0); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	for ; bucket < uint64(len(t.first)); bucket++ {
		t.first[bucket] = uint32(at)
	}
	if err == nil && at != len(t.keys) {
		err = errors.New("ingest: a table changed while it was read")
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
