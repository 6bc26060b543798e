package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/shell/cypher/adjacency"
	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/engine"
	"gdb/shell/graph"
)

// Lists returns lists in memory; nil if there is none for them.
func (s *source) Lists(ctx context.Context, dir ast.Direction, types []string) (*adjacency.Lists,
	error) {
	wanted, ok := s.types(types)
	if !ok {
		return &adjacency.Lists{Off: []uint32{0}}, nil
	}
	if s.meta.Undirected {
		dir = ast.In
	}
	v, err := s.keep(listsName(dir, types), func(grow func(int64) error) (any, error) {
		switch {
		case dir == ast.Both:
			return s.both(ctx, types, grow)
		case dir == ast.Out && !s.g.HasDirection(layout.Out):
			return s.turn(ctx, types, wanted, grow)
		}
		return s.read(ctx, dir, types, wanted, grow)
	})
	l, _ := v.(*adjacency.Lists)
	return l, err
}

// listsPrefix is what the names of lists begin with in graph.Kept.
const listsPrefix = "lists "

// listsName is what lists are called in graph.Kept.
func listsName(dir ast.Direction, types []string) string {
	return fmt.Sprintf("%s%d %s", listsPrefix, dir,
		strings.Join(slices.Sorted(slices.Values(types)), "|"))
}

// errShort says that the lists of which others are made do not fit.
var errShort = &mem.LimitError{}

func (s *source) both(ctx context.Context, types []string, grow func(int64) error) (any, error) {
	out, err := s.Lists(ctx, ast.Out, types)
	if err != nil {
		return nil, err
	}
	in, err := s.Lists(ctx, ast.In, types)
	if err != nil {
		return nil, err
	}
	if out == nil || in == nil {
		return nil, errShort
	}
	return adjacency.Both(ctx, out, in, grow)
}

// turn makes out-lists of the in-lists, in two passes over these.
func (s *source) turn(ctx context.Context, types []string, wanted map[uint16]bool,
	grow func(int64) error) (any, error) {
	from, to := s.Ends(types)
	first, end := span(from)
	return adjacency.Turn(ctx, first, end, s.several(wanted),
		func(edge func(owner, nbr uint32, typ uint16)) error {
			return s.scan(ctx, layout.In, to, wanted, func(owner, nbr uint32, typ uint16) error {
				edge(owner, nbr, typ)
				return nil
			})
		}, grow)
}

// several reports whether edges of some relations, or of all for nil, have several types.
func (s *source) several(wanted map[uint16]bool) bool {
	return len(wanted) != 1 && len(s.meta.EdgeTypes) > 1
}

// span returns the first node of a set, and the one behind the last.
func span(s engine.Set) (first, end uint32) {
	if len(s.Ranges) == 0 {
		return 0, 0
	}
	return s.Ranges[0].From, s.Ranges[len(s.Ranges)-1].End
}

// read reads the lists of a direction.
func (s *source) read(ctx context.Context, dir ast.Direction, types []string,
	wanted map[uint16]bool, grow func(int64) error) (any, error) {
	from, to := s.Ends(types)
	d := layout.Out
	if dir == ast.In {
		d, from = layout.In, to
	}
	first, end := span(from)
	b, err := adjacency.NewBuilder(first, end, s.several(wanted), grow)
	if err != nil {
		return nil, err
	}
	if wanted == nil || len(s.meta.EdgeTypes) < 2 {
		if err := b.Expect(s.meta.Edges); err != nil {
			return nil, err
		}
	}
	if err := s.scan(ctx, d, from, wanted, b.Add); err != nil {
		return nil, err
	}
	return b.Lists(ctx)
}

// ReadRange reads the lists of the first nodes of a range, as many as take about room bytes.
func (s *source) ReadRange(ctx context.Context, w engine.Want, of engine.Range, room int64) (
	*adjacency.Lists, error) {
	wanted, _ := s.types(w.Types)
	dirs := s.directions(w.Dir)
	if len(dirs) == 1 {
		return s.readRange(ctx, dirs[0], wanted, of, room)
	}
	var parts [2]*adjacency.Lists
	for i, d := range dirs {
		var err error
		if parts[i], err = s.readRange(ctx, d, wanted, of, room/4); err != nil {
			return nil, err
		}
		of.End = parts[i].End
	}
	parts[0].Cut(of.End)
	l, err := adjacency.Both(ctx, parts[0], parts[1], s.Grow)
	if err != nil {
		return nil, err
	}
	return l, s.Grow(-parts[0].Bytes() - parts[1].Bytes())
}

// errFull ends a scan when there is no room for more lists.
var errFull = errors.New("the lists of a range are full")

func (s *source) readRange(ctx context.Context, d layout.Direction, wanted map[uint16]bool,
	of engine.Range, room int64) (l *adjacency.Lists, err error) {
	held := int64(0)
	grow := func(n int64) error {
		err := s.Grow(n)
		if err == nil {
			held += n
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Grow(-held))
		}
	}()
	nodes := uint32(min(int64(of.End-of.From), max(room/16, 1))) // a fourth is for these
	b, err := adjacency.NewBuilder(of.From, of.From+nodes, s.several(wanted), grow)
	if err != nil {
		return nil, err
	}
	each := int64(4)
	if s.several(wanted) {
		each += 2
	}
	if err := b.Expect(uint64((room - 4*int64(nodes)) / each)); err != nil {
		return nil, err
	}
	at := of.From
	err = s.scan(ctx, d, whole(uint64(of.From), uint64(of.From+nodes)), wanted,
		func(owner, nbr uint32, typ uint16) error {
			at = owner
			if b.Full() && owner > of.From {
				return errFull
			}
			return b.Add(owner, nbr, typ)
		})
	if errors.Is(err, errFull) {
		err = nil
		b.Stop(at)
	}
	if err != nil {
		return nil, err
	}
	return b.Lists(ctx)
}

// scan calls fn with the entries of the wanted types in the lists of some nodes, in order.
func (s *source) scan(ctx context.Context, d layout.Direction, of engine.Set,
	wanted map[uint16]bool, fn func(owner, nbr uint32, typ uint16) error) error {
	if s.meta.Typed() || len(s.meta.EdgeTypes) == 0 {
		return s.scanFile(ctx, d, of, wanted, fn)
	}
	return s.eachEntry(ctx, d, of, wanted,
		func(owner layout.NodeID, l *listfile.Lists, k uint64) error {
			return fn(uint32(owner), uint32(l.Nbrs[k]), typeOf(l, k))
		})
}

// scanFile does what scan does, in large reads in the order of the file. It reads no types that are
// attributes of entries.
func (s *source) scanFile(ctx context.Context, d layout.Direction, of engine.Set,
	wanted map[uint16]bool, fn func(owner, nbr uint32, typ uint16) error) error {
	first, end := span(of)
	other := make([]bool, max(1, len(s.meta.EdgeTypes))) // types that are not wanted
	for t := range other {
		other[t] = wanted != nil && !wanted[uint16(t)]
	}
	return s.g.EachInRange(ctx, d, layout.NodeID(first), layout.NodeID(end),
		func(owner layout.NodeID, _ bool, l *listfile.Lists) error {
			for i := range len(l.Off) - 1 {
				for k := l.Off[i]; k < l.Off[i+1]; k++ {
					typ := typeOf(l, k)
					if other[typ] {
						continue
					}
					if err := fn(uint32(owner)+uint32(i), uint32(l.Nbrs[k]), typ); err != nil {
						return err
					}
				}
			}
			return ctx.Err()
		})
}

func typeOf(l *listfile.Lists, k uint64) uint16 {
	if len(l.Types) == 0 {
		return 0
	}
	return l.Types[k]
}

// eachEntry calls fn with the entries of the wanted types, entry k of lists being of owner.
func (s *source) eachEntry(ctx context.Context, d layout.Direction, of engine.Set,
	wanted map[uint16]bool, fn func(owner layout.NodeID, l *listfile.Lists, k uint64) error) error {
	each := func(owner layout.NodeID, l *listfile.Lists, i int) error {
		for k := l.Off[i]; k < l.Off[i+1]; k++ {
			if wanted != nil && !wanted[typeOf(l, k)] {
				continue
			}
			if err := fn(owner, l, k); err != nil {
				return err
			}
		}
		return nil
	}
	first, end := span(of)
	nodes := make([]layout.NodeID, 0, graph.NodeBatch)
	for v := uint64(first); v < uint64(end); v += uint64(len(nodes)) {
		nodes = nodes[:0]
		for u := v; u < min(v+graph.NodeBatch, uint64(end)); u++ {
			nodes = append(nodes, layout.NodeID(u))
		}
		err := s.g.EachList(ctx, d, nodes, graph.ListEntries,
			func(part []layout.NodeID, l *listfile.Lists) (bool, error) {
				for i, owner := range part {
					if err := each(owner, l, i); err != nil {
						return false, err
					}
				}
				return true, ctx.Err()
			})
		if err != nil {
			return err
		}
	}
	return nil
}
