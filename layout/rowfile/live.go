package rowfile

import (
	"context"
	"errors"
	"slices"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
)

// newRows has the rows of the nodes that a level added: of node first of the store, and of those
// after it up to end, in a file of their own where node first has the number own.
type newRows struct {
	*Reader
	first, end, own uint64
}

// openLevels opens the rows of a store with levels: those of the base, and those of each level that
// has some. A level takes the memory of a reader.
func openLevels(ctx context.Context, s *layout.Store, dev blockdev.Device, m kv.RowsMeta,
	budget *mem.Budget) (*Reader, error) {
	r, err := Open(ctx, s.Base(), dev, m, budget)
	if err != nil {
		return nil, err
	}
	for _, l := range s.Levels() {
		if l.Of.Nodes == 0 {
			continue
		}
		of, _, found := MetaOf(l.Meta(), m.Path)
		if !found || of.DType != m.DType || of.Dim != m.Dim || of.RowBytes != m.RowBytes {
			err = &layout.CorruptionError{Path: l.Of.Path + "/" + m.Path, Block: -1,
				What: "its rows are not those of the base"}
			return nil, errors.Join(err, r.Close())
		}
		part, err := Open(ctx, l.Store, dev, of, budget)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.levels = append(r.levels, newRows{part, l.First, l.First + l.Of.Nodes, l.Meta().Below})
	}
	return r, nil
}

// parts calls fn with the reader of each file, and which nodes it has.
func (r *Reader) parts(fn func(p newRows) error) error {
	err := fn(newRows{r.inBase(), 0, r.shape.Nodes, 0})
	for _, l := range r.levels {
		if err == nil {
			err = fn(l)
		}
	}
	return err
}

// inBase returns a reader of the rows of the base alone.
func (r *Reader) inBase() *Reader {
	base := *r
	base.levels = nil
	return &base
}

// rows returns the number of rows of all levels.
func (r *Reader) rows() uint64 {
	if n := len(r.levels); n > 0 {
		return r.levels[n-1].end
	}
	return r.shape.Nodes
}

// gatherLevels is gather of the rows of all levels, of one file after the other.
func (r *Reader) gatherLevels(ctx context.Context, nodes []layout.NodeID,
	emit func(uint32, []byte), arrived func(keys []uint64)) error {
	for _, v := range nodes {
		if uint64(v) >= r.rows() {
			return layout.OutOfRange(v, r.rows())
		}
	}
	var some []layout.NodeID
	var at []uint32
	var keys []uint64
	return r.parts(func(p newRows) error {
		some, at = some[:0], at[:0]
		for i, v := range nodes {
			if uint64(v) >= p.first && uint64(v) < p.end {
				some = append(some, layout.NodeID(uint64(v)-p.first+p.own))
				at = append(at, uint32(i))
			}
		}
		if len(some) == 0 {
			return ctx.Err()
		}
		of := arrived
		if arrived != nil {
			of = func(own []uint64) {
				keys = keys[:0]
				for _, k := range own {
					keys = append(keys, (k>>32-p.own+p.first)<<32|uint64(at[uint32(k)]))
				}
				slices.Sort(keys)
				arrived(keys)
			}
		}
		return p.gather(ctx, some, func(i uint32, row []byte) { emit(at[i], row) }, of)
	})
}

// scanLevels is scan of the rows of all levels.
func (r *Reader) scanLevels(ctx context.Context, first layout.NodeID, n int,
	emit func(i, rows int, data []byte)) error {
	return r.parts(func(p newRows) error {
		from, to := max(p.first, uint64(first)), min(p.end, uint64(first)+uint64(n))
		if from >= to {
			return nil
		}
		return p.scan(ctx, layout.NodeID(from-p.first+p.own), int(to-from),
			func(i, rows int, data []byte) { emit(int(from)-int(first)+i, rows, data) })
	})
}

// ofPart returns the keys of nodes that a file has, as that numbers them. Keys ascend.
func (p *newRows) ofPart(keys []uint64) []uint64 {
	from, _ := slices.BinarySearch(keys, p.first<<32)
	to, _ := slices.BinarySearch(keys, p.end<<32)
	if p.first == p.own {
		return keys[from:to]
	}
	own := slices.Clone(keys[from:to])
	for i := range own {
		own[i] -= (p.first - p.own) << 32
	}
	return own
}
