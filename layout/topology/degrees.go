package topology

import (
	"context"
	"errors"
	"math/bits"

	"gdb/layout"
)

// Degrees counts the lists of a store by their lengths, as kv.GraphStats does, and returns the
// length of the longest. r reads the lists. Of a store without levels that is what the catalog
// says; else the lengths of the lists that levels have are read, and all lengths if levels may have
// shortened the longest list.
func Degrees(ctx context.Context, s *layout.Store, r Reader, dir layout.Direction) (hist []uint64,
	most uint64, err error) {
	stats := s.Base().Meta().Stats
	hist, most = stats.InHist, stats.InMax
	if dir == layout.Out {
		hist, most = stats.OutHist, stats.OutMax
	}
	l, is := r.(*live)
	if !is {
		return hist, most, nil
	}
	c := &degreeCount{hist: make([]uint64, max(len(hist), 33)), most: most}
	copy(c.hist, hist)
	if err := l.countDegrees(ctx, c); err != nil {
		return nil, 0, err
	}
	if c.longest < most && c.shortened {
		if c.longest, err = longest(ctx, r); err != nil {
			return nil, 0, err
		}
		most = c.longest
	}
	for n := len(c.hist); n > 1 && c.hist[n-1] == 0; n-- {
		c.hist = c.hist[:n-1]
	}
	return c.hist, max(most, c.longest), nil
}

// degreeCount counts lists by their lengths.
type degreeCount struct {
	hist      []uint64
	most      uint64 // the length of the longest list of the base
	longest   uint64 // of the lists that levels have
	shortened bool   // a list of the base of length most is shorter now
}

// countDegrees takes the lists of the nodes that levels have out of the counts of the base, and
// adds their merged lists.
func (l *live) countDegrees(ctx context.Context, c *degreeCount) error {
	base, all := l.Reader.NewSession(), l.NewSession()
	defer base.Release()
	defer all.Release()
	nodes := make([]layout.NodeID, 0, placeLists)
	was, is := make([]uint32, placeLists), make([]uint32, placeLists)
	flush := func() error {
		old := 0 // nodes that the base has come first, since ids ascend
		for old < len(nodes) && uint64(nodes[old]) < l.Reader.Nodes() {
			old++
		}
		if err := base.Degrees(ctx, nodes[:old], was); err != nil {
			return err
		}
		if err := all.Degrees(ctx, nodes, is); err != nil {
			return err
		}
		for i := range nodes {
			if i < old {
				c.hist[bits.Len32(was[i])]--
				c.shortened = c.shortened || uint64(was[i]) == c.most && is[i] < was[i]
			}
			c.hist[bits.Len32(is[i])]++
			c.longest = max(c.longest, uint64(is[i]))
		}
		nodes = nodes[:0]
		return nil
	}
	err := l.added.has.Each(l.nodes, func(v layout.NodeID) error {
		if nodes = append(nodes, v); len(nodes) == placeLists {
			return flush()
		}
		return nil
	})
	return errors.Join(err, flush())
}

// longest returns the length of the longest of all lists.
func longest(ctx context.Context, r Reader) (most uint64, err error) {
	s := r.NewSession()
	defer s.Release()
	nodes, deg := make([]layout.NodeID, placeLists), make([]uint32, placeLists)
	for v := uint64(0); v < r.Nodes(); v += placeLists {
		n := min(placeLists, r.Nodes()-v)
		for i := range n {
			nodes[i] = layout.NodeID(v + i)
		}
		if err := s.Degrees(ctx, nodes[:n], deg); err != nil {
			return 0, err
		}
		for _, d := range deg[:n] {
			most = max(most, uint64(d))
		}
	}
	return most, nil
}
