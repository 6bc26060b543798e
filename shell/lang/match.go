package lang

import (
	"slices"

	"gdb/shell/words"
)

const (
	matchHopsMost = 4       // of *1..4
	valuesMost    = 1 << 16 // of all conditions and of RETURN
	MatchSteps    = 8       // hops of a pattern
)

// MatchNode is (a), (a {id: 42}) or (a IN SPLIT train).
type MatchNode struct {
	Name  string
	Ref   *NodeRef
	Split string
}

// Anchored reports whether the pattern names the node, or the split that it is in.
func (n *MatchNode) Anchored() bool { return n.Ref != nil || n.Split != "" }

// MatchHop is -[r:type*1..2]->. Dir is "OUT", "IN" or "BOTH", seen from the node on its left.
type MatchHop struct {
	Name, EdgeType, Dir string
	Least, Most         int
}

// MatchExpr is a literal, a property of a variable, or an aggregate of one.
type MatchExpr struct {
	Text       string // as it was written
	Literal    *words.Cell
	Name, Prop string
	OfEdge     bool   // the variable is an edge, not a node
	Aggregate  string // count, min, max or avg; with a Name of "*" it counts rows
}

// MatchCondition is one comparison; IN has several expressions on the right side.
type MatchCondition struct {
	Left  MatchExpr
	Op    string
	Right []MatchExpr
}

// MatchItem is a column of the result.
type MatchItem struct {
	MatchExpr
	As string
}

// MatchPlace is a place at the end of a text where a value is expected, for completion.
type MatchPlace struct {
	Query    *MatchQuery
	InHop    bool // a type of edges is expected, not a value
	InReturn bool
	InOrder  bool
	Left     *MatchExpr // what the value is compared with
}

// MatchQuery is a parsed MATCH. Where is an OR of ANDs.
type MatchQuery struct {
	Nodes    []MatchNode
	Hops     []MatchHop
	Where    [][]MatchCondition
	Items    []MatchItem
	Distinct bool
	Order    int // the item to sort by; -1 for none
	Desc     bool
	Limit    int64 // -1 for none
}

// Turned returns the query with its pattern read from the other end.
func (q *MatchQuery) Turned() *MatchQuery {
	t := *q
	t.Nodes, t.Hops = slices.Clone(q.Nodes), slices.Clone(q.Hops)
	slices.Reverse(t.Nodes)
	slices.Reverse(t.Hops)
	for i, h := range t.Hops {
		switch h.Dir {
		case "IN":
			t.Hops[i].Dir = "OUT"
		case "OUT":
			t.Hops[i].Dir = "IN"
		}
	}
	return &t
}

// Exprs returns all expressions of a query.
func (q *MatchQuery) Exprs() (all []MatchExpr) {
	for _, and := range q.Where {
		for _, c := range and {
			all = append(append(all, c.Left), c.Right...)
		}
	}
	for _, item := range q.Items {
		all = append(all, item.MatchExpr)
	}
	return all
}

// AnchorText says what a node is anchored to.
func (n *MatchNode) AnchorText() string {
	if n.Ref != nil {
		return n.Ref.Text()
	}
	return "split " + n.Split
}
