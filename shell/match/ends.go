package match

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gdb/layout"
	"gdb/shell/graph"
)

// narrower returns the matcher that begins with fewer neighbors: m, or other, which begins at the
// other end of the pattern. The returned matcher gets the nodes that m has resolved.
func (m *matcher) narrower(ctx context.Context, other *matcher) (best *matcher, err error) {
	err = m.p.ends.Run(ctx, func(ctx context.Context) error {
		best, err = m.compareEnds(ctx, other)
		return err
	})
	return best, err
}

func (m *matcher) compareEnds(ctx context.Context, other *matcher) (*matcher, error) {
	last := len(m.allowed) - 1
	here, err := m.width(ctx, m.allowed[0])
	if err != nil {
		return m, err
	}
	best, there, text := m, math.Inf(1), ""
	if here > widthLeast {
		if there, err = other.width(ctx, m.allowed[last]); err != nil {
			return m, err
		}
		text = fmt.Sprintf(", %.0f at the other end", max(here, there))
	}
	if there < here {
		other.allowed, m.allowed = m.allowed, nil
		slices.Reverse(other.allowed)
		other.findSame()
		best, here = other, there
	}
	for i, lists := range m.p.hops {
		lists.Detail = best.hopDetail(i)
	}
	m.p.ends.Detail = fmt.Sprintf("begins at %s: %.0f neighbors%s", best.q.Nodes[0].AnchorText(),
		here, text)
	m.p.ends.Emit(int(best.allowed[0].GetCardinality()), 0)
	return best, nil
}

// widthLeast is the number of neighbors up to which the other end is not compared.
const widthLeast = 16

// widthNodes is the number of nodes up to which degrees are looked up to choose an end; for more
// nodes the neighbors are estimated.
const widthNodes = 16

// width returns how many neighbors a set of nodes has in the lists of the first hop.
func (m *matcher) width(ctx context.Context, set *graph.Bits) (sum float64, err error) {
	n := set.GetCardinality()
	for _, dir := range m.dirs[0] {
		if n > widthNodes {
			mean, _ := m.x.Estimates().Degree(dir)
			sum += float64(n) * mean
			continue
		}
		t, err := m.x.Graph.Topology(ctx, dir)
		if err != nil {
			return 0, err
		}
		ses, deg := t.NewSession(), make([]uint32, n)
		err = set.Each(func(nodes []layout.NodeID) (bool, error) {
			return true, ses.Degrees(ctx, nodes, deg)
		})
		ses.Release()
		if err != nil {
			return 0, err
		}
		for _, d := range deg {
			sum += float64(d)
		}
	}
	return sum, nil
}
