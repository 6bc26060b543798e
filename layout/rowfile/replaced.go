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

// replaced has the rows that commits gave to nodes that were there before: of each such node those
// of the last level that has some. It takes 3/16 byte for each node of the store, 8 for each of
// these nodes, and a reader for each level.
type replaced struct {
	has    layout.Ranks
	parts  []*Reader
	part   []uint32 // by rank in has: which of parts has the row
	own    []uint32 // and its number there
	memory *mem.Arena
}

// levelBytes bounds the memory of what openLevels needs beside readers.
func levelBytes(s *layout.Store, path string) (n int64) {
	for _, l := range s.Levels() {
		if l.Of.Rows == path {
			n += 8 * int64(l.Meta().Nodes)
		}
	}
	if n > 0 {
		n += int64(layout.RankWords(s.Meta().Nodes))*12 + 1<<16
	}
	return n
}

// openReplaced opens the levels that replace rows of a file; nil if none does.
func openReplaced(ctx context.Context, s *layout.Store, dev blockdev.Device, m kv.RowsMeta,
	budget *mem.Budget) (r *replaced, err error) {
	bytes := levelBytes(s, m.Path)
	if bytes == 0 {
		return nil, nil
	}
	r = &replaced{}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.memory, err = mem.NewArena(budget, "replaced rows of "+m.Path, bytes); err != nil {
		return r, err
	}
	b := r.memory.Bytes()
	words := layout.RankWords(s.Meta().Nodes)
	r.has = layout.NewRanks(mem.View[uint64](b[:8*words]), mem.View[uint32](b[8*words:12*words]))
	var of [][]uint32
	for _, l := range s.Levels() {
		if l.Of.Rows != m.Path {
			continue
		}
		set, err := l.Nodes(ctx)
		if err != nil {
			return r, err
		}
		part, err := openPart(ctx, l, dev, m, budget)
		if err != nil {
			return r, err
		}
		nodes := set.ToArray()
		r.has.Add(nodes)
		of, r.parts = append(of, nodes), append(r.parts, part)
	}
	n, rest := uint64(r.has.Number()), b[12*words:]
	r.part, r.own = mem.View[uint32](rest[:4*n]), mem.View[uint32](rest[4*n:8*n])
	for i, nodes := range of { // later levels overwrite those before them
		for k, v := range nodes {
			at, _ := r.has.Rank(layout.NodeID(v))
			r.part[at], r.own[at] = uint32(i), uint32(k)
		}
	}
	return r, nil
}

// find returns which part has the row of a node, and its number there; no part if none has.
func (r *replaced) find(v layout.NodeID) (part int, own uint32) {
	if r == nil {
		return -1, 0
	}
	at, is := r.has.Rank(v)
	if !is {
		return -1, 0
	}
	return int(r.part[at]), r.own[at]
}

func (r *replaced) close() error {
	if r == nil {
		return nil
	}
	var err error
	for _, p := range r.parts {
		err = errors.Join(err, p.Close())
	}
	if r.memory != nil {
		err = errors.Join(err, r.memory.Free())
		r.memory = nil
	}
	return err
}

// overlayBytes bounds the rows that overlay reads together.
const overlayBytes = 1 << 20

// overlay calls scan with one range of nodes after the other, of those from first to end, and a
// function that writes those rows that are replaced over rows of the nodes from v on.
func (r *Reader) overlay(ctx context.Context, first, end uint64,
	scan func(first, end uint64, write func(v uint64, rows int, data []byte)) error) error {
	width, most := r.shape.RowBytes, max(1, overlayBytes/max(1, r.shape.RowBytes))
	var nodes []layout.NodeID
	var rows []byte
	write := func(v uint64, n int, data []byte) {
		from, _ := slices.BinarySearch(nodes, layout.NodeID(v))
		for k := from; k < len(nodes) && uint64(nodes[k]) < v+uint64(n); k++ {
			copy(data[int(uint64(nodes[k])-v)*width:][:width], rows[k*width:])
		}
	}
	for from := first; from < end; {
		nodes = nodes[:0]
		to := end
		for v := from; v < end; v++ {
			if part, _ := r.replaced.find(layout.NodeID(v)); part < 0 {
				continue
			}
			if len(nodes) == most {
				to = v
				break
			}
			nodes = append(nodes, layout.NodeID(v))
		}
		rows = mem.Resize(rows, len(nodes)*width)
		if err := r.GatherRaw(ctx, nodes, nil, rows); err != nil {
			return err
		}
		if err := scan(from, to, write); err != nil {
			return err
		}
		from = to
	}
	return ctx.Err()
}
