package typedchange

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/ingest/source"
	"gdb/layout/listfile"
	"gdb/layout/topology"
	"gdb/layout/typedlevel"
)

// GivenEdges streams the edges of a store of one type as the source had them, each chunk with the
// name of its split. Those of other splits than train are stored without weights and times, which
// come as 1 and no time, and go nowhere.
func GivenEdges(s *layout.Store, dev blockdev.Device) typedlevel.Edges {
	return func(ctx context.Context, fn func(c *source.EdgeChunk) error) error {
		for _, split := range s.Meta().EdgeSplits {
			g := &given{meta: s.Meta(), fn: fn}
			g.c.Split = split.Name
			g.c.Where = source.Where{File: edgefile.Path(split.Name), Unit: "edge"}
			if err := g.read(ctx, s, dev); err != nil {
				return fmt.Errorf("edges of %s: %w", split.Name, err)
			}
		}
		return nil
	}
}

// given streams the edges of a split.
type given struct {
	meta *kv.Meta
	fn   func(c *source.EdgeChunk) error
	c    source.EdgeChunk
	file *edgefile.File
	at   uint64 // of the edge of the file that comes next behind those of next
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
	if g.c.Split == edgefile.Splits[0] && (g.meta.Weighted || g.meta.Timestamped) {
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
		return g.flush()
	})
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
func (g *given) flush() error {
	c := &g.c
	if len(c.SrcInt) == 0 {
		return nil
	}
	some := *c
	err := g.fn(&some)
	c.SrcInt, c.DstInt, c.TypeInt = c.SrcInt[:0], c.DstInt[:0], c.TypeInt[:0]
	c.Weight, c.Time = c.Weight[:0], c.Time[:0]
	return err
}

// lists streams the edges of train from the lists, which have their weights and times.
func (g *given) lists(ctx context.Context, s *layout.Store, dev blockdev.Device) error {
	return topology.Scan(ctx, s, dev, layout.In, func(first layout.NodeID, _ bool,
		l *listfile.Lists) error {
		for i := range len(l.Off) - 1 {
			v := uint32(first) + uint32(i)
			if err := g.list(ctx, v, l, l.Off[i], l.Off[i+1]); err != nil {
				return err
			}
			if len(g.c.SrcInt) >= chunk {
				if err := g.flush(); err != nil {
					return err
				}
			}
		}
		return g.flush()
	})
}

// list adds the edges that a list of node v, or a part of it, has. An undirected store keeps
// parallel edges if these have weights or times, and each is in the lists of both ends: the list of
// the larger end gives all between two nodes. The file says how many go which way; of edges that
// differ in weight or time alone it does not matter which.
func (g *given) list(ctx context.Context, v uint32, l *listfile.Lists, from, to uint64) error {
	if g.meta.Undirected {
		if err := g.countTo(ctx, v); err != nil {
			return err
		}
	}
	for k := from; k < to; k++ {
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
		case !g.meta.Undirected:
			g.add(u, v, typ, weight, time)
		case u > v:
		case g.of[sourceType{u, typ}] > 0:
			g.of[sourceType{u, typ}]--
			g.add(u, v, typ, weight, time)
		case u < v:
			g.add(v, u, typ, weight, time)
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
