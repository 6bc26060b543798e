package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gdb"
	"gdb/internal/mem"
	"gdb/layout/edgefile"
	"gdb/layout/ingest/source"
	"gdb/sample"
	"gdb/serve/protocol"
)

// lookup answers what is asked of the store beside batches.
func (t *session) lookup(ctx context.Context, f *protocol.Frame) error {
	if f.Kind == protocol.KindEdges {
		return t.edges(ctx, f)
	}
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
	case protocol.KindNodeTypes:
		answer = t.nodeTypes
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
	l, err := db.Labels(ctx, nodes)
	if err != nil {
		return err
	}
	array := protocol.Array{Name: arrayLabels, Type: "f4", Shape: []int{len(nodes)}}
	var data []byte
	switch {
	case l.Width > 0:
		array.Shape, data = append(array.Shape, l.Width), mem.BytesOf(l.Bits)
	case l.Classes != nil:
		array.Type = "i8"
		wide := make([]int64, len(nodes))
		widen(wide, l.Classes)
		data = mem.BytesOf(wide)
	default:
		data = mem.BytesOf(l.Numbers)
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
	offsets, all, types := make([]int64, 1, len(nodes)+1), []int64{}, []int64{}
	for _, v := range nodes {
		first, end := d.NbrOffsets[place[v]], d.NbrOffsets[place[v]+1]
		for i := first; i < end; i++ {
			all = append(all, int64(d.Nbrs[i]))
			if len(d.Types) > 0 {
				types = append(types, int64(d.Types[i]))
			}
		}
		offsets = append(offsets, int64(len(all)))
	}
	arrays, data := []protocol.Array{
		{Name: arrayOffsets, Type: "i8", Shape: []int{len(offsets)}},
		{Name: arrayNodes, Type: "i8", Shape: []int{len(all)}, Offset: 8 * len(offsets)}},
		append(mem.BytesOf(offsets), mem.BytesOf(all)...)
	if len(types) > 0 {
		arrays = append(arrays, protocol.Array{Name: arrayTypes, Type: "i8",
			Shape: []int{len(types)}, Offset: len(data)})
		data = append(data, mem.BytesOf(types)...)
	}
	return t.sendArrays(protocol.Arrays{Arrays: arrays}, data)
}

// edges sends edges of a split of the edges.
func (t *session) edges(ctx context.Context, f *protocol.Frame) (err error) {
	var m protocol.Edges
	if err := f.Decode(&m); err != nil {
		return err
	}
	file, err := edgefile.Open(ctx, t.server.opt.Store, t.server.opt.Device, m.Split)
	if err != nil {
		if errors.Is(err, edgefile.ErrNoSplits) {
			return usage(err)
		}
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if m.Count > protocol.EdgesMost || m.First > file.Count() || m.Count > file.Count()-m.First {
		return usage(fmt.Errorf("serve: %d edges of split %s from %d on: it has %d", m.Count,
			m.Split, m.First, file.Count()))
	}
	var e edgefile.Edges
	if err := file.Read(ctx, m.First, m.First+m.Count, &e); err != nil {
		return err
	}
	arrays, data := []protocol.Array{{Name: arrayEdges, Type: "u4", Shape: []int{2, len(e.Src)}}},
		append(mem.BytesOf(e.Src), mem.BytesOf(e.Dst)...)
	if e.Rel != nil {
		types := make([]int64, len(e.Rel))
		for i, r := range e.Rel {
			types[i] = int64(r)
		}
		arrays = append(arrays, protocol.Array{Name: arrayTypes, Type: "i8",
			Shape: []int{len(types)}, Offset: len(data)})
		data = append(data, mem.BytesOf(types)...)
	}
	return t.sendArrays(protocol.Arrays{Arrays: arrays}, data)
}

// nodeTypes sends the numbers of the types of nodes, which their ids begin with.
func (t *session) nodeTypes(ctx context.Context, db *gdb.DB, f *protocol.Frame) error {
	nodes, err := t.nodesOf(f)
	if err != nil {
		return err
	}
	numbers := map[string]int64{}
	for i, typ := range db.Meta().NodeTypes {
		numbers[typ.Name] = int64(i)
	}
	if len(numbers) == 0 {
		return usage(errors.New("serve: the nodes of this store have no types"))
	}
	names, err := db.External(ctx, nodes)
	if err != nil {
		return err
	}
	types := make([]int64, len(nodes))
	for i, name := range names {
		typ, _, _ := strings.Cut(name, source.TypeSep)
		number, ok := numbers[typ]
		if !ok {
			return fmt.Errorf("serve: node %d is called %s, which no type of nodes begins",
				nodes[i], name)
		}
		types[i] = number
	}
	return t.sendArrays(protocol.Arrays{Arrays: []protocol.Array{
		{Name: arrayNodeTypes, Type: "i8", Shape: []int{len(types)}}}}, mem.BytesOf(types))
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
