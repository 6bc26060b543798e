package engine

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/value"
	"gdb/shell/cypher/vector"
)

// checkRows is how many nodes a check computes at once.
const checkRows = 1024

// check tells which nodes of a range pass the conditions of one variable. It computes them for
// checkRows nodes when the first of these is asked for, and keeps a bit for each.
type check struct {
	name    string
	filters []ast.Expr
	g       value.Entities
	nodes   Range
	bits    []uint64
	known   []atomic.Bool // of checkRows nodes each
	mu      sync.Mutex
}

func newCheck(n *node, src Source) (*check, error) {
	r := n.set.bounds()
	size := int64(r.End-r.From) + checkRows
	if err := src.Grow(size/8 + size/checkRows); err != nil {
		return nil, err
	}
	return &check{name: n.name, filters: n.filters, g: src, nodes: r,
		bits: make([]uint64, size/64), known: make([]atomic.Bool, size/checkRows)}, nil
}

// has reports whether a node of the range passes.
func (c *check) has(env *vector.Env, v uint32) (bool, error) {
	at := v - c.nodes.From
	if !c.known[at/checkRows].Load() {
		if err := c.compute(env, at/checkRows); err != nil {
			return false, err
		}
	}
	return c.bits[at>>6]>>(at&63)&1 == 1, nil
}

// compute fills in the bits of a part.
func (c *check) compute(env *vector.Env, part uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[part].Load() {
		return nil
	}
	rows := &column{name: c.name, v: vector.Vector{Kind: vector.Node, G: c.g}}
	first := part * checkRows
	for i := first; i < min(first+checkRows, c.nodes.End-c.nodes.From); i++ {
		rows.v.Nodes = append(rows.v.Nodes, c.nodes.From+i)
	}
	pass := make([]bool, len(rows.v.Nodes))
	keep := make([]bool, len(pass))
	for k, x := range c.filters {
		if err := env.Filter(x, rows, keep); err != nil {
			return err
		}
		for i := range keep {
			pass[i] = keep[i] && (k == 0 || pass[i])
		}
	}
	for i, ok := range pass {
		if ok {
			at := first + uint32(i)
			c.bits[at>>6] |= 1 << (at & 63)
		}
	}
	c.known[part].Store(true)
	return nil
}

// samples is how many parts tell how many nodes pass.
const samples = 4

// share computes some parts, and returns the share of their nodes that pass, at least a small one.
func (c *check) share(env *vector.Env) (float64, error) {
	parts := uint32(len(c.known))
	n, passed := 0, 0
	for i := range uint32(samples) {
		part := (2*i + 1) * parts / (2 * samples) // not the first, which often differs
		if part*checkRows >= c.nodes.End-c.nodes.From {
			break
		}
		if err := c.compute(env, part); err != nil {
			return 0, err
		}
		for _, w := range c.bits[part*checkRows/64 : (part+1)*checkRows/64] {
			passed += bits.OnesCount64(w)
		}
		n += int(min(checkRows, c.nodes.End-c.nodes.From-part*checkRows))
	}
	if n == 0 {
		return 1, nil
	}
	return (float64(passed) + .1) / float64(n), nil
}

// column is rows of one variable.
type column struct {
	name string
	v    vector.Vector
}

// Len returns the number of rows.
func (c *column) Len() int { return len(c.v.Nodes) }

// Vector returns the variable.
func (c *column) Vector(name string) *vector.Vector {
	if name == c.name {
		return &c.v
	}
	return nil
}

// Scope returns the variable of a row.
func (c *column) Scope(row int) *eval.Scope {
	return (*eval.Scope)(nil).With(c.name, c.v.At(row))
}
