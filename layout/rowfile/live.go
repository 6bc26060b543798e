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
		part, err := openPart(ctx, l, dev, m, budget)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.levels = append(r.levels, newRows{part, l.First, l.First + l.Of.Nodes, l.Meta().Below})
	}
	if r.replaced, err = openReplaced(ctx, s, dev, m, budget); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// openPart opens the rows that a level has.
func openPart(ctx context.Context, l *layout.Level, dev blockdev.Device, m kv.RowsMeta,
	budget *mem.Budget) (*Reader, error) {
	of, _, found := MetaOf(l.Meta(), m.Path)
	if !found || of.DType != m.DType || of.Dim != m.Dim || of.RowBytes != m.RowBytes {
		return nil, &layout.CorruptionError{Path: l.Of.Path + "/" + m.Path, Block: -1,
			What: "its rows are not those of the base"}
	}
	return Open(ctx, l.Store, dev, of, budget)
}

// isLive reports whether rows are in more files than that of the base.
func (r *Reader) isLive() bool { return len(r.levels) > 0 || r.replaced != nil }

// parts calls fn with the reader of each file, and which nodes it has, but for those whose rows are
// replaced.
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
	base.levels, base.replaced = nil, nil
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
	if r.replaced != nil && arrived != nil {
		return r.gatherWhole(ctx, nodes, emit, arrived)
	}
	g := &partGather{emit: emit, arrived: arrived}
	err := r.parts(func(p newRows) error {
		return g.run(ctx, p, nodes, func(v layout.NodeID) (own uint64, has bool) {
			if uint64(v) < p.first || uint64(v) >= p.end {
				return 0, false
			}
			part, _ := r.replaced.find(v)
			return uint64(v) - p.first + p.own, part < 0
		})
	})
	if err != nil || r.replaced == nil {
		return err
	}
	for i, of := range r.replaced.parts {
		err := g.run(ctx, newRows{Reader: of}, nodes, func(v layout.NodeID) (uint64, bool) {
			part, own := r.replaced.find(v)
			return uint64(own), part == i
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// gatherWhole gathers, and calls arrived once with all rows: those of levels that replace rows lie
// between others.
func (r *Reader) gatherWhole(ctx context.Context, nodes []layout.NodeID,
	emit func(uint32, []byte), arrived func(keys []uint64)) error {
	if err := r.gatherLevels(ctx, nodes, emit, nil); err != nil || len(nodes) == 0 {
		return err
	}
	keys := make([]uint64, len(nodes))
	for i, v := range nodes {
		keys[i] = uint64(v)<<32 | uint64(i)
	}
	slices.Sort(keys)
	arrived(keys)
	return nil
}

// partGather gathers the rows that a file has of some nodes.
type partGather struct {
	emit    func(uint32, []byte)
	arrived func(keys []uint64)

	some []layout.NodeID
	at   []uint32
	keys []uint64
}

// run gathers those rows of p that own tells the numbers of.
func (g *partGather) run(ctx context.Context, p newRows, nodes []layout.NodeID,
	own func(v layout.NodeID) (uint64, bool)) error {
	g.some, g.at = g.some[:0], g.at[:0]
	for i, v := range nodes {
		if row, has := own(v); has {
			g.some, g.at = append(g.some, layout.NodeID(row)), append(g.at, uint32(i))
		}
	}
	if len(g.some) == 0 {
		return ctx.Err()
	}
	var arrived func(keys []uint64)
	if g.arrived != nil {
		arrived = func(own []uint64) {
			g.keys = g.keys[:0]
			for _, k := range own {
				g.keys = append(g.keys, (k>>32-p.own+p.first)<<32|uint64(g.at[uint32(k)]))
			}
			slices.Sort(g.keys)
			g.arrived(g.keys)
		}
	}
	return p.gather(ctx, g.some, func(i uint32, row []byte) { g.emit(g.at[i], row) }, arrived)
}

// scanLevels is scan of the rows of all levels.
func (r *Reader) scanLevels(ctx context.Context, first layout.NodeID, n int,
	emit func(i, rows int, data []byte)) error {
	scan := func(begin, end uint64, write func(v uint64, rows int, data []byte)) error {
		return r.parts(func(p newRows) error {
			from, to := max(p.first, begin), min(p.end, end)
			if from >= to {
				return nil
			}
			return p.scan(ctx, layout.NodeID(from-p.first+p.own), int(to-from),
				func(i, rows int, data []byte) {
					write(from+uint64(i), rows, data)
					emit(int(from)-int(first)+i, rows, data)
				})
		})
	}
	if r.replaced == nil {
		return scan(uint64(first), uint64(first)+uint64(n), func(uint64, int, []byte) {})
	}
	return r.overlay(ctx, uint64(first), uint64(first)+uint64(n), scan)
}

// sweepLevels is Sweep of the rows of all levels.
func (r *Reader) sweepLevels(ctx context.Context, keys []uint64, buf []byte,
	emit func(list uint32, row []byte) error) error {
	var own []uint64
	err := r.parts(func(p newRows) error {
		some := p.ofPart(keys)
		if r.replaced == nil {
			return p.Sweep(ctx, some, buf, emit)
		}
		own = own[:0]
		for _, k := range some {
			v := layout.NodeID(k>>32 - p.own + p.first)
			if part, _ := r.replaced.find(v); part < 0 {
				own = append(own, k)
			}
		}
		return p.Sweep(ctx, own, buf, emit)
	})
	if err != nil || r.replaced == nil {
		return err
	}
	for i, of := range r.replaced.parts {
		own = own[:0]
		for _, k := range keys {
			if part, row := r.replaced.find(layout.NodeID(k >> 32)); part == i {
				own = append(own, uint64(row)<<32|k&(1<<32-1))
			}
		}
		if err := of.Sweep(ctx, own, buf, emit); err != nil {
			return err
		}
	}
	return nil
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
