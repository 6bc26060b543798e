package serve

import (
	"context"
	"fmt"

	"gdb"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/serve/protocol"
)

// lookup answers what is asked of the store beside batches.
func (t *session) lookup(ctx context.Context, f *protocol.Frame) error {
	var answer func(context.Context, *gdb.DB, *protocol.Frame) error
	switch f.Kind {
	case protocol.KindRows:
		answer = t.rows
	case protocol.KindLabels:
		answer = t.labels
	case protocol.KindNeighbors:
		answer = t.neighbors
	case protocol.KindQuery:
		answer = t.query
	case protocol.KindNames:
		answer = t.names
	case protocol.KindNodes:
		answer = t.nodes
	default:
		return usage(fmt.Errorf("serve: frame %d is no request", f.Kind))
	}
	db, err := t.server.lookups(ctx)
	if err != nil {
		return err
	}
	return answer(ctx, db, f)
}

// rows sends the features of nodes.
func (t *session) rows(ctx context.Context, db *gdb.DB, f *protocol.Frame) error {
	nodes, err := t.nodesOf(f)
	if err != nil {
		return err
	}
	rows, dim, err := db.Features(ctx, nodes)
	if err != nil {
		return err
	}
	return t.sendArrays(protocol.Arrays{Arrays: []protocol.Array{
		{Name: arrayRows, Type: "f4", Shape: []int{len(nodes), dim}}}}, mem.BytesOf(rows))
}

// labels sends the labels of nodes, in the types that batches have them.
func (t *session) labels(ctx context.Context, db *gdb.DB, f *protocol.Frame) error {
	nodes, err := t.nodesOf(f)
	if err != nil {
		return err
	}
	l, err := db.Labels(ctx)
	if err != nil {
		return err
	}
	array := protocol.Array{Name: arrayLabels, Type: "f4", Shape: []int{len(nodes)}}
	var data []byte
	switch {
	case l.Multi():
		array.Shape = append(array.Shape, l.Classes())
		bits := make([]float32, len(nodes)*l.Classes())
		err, data = l.Bits(ctx, nodes, bits), mem.BytesOf(bits)
	case l.Numbers():
		values := make([]float32, len(nodes))
		err, data = l.Values(ctx, nodes, values), mem.BytesOf(values)
	default:
		array.Type = "i8"
		classes, wide := make([]int32, len(nodes)), make([]int64, len(nodes))
		err = l.Of(ctx, nodes, classes)
		widen(wide, classes)
		data = mem.BytesOf(wide)
	}
	if err != nil {
		return err
	}
	return t.sendArrays(protocol.Arrays{Arrays: []protocol.Array{array}}, data)
}

// neighbors sends the in-neighbors of nodes: where those of each begin, and all of them. The sample
// of a hop has each node once, so nodes that are asked for twice are looked up once.
func (t *session) neighbors(ctx context.Context, db *gdb.DB, f *protocol.Frame) error {
	var m protocol.Neighbors
	if err := f.Decode(&m); err != nil {
		return err
	}
	nodes, err := t.nodesOf(f)
	if err != nil {
		return err
	}
	if m.Fanout != sample.All && m.Fanout < 1 {
		return usage(fmt.Errorf("serve: fanout %d: want at least 1, or -1 for all", m.Fanout))
	}
	place, once := map[sample.NodeID]int{}, []sample.NodeID{}
	for _, v := range nodes {
		if _, ok := place[v]; !ok {
			place[v] = len(once)
			once = append(once, v)
		}
	}
	d := &sample.Dense{NbrOffsets: []uint32{0}}
	if len(once) > 0 {
		if d, err = db.Sample(ctx, once, []int{m.Fanout}, m.Seed, 0, 0); err != nil {
			return err
		}
	}
	offsets, all := make([]int64, 1, len(nodes)+1), []int64{}
	for _, v := range nodes {
		k := place[v]
		for _, nbr := range d.Nbrs[d.NbrOffsets[k]:d.NbrOffsets[k+1]] {
			all = append(all, int64(nbr))
		}
		offsets = append(offsets, int64(len(all)))
	}
	return t.sendArrays(protocol.Arrays{Arrays: []protocol.Array{
		{Name: arrayOffsets, Type: "i8", Shape: []int{len(offsets)}},
		{Name: arrayNodes, Type: "i8", Shape: []int{len(all)}, Offset: 8 * len(offsets)}}},
		append(mem.BytesOf(offsets), mem.BytesOf(all)...))
}

// query sends the result of a statement.
func (t *session) query(ctx context.Context, db *gdb.DB, f *protocol.Frame) error {
	var m protocol.Query
	if err := f.Decode(&m); err != nil {
		return err
	}
	res, err := db.Query(ctx, m.Statement)
	if err != nil {
		return err
	}
	out := protocol.Table{Rows: res.Rows}
	if out.Rows == nil {
		out.Rows = [][]any{}
	}
	for _, c := range res.Columns {
		out.Columns, out.Kinds = append(out.Columns, c.Name), append(out.Kinds, c.Type.String())
	}
	return t.send(protocol.KindTable, out, nil)
}

// names sends the ids that the user has given nodes.
func (t *session) names(ctx context.Context, db *gdb.DB, f *protocol.Frame) error {
	nodes, err := t.nodesOf(f)
	if err != nil {
		return err
	}
	names, err := db.External(ctx, nodes)
	if err != nil {
		return err
	}
	return t.send(protocol.KindNamed, protocol.Names{Names: names}, nil)
}

// nodes sends the nodes of the user's ids.
func (t *session) nodes(ctx context.Context, db *gdb.DB, f *protocol.Frame) error {
	var m protocol.Names
	if err := f.Decode(&m); err != nil {
		return err
	}
	ids := make([]int64, len(m.Names))
	for i, name := range m.Names {
		v, err := db.Node(ctx, name)
		if err != nil {
			return err
		}
		ids[i] = int64(v)
	}
	return t.sendArrays(protocol.Arrays{Arrays: []protocol.Array{
		{Name: arrayNodes, Type: "i8", Shape: []int{len(ids)}}}}, mem.BytesOf(ids))
}

// sendArrays sends arrays and their bytes.
func (t *session) sendArrays(a protocol.Arrays, data []byte) error {
	return t.send(protocol.KindArrays, a, data)
}
