package typedchange

import (
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"

	"github.com/RoaringBitmap/roaring/v2"
)

// Absent stands in Change.Of for a node of the tables that the store does not have.
const Absent = ^uint32(0)

// numbers leads from nodes of the store, and of the tables behind them, to rows of the types of the
// new store: first the nodes that stay, in their order, then those that are new.
type numbers struct {
	old   uint64       // nodes of the store
	kept  layout.Ranks // nodes of the store that stay, unless all do
	all   bool
	fresh layout.Ranks // nodes of the tables that are new
	types []typeNumbers
	held  mem.Account
}

// typeNumbers counts the nodes of a type.
type typeNumbers struct {
	firstKept, kept   uint64 // rank of the first node that stays, and how many do
	firstFresh, fresh uint64
	firstRow, rows    uint64 // nodes of the tables; none if no table is of the type
}

// number numbers the nodes of a change.
func (n *numbers) number(of, rows *kv.Meta, to []uint32, gone *roaring.Bitmap) error {
	words := layout.RankWords(uint64(len(to)))
	if n.old, n.all = of.Nodes, gone == nil || gone.IsEmpty(); !n.all {
		words += layout.RankWords(of.Nodes)
	}
	if err := n.held.AtLeast(12 * int64(words)); err != nil {
		return err
	}
	ranks := func(nodes uint64) layout.Ranks {
		words := layout.RankWords(nodes)
		return layout.NewRanks(make([]uint64, words), make([]uint32, words))
	}
	if n.fresh = ranks(uint64(len(to))); len(to) > 0 {
		for v, node := range to {
			if node == Absent {
				n.fresh.Add([]uint32{uint32(v)})
			}
		}
		n.fresh.Number()
	}
	if !n.all {
		n.kept = ranks(of.Nodes)
		for v := range of.Nodes {
			if !gone.Contains(uint32(v)) {
				n.kept.Add([]uint32{uint32(v)})
			}
		}
		n.kept.Number()
	}
	for i := range of.NodeTypes {
		t := &of.NodeTypes[i]
		c := typeNumbers{firstKept: n.rank(t.First)}
		c.kept = n.rank(t.First+t.Nodes) - c.firstKept
		for k := 0; rows != nil && k < len(rows.NodeTypes); k++ {
			if r := &rows.NodeTypes[k]; r.Name == t.Name {
				c.firstRow, c.rows = r.First, r.Nodes
				c.firstFresh = n.freshRank(r.First)
				c.fresh = n.freshRank(r.First+r.Nodes) - c.firstFresh
			}
		}
		n.types = append(n.types, c)
	}
	return nil
}

// rank returns how many nodes that stay are before one.
func (n *numbers) rank(v uint64) uint64 {
	if n.all {
		return v
	}
	r, _ := n.kept.Rank(layout.NodeID(v))
	return uint64(r)
}

func (n *numbers) freshRank(v uint64) uint64 {
	r, _ := n.fresh.Rank(layout.NodeID(v))
	return uint64(r)
}

// row returns the row of a node in its type.
func (n *numbers) row(typ int, v uint64) uint64 {
	t := &n.types[typ]
	if v < n.old {
		return n.rank(v) - t.firstKept
	}
	return t.kept + n.freshRank(v-n.old) - t.firstFresh
}

// isKept reports whether a node of the store stays.
func (n *numbers) isKept(v uint64) bool {
	if n.all {
		return true
	}
	_, is := n.kept.Rank(layout.NodeID(v))
	return is
}
