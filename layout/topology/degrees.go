package topology

import (
	"context"
	"errors"
	"math/bits"

	"gdb/layout"
)

// Degrees counts the lists of a store by their lengths, as kv.GraphStats does, and returns the
// length of the longest. r reads the lists. Of a store without levels that is what the catalog
// says. Else the lengths of all lists are read from a resident reader that has merged them, and of
// others those of the lists that levels have; all if levels may have shortened the longest list.
func Degrees(ctx context.Context, s *layout.Store, r Reader, dir layout.Direction) (hist []uint64,
	most uint64, err error) {
	stats := s.Base().Meta().Stats
	hist, most = stats.InHist, stats.InMax
	if dir == layout.Out {
		hist, most = stats.OutHist, stats.OutMax
	}
	l, is := r.(*live)
	if !is && len(s.Levels()) == 0 {
		return hist, most, nil
	}
	c := &degreeCount{hist: make([]uint64, max(len(hist), 33)), most: most}
	if !is {
		most = 0
		err = eachDegree(ctx, r, func(d uint32) {
			c.hist[bits.Len32(d)]++
			c.longest = max(c.longest, uint64(d))
		})
	} else {
		copy(c.hist, hist)
		err = l.countDegrees(ctx, c)
	}
	if err == nil && c.longest < most && c.shortened {
		most, c.longest = 0, 0
		err = eachDegree(ctx, r, func(d uint32) { c.longest = max(c.longest, uint64(d)) })
	}
	if err != nil {
		return nil, 0, err
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

// eachDegree calls fn with the lengths of all lists.
func eachDegree(ctx context.Context, r Reader, fn func(d uint32)) error {
	s := r.NewSession()
	defer s.Release()
	nodes, deg := make([]layout.NodeID, placeLists), make([]uint32, placeLists)
	for v := uint64(0); v < r.Nodes(); v += placeLists {
		n := min(placeLists, r.Nodes()-v)
		for i := range n {
			nodes[i] = layout.NodeID(v + i)
		}
		if err := s.Degrees(ctx, nodes[:n], deg); err != nil {
			return err
		}
		for _, d := range deg[:n] {
			fn(d)
		}
	}
	return nil
}
