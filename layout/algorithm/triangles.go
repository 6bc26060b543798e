package algorithm

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync/atomic"

	"gdb/internal/mem"
)

// Triangles returns how many triangles of the undirected simple graph each node is in; each
// counts at its three nodes. Each edge is kept at its end of the lesser degree (Chiba and
// Nishizeki, SIAM J. Comput. 14, 1985), so that it takes O(edges^1.5). It takes 16 bytes a node,
// three passes, and 4 bytes an edge; where these do not fit, ranges of nodes take turns, each
// two together, with a pass for each.
func Triangles(ctx context.Context, g *Graph) (c *Column, err error) {
	a, err := mem.NewArena(g.Budget, "triangles", 16*int64(g.Nodes))
	if err != nil {
		return nil, fmt.Errorf("algorithm: %w", err)
	}
	b, n := a.Bytes(), g.Nodes
	t := &triangles{g: g, counts: mem.View[uint64](b[:8*n]),
		degree: mem.View[uint32](b[8*n : 12*n]), sizes: mem.View[uint32](b[12*n:])}
	if err = g.sizes(ctx, g.around, t.degree); err == nil {
		err = g.sizes(ctx, t.forward, t.sizes)
	}
	if err == nil {
		err = t.run(ctx)
	}
	if err != nil {
		return failed(a, err)
	}
	return &Column{Longs: t.counts, arena: a, Note: fmt.Sprintf("triangles: %d", t.all.Load())}, nil
}

type triangles struct {
	g             *Graph
	counts        []uint64
	degree, sizes []uint32
	all           atomic.Uint64
}

// forward makes each edge one of its end that comes first, by degree and number.
func (t *triangles) forward(v, u uint32, add func(owner, nbr uint32)) {
	less := t.degree[v] < t.degree[u] || t.degree[v] == t.degree[u] && v < u
	switch {
	case v == u:
	case less:
		add(v, u)
	case !t.g.Undirected: // else it is in the list of u too
		add(u, v)
	}
}

func (t *triangles) load(ctx context.Context, first, end uint64) (*csr, error) {
	c, err := t.g.csr(ctx, t.forward, t.sizes, first, end, false)
	if err != nil {
		return nil, err
	}
	if err := c.simple(ctx, t.g); err != nil {
		return nil, errors.Join(err, c.arena.Free())
	}
	return c, nil
}

// run counts in each two ranges of nodes: one of them all where memory allows.
func (t *triangles) run(ctx context.Context) error {
	c, err := t.load(ctx, 0, t.g.Nodes)
	var full *mem.LimitError
	switch {
	case err == nil:
		return errors.Join(t.count(ctx, c, c), c.arena.Free())
	case !errors.As(err, &full):
		return err
	}
	ends, err := t.g.ranges(t.sizes, t.g.room()/2)
	if err != nil {
		return err
	}
	from := uint64(0)
	for _, end := range ends {
		if c, err = t.load(ctx, from, end); err != nil {
			return err
		}
		if err := errors.Join(t.others(ctx, c, ends), c.arena.Free()); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// others counts the triangles of nodes in c with each range.
func (t *triangles) others(ctx context.Context, c *csr, ends []uint64) error {
	from := uint64(0)
	for _, end := range ends {
		other := c
		if from != c.first {
			var err error
			if other, err = t.load(ctx, from, end); err != nil {
				return err
			}
		}
		err := t.count(ctx, c, other)
		if other != c {
			err = errors.Join(err, other.arena.Free())
		}
		if err != nil {
			return err
		}
		from = end
	}
	return nil
}

// count counts the triangles whose first node is in a, and whose second is in b.
func (t *triangles) count(ctx context.Context, a, b *csr) error {
	return a.each(ctx, t.g, func(_ int, u uint32, nbrs []uint32) error {
		t.of(u, nbrs, b)
		return ctx.Err()
	})
}

// of counts the triangles of a node with two of its neighbors.
func (t *triangles) of(u uint32, nbrs []uint32, b *csr) {
	mine := uint64(0)
	for _, v := range nbrs {
		if uint64(v) < b.first || uint64(v) >= b.end {
			continue
		}
		found := uint64(0)
		common(nbrs, b.of(v), func(w uint32) {
			found++
			atomic.AddUint64(&t.counts[w], 1)
		})
		if found > 0 {
			atomic.AddUint64(&t.counts[v], found)
			mine += found
		}
	}
	if mine > 0 {
		atomic.AddUint64(&t.counts[u], mine)
		t.all.Add(mine)
	}
}

// halve is how many times longer a list is than another from which on it is searched by halving.
const halve = 32

// common calls fn with what two ascending lists have in common.
func common(a, b []uint32, fn func(uint32)) {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b) > halve*len(a) {
		for _, v := range a {
			i := sort.Search(len(b), func(i int) bool { return b[i] >= v })
			if b = b[i:]; len(b) > 0 && b[0] == v {
				fn(v)
			}
		}
		return
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			fn(a[i])
			i, j = i+1, j+1
		}
	}
}
