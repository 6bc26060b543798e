package exact

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gdb/sample"
)

// relationRows say where the rows of a table are that has one for each relation which a node is a
// source of: those of a relation follow each other, in the order of its sources. Relations are in
// the order of their sources' types, as entries of lists are.
type relationRows struct {
	order []int // of relations
	lo    []int // by relation: the first of its sources
	hi    []int // and the end of them
	// shift is, by relation, what the number of a source among the needed nodes is raised by; it
	// wraps around.
	shift []uint32
	total int
}

// newRelationRows plans the rows of the nodes that a set has.
func (l *layerPass) newRelationRows(set *sample.NodeSet) *relationRows {
	spec, nodes := l.Model.Spec(), int(l.Source.Meta.Nodes)
	firsts := spec.NodeTypes
	if l.types != nil {
		firsts = l.types
	}
	if len(firsts) == 0 {
		firsts = []int{0}
	}
	rank := func(v int) int {
		if v == nodes {
			return set.Rows(uint64(nodes))
		}
		return int(set.Row(uint32(v)))
	}
	sources := spec.Sources()
	n := len(sources)
	r := &relationRows{lo: make([]int, n), hi: make([]int, n), shift: make([]uint32, n)}
	for i, typ := range sources {
		r.order = append(r.order, i)
		r.lo[i], r.hi[i] = firsts[typ], nodes
		if typ+1 < len(firsts) {
			r.hi[i] = firsts[typ+1]
		}
	}
	slices.SortStableFunc(r.order, func(a, b int) int {
		return cmp.Compare(sources[a], sources[b])
	})
	for _, i := range r.order {
		first := rank(r.lo[i])
		r.shift[i] = uint32(r.total - first)
		r.total += rank(r.hi[i]) - first
	}
	return r
}

// tableRows returns how many rows the table has that lists read.
func (l *layerPass) tableRows() int {
	if l.related != nil {
		return l.related.total
	}
	return l.fromSet.Rows(l.Source.Meta.Nodes)
}

// mapRows replaces the nodes of entries by their rows in that table.
func (l *layerPass) mapRows(nodes, types []uint32) {
	l.fromSet.MapRows(nodes)
	if l.related == nil {
		return
	}
	for i, t := range types {
		nodes[i] += l.related.shift[t]
	}
}

// transformRelated computes the rows of all relations.
func (l *layerPass) transformRelated(ctx context.Context, w *tableWriter) error {
	r := l.related
	for _, i := range r.order {
		next := between(l.fromSet.Nodes(l.Source.Meta.Nodes), r.lo[i], r.hi[i])
		if err := l.transformNodes(ctx, w, next, func(c *chunk) {
			for k := range c.norms {
				c.norms[k] = math.Float32frombits(uint32(i))
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// between iterates over those nodes from lo … hi-1 that next has, which ascend.
func between(next sample.NodeIter, lo, hi int) sample.NodeIter {
	return func(dst []sample.NodeID) []sample.NodeID {
		for {
			some := next(dst)
			from, _ := slices.BinarySearch(some, sample.NodeID(lo))
			to := len(some)
			if to > 0 && int(some[to-1]) >= hi {
				to, _ = slices.BinarySearch(some, sample.NodeID(hi))
			}
			if from < to || len(some) == 0 || to < len(some) {
				return some[min(from, to):to]
			}
		}
	}
}
