package group

import (
	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/value"
	"gdb/shell/cypher/vector"
)

// distinct is count(DISTINCT x).
type distinct struct {
	x     ast.Expr
	env   *vector.Env
	nodes *Table // of group and node
	// bits holds the nodes of group 0, once a bit for each node takes less than the table.
	bits  []uint64
	texts map[string]int32 // the group of each, by group and key
	n     []int64
	most  uint32 // of the nodes
	key   []byte
}

// textBytes is the memory of a value of a group, without its key.
const textBytes = 64

func newDistinct(x ast.Expr, env *vector.Env) *distinct {
	return &distinct{x: x, env: env, nodes: NewTable(), texts: map[string]int32{}}
}

// Add takes rows.
func (a *distinct) Add(b Rows, groups []int32, n int) error {
	v, err := a.env.Eval(a.x, b)
	if err != nil {
		return err
	}
	if n > 0 {
		a.n = room(a.n, int32(n-1))
	}
	if v.Kind == vector.Node {
		return a.addNodes(v, groups)
	}
	for i, g := range groups {
		if v.IsNull(i) {
			continue
		}
		a.key = append(a.key[:0], byte(g), byte(g>>8), byte(g>>16), byte(g>>24))
		a.key = value.Key(a.key, v.At(i))
		if err := a.text(g, a.key); err != nil {
			return err
		}
	}
	return nil
}

func (a *distinct) addNodes(v *vector.Vector, groups []int32) error {
	if err := a.reserve(len(groups), v); err != nil {
		return err
	}
	for i, g := range groups {
		if !v.IsNull(i) {
			a.node(g, v.Nodes[i])
		}
	}
	return nil
}

// reserve makes room for more nodes. It turns the table of a single group into bits if these take
// less than a larger table.
func (a *distinct) reserve(more int, v *vector.Vector) error {
	for i, u := range v.Nodes {
		if !v.IsNull(i) {
			a.most = max(a.most, u)
		}
	}
	words := int(a.most/64) + 1
	if a.bits == nil && len(a.n) == 1 && 8*int64(words) <= a.nodes.after(more) {
		if err := a.env.Row.Grow(8 * int64(words)); err != nil {
			return err
		}
		a.bits = make([]uint64, words)
		a.nodes.each(func(key uint64) { a.bits[uint32(key)>>6] |= 1 << (key & 63) })
		if err := a.nodes.free(a.env.Row.Grow); err != nil {
			return err
		}
	}
	if a.bits != nil && words > len(a.bits) {
		size := max(words, 2*len(a.bits))
		if err := a.env.Row.Grow(8 * int64(size-len(a.bits))); err != nil {
			return err
		}
		a.bits = append(a.bits, make([]uint64, size-len(a.bits))...)
	}
	if a.bits != nil && len(a.n) == 1 {
		return nil
	}
	return a.nodes.Reserve(more, a.env.Row.Grow)
}

// node adds a node, for which there is room.
func (a *distinct) node(g int32, v uint32) {
	if g == 0 && a.bits != nil {
		if w := &a.bits[v>>6]; *w>>(v&63)&1 == 0 {
			*w |= 1 << (v & 63)
			a.n[0]++
		}
		return
	}
	key := uint64(g)<<32 | uint64(v)
	if at := a.nodes.find(key); a.nodes.vals[at] == 0 {
		a.nodes.put(at, key, 0)
		a.n[g]++
	}
}

// text adds the key of a group and of a value.
func (a *distinct) text(g int32, key []byte) error {
	if _, had := a.texts[string(key)]; had {
		return nil
	}
	a.texts[string(key)] = g
	a.n[g]++
	return a.env.Row.Grow(textBytes + int64(len(key)))
}

// Merge takes the values of another.
func (a *distinct) Merge(other Aggregate, to []int32) error {
	o := other.(*distinct)
	for _, g := range to {
		a.n = room(a.n, g)
	}
	for key, g := range o.texts {
		g = to[g]
		a.key = append(a.key[:0], byte(g), byte(g>>8), byte(g>>16), byte(g>>24))
		if err := a.text(g, append(a.key, key[4:]...)); err != nil {
			return err
		}
	}
	part := &vector.Vector{Kind: vector.Node}
	var groups []int32
	var err error
	add := func(g int32, v uint32) {
		part.Nodes, groups = append(part.Nodes, v), append(groups, to[g])
		if len(groups) == mergeRows && err == nil {
			err = a.addNodes(part, groups)
			part.Nodes, groups = part.Nodes[:0], groups[:0]
		}
	}
	o.nodes.each(func(key uint64) { add(int32(key>>32), uint32(key)) })
	for i, w := range o.bits {
		for b := range uint32(64) {
			if w>>b&1 == 1 {
				add(0, uint32(i)<<6|b)
			}
		}
	}
	if err != nil {
		return err
	}
	return a.addNodes(part, groups)
}

// mergeRows is how many nodes are merged at once.
const mergeRows = 4096

// Result returns how many values a group has.
func (a *distinct) Result(g int32) (any, error) {
	a.n = room(a.n, g)
	return a.n[g], nil
}
