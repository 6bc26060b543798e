package store

import (
	"context"

	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/shell/graph"
)

// turned holds in memory the out-lists of a store that keeps in-lists only.
type turned struct {
	off   []uint64 // where the list of a node ends
	other []layout.NodeID
	typ   []uint16 // empty without types
	held  mem.Account
}

// turn makes out-lists of the in-lists, in two passes over these. It takes 8 bytes a node, and 4
// an edge, 6 if edges have types.
func (s *store) turn(ctx context.Context) (*turned, error) {
	s.x.Warn("this store keeps no out-lists: the statement makes them in memory; %s ingest "+
		"--direction both keeps them", message.Program)
	t := &turned{held: mem.NewAccount(s.g.Budget, "out-lists, which the store does not keep")}
	typed := len(s.meta.EdgeTypes) > 0
	each := int64(4)
	if typed {
		each += 2
	}
	if err := t.held.Add(8*int64(s.meta.Nodes+1) + each*int64(s.meta.Edges)); err != nil {
		return nil, err
	}
	t.off = make([]uint64, s.meta.Nodes+1)
	err := s.scan(ctx, func(_, from layout.NodeID, _ uint16) { t.off[from+1]++ })
	if err != nil {
		return nil, err
	}
	for v := range s.meta.Nodes {
		t.off[v+1] += t.off[v]
	}
	t.other = make([]layout.NodeID, t.off[s.meta.Nodes])
	if typed {
		t.typ = make([]uint16, len(t.other))
	}
	err = s.scan(ctx, func(to, from layout.NodeID, typ uint16) {
		at := t.off[from]
		t.off[from]++
		t.other[at] = to
		if typed {
			t.typ[at] = typ
		}
	})
	return t, err
}

// scan calls fn with all edges, in order of the nodes that they lead to.
func (s *store) scan(ctx context.Context, fn func(to, from layout.NodeID, typ uint16)) error {
	nodes := make([]layout.NodeID, 0, graph.NodeBatch)
	for v := uint64(0); v < s.meta.Nodes; v += uint64(len(nodes)) {
		nodes = nodes[:0]
		for u := v; u < min(v+graph.NodeBatch, s.meta.Nodes); u++ {
			nodes = append(nodes, layout.NodeID(u))
		}
		err := s.g.EachList(ctx, layout.In, nodes, graph.ListEntries,
			func(part []layout.NodeID, l *listfile.Lists) (bool, error) {
				for i, to := range part {
					for k := l.Off[i]; k < l.Off[i+1]; k++ {
						typ := uint16(0)
						if len(l.Types) > 0 {
							typ = l.Types[k]
						}
						fn(to, l.Nbrs[k], typ)
					}
				}
				return true, ctx.Err()
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// list returns the list of a node. The second pass has moved each end to the one behind it.
func (t *turned) list(n layout.NodeID) []entry {
	from := uint64(0)
	if n > 0 {
		from = t.off[n-1]
	}
	out := make([]entry, t.off[n]-from)
	for i := range out {
		at := from + uint64(i)
		out[i].other = t.other[at]
		if len(t.typ) > 0 {
			out[i].typ = t.typ[at]
		}
	}
	number(out)
	return out
}
