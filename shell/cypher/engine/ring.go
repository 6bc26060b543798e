package engine

import (
	"context"
	"errors"
	"slices"

	"gdb/shell/cypher/adjacency"
	"gdb/shell/cypher/ast"
)

// ring is a cycle of four relationships of which nothing but one node is wanted. It is counted from
// that node: the paths over the next node, by the ends at which they meet those over the last. That
// takes a step for each path of two edges, where closing the cycle takes an intersection for each.
type ring struct {
	nodes [4]int
	rels  [4]*rel // that join a node with the next, and the last with the first
	// same says that relationships may be the same: opposite ones where the third node is the first
	// or, with loops, others that join a node with itself. Then all have one direction, and the
	// same types.
	same, loops bool
	// end is where the nodes end to which lists of a range lead.
	end uint32
}

// rings makes factors of cycles, where the lists of both directions that they take are there.
func (e *eliminator) rings(ctx context.Context) error {
	if e.p.shortest != nil {
		return nil
	}
	for v, n := range e.p.nodes {
		if n.gone || n.outer {
			continue
		}
		g := e.ringAt(v)
		if g == nil || !e.apart(g) {
			continue
		}
		if ok, err := e.enter(ctx, g); err != nil {
			return err
		} else if !ok || !e.covered(g) || !e.room(g) || e.reads && !e.across(g) {
			continue
		}
		for _, u := range g.nodes[1:] {
			e.p.nodes[u].gone = true
		}
		e.fixed[v] = true
		e.of[v] = append(e.of[v], &factor{node: g.nodes[1], ring: g,
			legs: []*rel{g.rels[0], g.rels[3]}})
	}
	return nil
}

// enter gets the lists of a cycle, which is followed from both sides of its first node; false if
// there is no memory for them, or the store does not keep them.
func (e *eliminator) enter(ctx context.Context, g *ring) (bool, error) {
	for i, r := range g.rels {
		owner := g.nodes[i]
		if i >= 2 {
			owner = g.nodes[(i+1)%4]
		}
		if !e.follows(r, owner) {
			return false, nil
		}
		if ok, err := e.load(ctx, r, owner); !ok || err != nil {
			return ok, err
		}
	}
	return true, nil
}

// ringAt returns a cycle from a node over three that are only counted; nil if there is none.
func (e *eliminator) ringAt(v int) *ring {
	at := e.joining(v)
	for _, first := range at {
		b := first.from + first.to - v
		for _, last := range at {
			d := last.from + last.to - v
			if b == d || b == v || d == v || !e.unseen(b) || !e.unseen(d) {
				continue
			}
			second, third := e.onward(b, first), e.onward(d, last)
			c := second.from + second.to - b
			if c != third.from+third.to-d || c == v || c == b || !e.unseen(c) {
				continue
			}
			return &ring{nodes: [4]int{v, b, c, d}, rels: [4]*rel{first, second, third, last}}
		}
	}
	return nil
}

// joining returns the relationships of a node.
func (e *eliminator) joining(v int) (out []*rel) {
	for _, r := range e.p.rels {
		if r.from == v || r.to == v {
			out = append(out, r)
		}
	}
	return out
}

// onward returns the relationship of a node with two that is not r.
func (e *eliminator) onward(v int, r *rel) *rel {
	rels := e.joining(v)
	if rels[0] == r {
		return rels[1]
	}
	return rels[0]
}

// unseen reports whether a node has two relationships, and nothing else of the statement is about
// it or them.
func (e *eliminator) unseen(v int) bool {
	n := e.p.nodes[v]
	rels := e.joining(v)
	return len(rels) == 2 && !n.gone && !n.needed && !n.anchored && !n.bound && !n.outer &&
		n.check == nil && n.by == nil &&
		!slices.ContainsFunc(rels, func(r *rel) bool { return r.needed || r.outer }) &&
		!slices.ContainsFunc(e.p.cross, func(c *condition) bool {
			return slices.Contains(c.nodes, v)
		})
}

// apart reports whether relationships of a cycle are never the same as others, and it is known how
// often those within it are. It fills in whether they may be.
func (e *eliminator) apart(g *ring) bool {
	known := !e.src.Undirected()
	first := g.rels[0]
	for i, r := range g.rels {
		known = known && !r.undirected && slices.Equal(r.types, first.types) &&
			(r.from == g.nodes[i]) == (first.from == g.nodes[0])
		for _, q := range e.p.rels {
			if !e.p.mayEqual(r, q, e.src.Undirected()) {
				continue
			}
			at := slices.Index(g.rels[:], q)
			if at < 0 {
				return false
			}
			g.same = true
			g.loops = g.loops || at != (i+2)%4
		}
	}
	return known || !g.same
}

// covered reports whether all that lists have are nodes of the cycle.
func (e *eliminator) covered(g *ring) bool {
	for _, r := range g.rels {
		to := e.p.nodes[r.other()]
		if r.outline.Entries > 0 && !to.set.Covers(r.outline.Least, r.outline.Most) {
			return false
		}
	}
	return true
}

// pathBytes is the memory of the counts of paths to a node.
const pathBytes = 12

// room reports whether there is memory for the counts of each thread, where lists are in memory.
func (e *eliminator) room(g *ring) bool {
	of := e.p.nodes[g.nodes[2]].set.bounds()
	threads := int64(max(e.src.Threads(), 1))
	return e.reads || pathBytes*threads*int64(of.End-of.From) <= e.src.Free()/2
}

// across reports whether a cycle can be counted with the lists of ranges of its third node in
// memory: whether there is no other node than those of the cycle, and lists in both directions.
func (e *eliminator) across(g *ring) bool {
	if !e.p.grouped || !e.whole || e.p.in != nil || len(e.p.nodes) > len(g.nodes) {
		return false
	}
	for _, r := range g.rels[1:3] { // these are read from the other side
		if e.src.Outline(opposite(r.side), r.types) == nil {
			return false
		}
	}
	n := e.ringTurns(g)
	return n.runs() <= turnsMost
}

// ring returns the cycle of a plan of which nothing else is counted; nil if there is none.
func (pl *plan) ring() *ring {
	if len(pl.steps) != 1 || len(pl.steps[0].factors) != 1 {
		return nil
	}
	return pl.steps[0].factors[0].ring
}

// ringTurns returns how the third node of a cycle takes turns. The entries of a range take up to
// three fourths of the room for lists that are read, and twice that once they are turned; the
// counts of a thread, of a sixteenth as many nodes as the room has bytes, three fourths too.
func (pl *plan) ringTurns(g *ring) turnNode {
	n := turnNode{node: g.nodes[2], rels: g.rels[1:3], ring: g}
	fourths := int64(3 * 2 * len(n.rels))
	fourths += int64(max(4, 3*pl.src.Threads())) // lists that are read, and then counts
	n.room = pl.src.Free() / 4 * 3 * 4 / fourths
	return n
}

func opposite(d ast.Direction) ast.Direction {
	switch d {
	case ast.Out:
		return ast.In
	case ast.In:
		return ast.Out
	}
	return d
}

// loadRing reads the lists of the first nodes of a range, as they are found from their neighbors,
// and returns where these nodes end.
func (n *turnNode) loadRing(ctx context.Context, pl *plan, of Range) (end uint32, err error) {
	for _, r := range n.rels {
		l, err := pl.src.ReadRange(ctx, Want{opposite(r.side), r.types}, of, n.room)
		if err != nil {
			return 0, err
		}
		n.ring.end, of.End = max(of.End, l.End), l.End
		owners := pl.p.nodes[r.owner].set.bounds()
		r.turn, err = adjacency.TurnSome(ctx, l, owners.End, pl.src.Grow)
		if err := errors.Join(err, pl.src.Grow(-l.Bytes())); err != nil {
			return 0, err
		}
	}
	return of.End, nil
}

// overAtOnce is how many nodes paths are counted over until it is seen whether a statement ends.
const overAtOnce = 64

// ring counts the cycles from a node.
func (c *counter) ring(g *ring, v uint32) (n int64, err error) {
	to := c.lists.span(g.rels[0], v).Nbr
	from := c.lists.span(g.rels[3], v).Nbr
	if len(to) == 0 || len(from) == 0 {
		return 0, nil
	}
	p, err := c.pathsOf(g)
	if err != nil {
		return 0, err
	}
	defer p.Clear()
	for over := range slices.Chunk(to, overAtOnce) {
		steps := p.Add(over, c.lists[g.rels[1].id])
		if err := c.steps.Took(c.ctx, steps); err != nil {
			return 0, err
		}
	}
	if g.same {
		p.Leave(v)
	}
	if p.Any() {
		for over := range slices.Chunk(from, overAtOnce) {
			pairs, steps := p.Meet(over, c.lists[g.rels[2].id])
			if err := c.steps.Took(c.ctx, steps); err != nil {
				return 0, err
			}
			n += pairs
		}
	}
	if g.loops {
		n -= c.looped(g, v)
	}
	if g.same && c.p.nodes[g.nodes[2]].set.Has(v) {
		n += adjacency.Rounds(to, from, v)
	}
	return n, nil
}

// looped returns how many of the cycles that were counted have the same edge of a node with itself
// twice: of the first node, or of the third.
func (c *counter) looped(g *ring, v uint32) (n int64) {
	third := c.p.nodes[g.nodes[2]].set
	to := c.lists.span(g.rels[0], v).Nbr
	from := c.lists.span(g.rels[3], v).Nbr
	loops := adjacency.Times(to, v)
	adjacency.Shared(to, from, func(u uint32, a, b int64) {
		if u != v && third.Has(u) {
			n += a * b * (loops + adjacency.Times(c.lists.span(g.rels[1], u).Nbr, u))
		}
	})
	return n
}

// pathsOf returns the counts of a cycle, to the nodes that may be its third one.
func (c *counter) pathsOf(g *ring) (*adjacency.Paths, error) {
	p := c.paths[g]
	if p == nil {
		of := c.p.nodes[g.nodes[2]].set.bounds()
		end := max(of.End, g.end)
		if err := c.grow(pathBytes * int64(end-of.From)); err != nil {
			return nil, err
		}
		p = adjacency.NewPaths(of.From, end)
		c.paths[g] = p
	}
	return p, nil
}
