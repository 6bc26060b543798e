package source

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gdb/internal/tables"
	"gdb/layout/ingest/input"
)

// splitRoles name the numbers in splits.npy; 0 is unused.
var splitRoles = []string{"", "train", "val", "test"}

// splitOf returns the split that a stem such as "valid_idx" names, and whether it is a mask.
func splitOf(stem string) (name string, mask bool) {
	base, kind, _ := strings.Cut(stem, "_")
	switch kind {
	case "mask":
		mask = true
	case "idx", "index", "ids", "nodes":
	default:
		return "", false
	}
	switch base {
	case "valid", "dev":
		base = "val"
	case "train", "val", "test":
	default:
		return "", false
	}
	return base, mask
}

func (s *arraySet) describeSplits() error {
	given := slices.Sorted(maps.Keys(s.opt.Splits))
	for _, name := range given {
		if err := s.givenSplit(name, s.opt.Splits[name]); err != nil {
			return err
		}
	}
	a, err := s.one("splits", "", "splits")
	if err != nil {
		return err
	}
	if a != nil {
		return s.roles(a, given)
	}
	for _, split := range []string{"train", "val", "test"} {
		found := s.find(func(stem string) bool {
			name, _ := splitOf(stem)
			return name == split
		})
		switch {
		case slices.Contains(given, split) || len(found) == 0:
			continue
		case len(found) > 1:
			return s.several("split "+split, "--split "+split+" =", found)
		}
		a, err := s.open(found[0])
		if err != nil {
			return err
		}
		if err := s.members(split, a); err != nil {
			return err
		}
	}
	return nil
}

// givenSplit takes --split NAME=FILE: an array, or a text file of one id a line.
func (s *arraySet) givenSplit(name, file string) error {
	if !strings.HasSuffix(file, ".npy") {
		if p := s.locate(file); textSplit(p) {
			return s.addTextSplit(name, p, true)
		}
	}
	a, err := s.given("--split "+name, file)
	if err != nil {
		return err
	}
	return s.members(name, a)
}

// members takes a list of ids, or a mask: one value for each node, or a column of them for each
// of several splits.
func (s *arraySet) members(name string, a *tables.Array) error {
	_, mask := splitOf(a.Stem)
	mask = mask || a.DType.Kind == 'b'
	switch {
	case !mask && len(a.Shape) != 1:
		return wrongShape(a, "a list of node ids, or a mask")
	case len(a.Shape) != 1 && len(a.Shape) != 2:
		return wrongShape(a, "(nodes,) or (nodes, splits)")
	case a.DType.Kind == 'f':
		return wrongType(a, "integers or bools")
	case a.Fortran && len(a.Shape) == 2 && a.Shape[1] > 1:
		return fortran(a)
	case !mask:
		s.info.Splits = append(s.info.Splits, name)
		s.splits = append(s.splits, func(ctx context.Context, fn func(*SplitChunk) error) error {
			return s.eachMember(ctx, name, a, fn)
		})
		return nil
	}
	names := []string{name}
	if len(a.Shape) == 2 && a.Shape[1] > 1 {
		names = names[:0]
		for k := range a.Shape[1] {
			names = append(names, fmt.Sprintf("%s@%d", name, k))
		}
	}
	s.info.Splits = append(s.info.Splits, names...)
	s.splits = append(s.splits, func(ctx context.Context, fn func(*SplitChunk) error) error {
		return eachMasked(ctx, names, a, fn)
	})
	return s.setNodes(a.Name, a.Shape[0])
}

func (s *arraySet) eachMember(ctx context.Context, name string, a *tables.Array,
	fn func(*SplitChunk) error) error {
	c := &SplitChunk{Name: name, IDs: IDChunk{Where: Where{File: a.Name, Unit: "row"}}}
	most := uint64(0)
	err := eachInts(ctx, a, 1, chunkRows, func(first int64, ints []uint64, i int) error {
		c.IDs.Ints, c.IDs.First = ints, first
		if i < 0 {
			i = s.firstOutside(c.IDs.Ints)
		}
		if i >= 0 {
			return s.outOfRange(c.IDs.Position(i), "node", c.IDs.Ints[i], a.DType.Kind == 'i')
		}
		for _, v := range c.IDs.Ints {
			most = max(most, v)
		}
		return fn(c)
	})
	if err == nil && most <= 1 && s.nodesFrom != "" && s.info.Nodes > 2 &&
		uint64(a.Elements()) == s.info.Nodes {
		return input.Wrong(a.Name, "save it as bool, or call it "+name+"_mask.npy",
			"it holds 0 or 1 for each of the %d nodes: it is a mask, and no list of ids",
			s.info.Nodes)
	}
	return err
}

// eachMasked streams masks: the nodes whose value is not 0, for each column.
func eachMasked(ctx context.Context, names []string, a *tables.Array,
	fn func(*SplitChunk) error) error {
	cols := len(names)
	c := &SplitChunk{IDs: IDChunk{Where: Where{File: a.Name, Unit: "row"}}}
	each := func(first int64, values []uint64, _ int) error {
		for k, name := range names {
			c.Name = name
			c.pick(first, len(values)/cols, func(i int) bool { return values[i*cols+k] != 0 })
			if err := fn(c); err != nil {
				return err
			}
		}
		return nil
	}
	return eachInts(ctx, a, int64(cols), chunkRows, each)
}

// pick fills the chunk with the wanted rows of n rows from first on.
func (c *SplitChunk) pick(first int64, n int, wanted func(i int) bool) {
	c.IDs.Ints, c.IDs.Lines = c.IDs.Ints[:0], c.IDs.Lines[:0]
	for i := range n {
		if wanted(i) {
			c.IDs.Ints = append(c.IDs.Ints, uint64(first)+uint64(i))
			c.IDs.Lines = append(c.IDs.Lines, first+int64(i))
		}
	}
}

// roles takes splits.npy: (splits, nodes), or (nodes,) for one. The lists beside it say the same of
// one of its splits, and are not read.
func (s *arraySet) roles(a *tables.Array, given []string) error {
	switch {
	case len(a.Shape) != 1 && len(a.Shape) != 2 || a.Elements() == 0:
		return wrongShape(a, "(splits, nodes)")
	case !a.DType.Integer():
		return wrongType(a, "integers")
	case a.Fortran && len(a.Shape) == 2 && a.Shape[0] > 1:
		return fortran(a)
	}
	nodes := a.Shape[len(a.Shape)-1]
	if err := s.setNodes(a.Name, nodes); err != nil {
		return err
	}
	splits := a.Elements() / nodes
	r := &roleArray{Array: a, nodes: nodes}
	for k := range splits {
		for _, role := range splitRoles[1:] {
			if len(a.Shape) == 2 {
				role = fmt.Sprintf("%s@%d", role, k)
			}
			r.names = append(r.names, role)
			if slices.Contains(given, role) {
				return input.Usage("--split %s is in %s too", role, a.Name)
			}
		}
	}
	if beside := s.find(func(stem string) bool {
		name, _ := splitOf(stem)
		return name != ""
	}); len(beside) > 0 {
		s.note("splits are those of %s; %s and the like beside it are not read", a.Name,
			s.fs.PathBase(beside[0].name))
		for _, n := range beside {
			n.used = true // so that it is not noted again
		}
	}
	s.info.Splits = append(s.info.Splits, r.names...)
	s.splits = append(s.splits, r.stream)
	return nil
}

// roleArray is a splits.npy.
type roleArray struct {
	*tables.Array
	nodes int64
	names []string // three for each row
}

func (r *roleArray) stream(ctx context.Context, fn func(*SplitChunk) error) error {
	c := &SplitChunk{IDs: IDChunk{Where: Where{File: r.Name, Unit: "column"}}}
	return eachInts(ctx, r.Array, 1, chunkRows, func(at int64, roles []uint64, _ int) error {
		for i, v := range roles {
			if v >= uint64(len(splitRoles)) {
				row, column := (at+int64(i))/r.nodes, (at+int64(i))%r.nodes
				return input.Wrong(fmt.Sprintf("%s row %d column %d", r.Name, row, column),
					"0 is unused, 1 train, 2 val, 3 test", "%d is not a role", int64(v))
			}
		}
		// A run may hold the end of one split and whole others.
		for len(roles) > 0 {
			split, first := at/r.nodes, at%r.nodes
			n := int(min(int64(len(roles)), r.nodes-first))
			for role := 1; role < len(splitRoles); role++ {
				c.Name = r.names[int(split)*3+role-1]
				c.pick(first, n, func(i int) bool { return roles[i] == uint64(role) })
				if err := fn(c); err != nil {
					return err
				}
			}
			roles, at = roles[n:], at+int64(n)
		}
		return nil
	})
}
