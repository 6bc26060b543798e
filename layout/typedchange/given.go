package typedchange

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/edgefile"
	"gdb/layout/edgetable"
	"gdb/layout/ingest/source"
	"gdb/layout/listfile"
	"gdb/layout/topology"
	"gdb/layout/typedlevel"
)

// GivenEdges streams the edges of a store of one type without levels as the source had them, each
// once: if they are in splits, each chunk has the name of one. Those of other splits than train are
// stored without weights, times and columns, which come as 1, no time and null, and go nowhere.
func GivenEdges(s *layout.Store, dev blockdev.Device, budget *mem.Budget) typedlevel.Edges {
	return func(ctx context.Context, fn func(c *source.EdgeChunk) error) error {
		from := func(split string, read func(g *given) error) error {
			g := &given{meta: s.Meta(), fn: fn}
			g.c.Split, g.c.Where = split, source.Where{File: s.Dir(), Unit: "edge"}
			err := g.openTable(ctx, s, dev, budget)
			if err == nil {
				err = read(g)
			}
			return errors.Join(err, g.close())
		}
		if len(s.Meta().EdgeSplits) == 0 {
			return from("", func(g *given) error { return g.lists(ctx, s, dev) })
		}
		for _, split := range s.Meta().EdgeSplits {
			err := from(split.Name, func(g *given) error { return g.read(ctx, s, dev) })
			if err != nil {
				return fmt.Errorf("edges of %s: %w", split.Name, err)
			}
		}
		return nil
	}
}

// given streams the edges of a split, or all where there are none.
type given struct {
	meta *kv.Meta
	fn   func(c *source.EdgeChunk) error
	c    source.EdgeChunk

	table *edgetable.Table // nil if edges have no columns
	row   uint64           // of the table, of the entry of the lists that comes next
	rows  []uint64         // of the edges of the chunk that are from lists

	file *edgefile.File // of the split
	at   uint64         // of the edge of the file that comes next behind those of next
	next edgefile.Edges
	// of counts edges of the file to a node, by source and type.
	to uint32
	of map[sourceType]int
}

type sourceType struct {
	src uint32
	typ uint16
}

func (g *given) read(ctx context.Context, s *layout.Store, dev blockdev.Device) (err error) {
	if g.file, err = edgefile.Open(ctx, s, dev, g.c.Split); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.file.Close()) }()
	if g.c.Split == edgefile.Splits[0] &&
		(g.meta.Weighted || g.meta.Timestamped || g.table != nil) {
		return g.lists(ctx, s, dev)
	}
	return g.file.Stream(ctx, 0, g.file.Count(), func(_ uint64, e edgefile.Edges) error {
		for i, src := range e.Src {
			typ := uint16(0)
			if e.Rel != nil {
				typ = e.Rel[i]
			}
			g.add(src, e.Dst[i], typ, 1, kv.NoTime)
		}
		return g.flush(ctx)
	})
}

// openTable opens the table of the edges, if there is one.
func (g *given) openTable(ctx context.Context, s *layout.Store, dev blockdev.Device,
	budget *mem.Budget) (err error) {
	if g.meta.EdgeTable(0) == nil {
		return nil
	}
	if g.table, err = edgetable.Open(ctx, s, dev, 0, budget); err == nil {
		g.c.Columns = make([]columnfile.Values, len(g.table.Columns()))
	}
	return err
}

func (g *given) close() error {
	if g.table == nil {
		return nil
	}
	return g.table.Close()
}

// add adds an edge to the chunk.
//
//lint:parameters an edge with all that it carries
func (g *given) add(src, dst uint32, typ uint16, weight float32, time int64) {
	c := &g.c
	c.SrcInt, c.DstInt = append(c.SrcInt, uint64(src)), append(c.DstInt, uint64(dst))
	if len(g.meta.EdgeTypes) > 0 {
		c.TypeInt = append(c.TypeInt, uint32(typ))
	}
	if g.meta.Weighted {
		c.Weight = append(c.Weight, weight)
	}
	if g.meta.Timestamped {
		c.Time = append(c.Time, time)
	}
}

// flush passes on what was added.
func (g *given) flush(ctx context.Context) error {
	c := &g.c
	if len(c.SrcInt) == 0 {
		return nil
	}
	if err := g.columns(ctx); err != nil {
		return err
	}
	some := *c
	err := g.fn(&some)
	c.SrcInt, c.DstInt, c.TypeInt = c.SrcInt[:0], c.DstInt[:0], c.TypeInt[:0]
	c.Weight, c.Time, g.rows = c.Weight[:0], c.Time[:0], g.rows[:0]
	return err
}

// columns reads the columns of the edges of the chunk. Their rows ascend, and those between them
// are passed over.
func (g *given) columns(ctx context.Context) error {
	for k := range g.c.Columns {
		to, next := &g.c.Columns[k], 0
		to.Reset()
		if len(g.rows) == 0 {
			for range g.c.SrcInt {
				to.AddNull(g.table.Columns()[k].Type)
			}
			continue
		}
		n := g.rows[len(g.rows)-1] + 1 - g.rows[0]
		err := g.table.Scan(ctx, g.rows[0], n, k, func(at uint64, v *columnfile.Values) error {
			for next < len(g.rows) && g.rows[next] < at+uint64(v.Rows) {
				first := next
				for next++; next < len(g.rows) && g.rows[next] < at+uint64(v.Rows) &&
					g.rows[next] == g.rows[next-1]+1; next++ {
				}
				to.Append(v, int(g.rows[first]-at), int(g.rows[next-1]+1-at))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// lists streams edges from the lists, which have their weights and times, and whose order their
// rows have.
func (g *given) lists(ctx context.Context, s *layout.Store, dev blockdev.Device) error {
	return topology.Scan(ctx, s, dev, layout.In, func(first layout.NodeID, _ bool,
		l *listfile.Lists) error {
		for i := range len(l.Off) - 1 {
			v := uint32(first) + uint32(i)
			if err := g.list(ctx, v, l, l.Off[i], l.Off[i+1]); err != nil {
				return err
			}
			if len(g.c.SrcInt) >= chunk {
				if err := g.flush(ctx); err != nil {
					return err
				}
			}
		}
		return g.flush(ctx)
	})
}

// list adds the edges that a list of node v, or a part of it, has. Of an undirected store each is
// in the lists of both ends: the list of the larger end gives all between two nodes, in their
// order. The file of a split says how many go which way; of edges that differ in weight or time
// alone it does not matter which.
func (g *given) list(ctx context.Context, v uint32, l *listfile.Lists, from, to uint64) error {
	if g.meta.Undirected && g.file != nil {
		if err := g.countTo(ctx, v); err != nil {
			return err
		}
	}
	for k := from; k < to; k++ {
		row := g.row
		g.row++
		u, typ, weight, time := uint32(l.Nbrs[k]), uint16(0), float32(1), int64(kv.NoTime)
		if l.Types != nil {
			typ = l.Types[k]
		}
		if l.Weights != nil {
			weight = l.Weights[k]
		}
		if l.Times != nil {
			time = l.Times[k]
		}
		switch {
		case !g.meta.Undirected, u <= v && g.file == nil:
			g.add(u, v, typ, weight, time)
		case u <= v && g.of[sourceType{u, typ}] > 0:
			g.of[sourceType{u, typ}]--
			g.add(u, v, typ, weight, time)
		case u < v:
			g.add(v, u, typ, weight, time)
		default:
			continue
		}
		if g.table != nil {
			g.rows = append(g.rows, row)
		}
	}
	return nil
}

// countTo counts the edges of the file to a node, unless it has: nodes come in order, and a node
// may come with a part of its list at a time.
func (g *given) countTo(ctx context.Context, v uint32) error {
	if g.of != nil && g.to == v {
		return nil
	}
	g.to, g.of = v, map[sourceType]int{}
	for {
		if g.next.Len() == 0 {
			if g.at == g.file.Count() {
				return nil
			}
			end := min(g.at+chunk, g.file.Count())
			g.next.Clear()
			err := g.file.Stream(ctx, g.at, end, func(_ uint64, e edgefile.Edges) error {
				g.next.Src, g.next.Dst = append(g.next.Src, e.Src...), append(g.next.Dst, e.Dst...)
				g.next.Rel = append(g.next.Rel, e.Rel...)
				return nil
			})
			if err != nil {
				return err
			}
			g.at = end
		}
		n := 0
		for ; n < g.next.Len() && g.next.Dst[n] <= v; n++ {
			key := sourceType{src: g.next.Src[n]}
			if len(g.next.Rel) > 0 {
				key.typ = g.next.Rel[n]
			}
			g.of[key]++
		}
		more := n == g.next.Len()
		if g.next = g.next.Slice(n, g.next.Len()); !more {
			return nil
		}
	}
}
