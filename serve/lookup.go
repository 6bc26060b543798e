package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb"
	"gdb/internal/dense"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/layout/edgefile"
	"gdb/layout/ingest/source"
	"gdb/sample"
	"gdb/serve/protocol"
)

// lookup answers the requests that are not about batches.
func (t *session) lookup(ctx context.Context, f *protocol.Frame) error {
	switch f.Kind {
	case protocol.KindEdges:
		return t.edges(ctx, f)
	case protocol.KindDeleted:
		return t.deleted(f)
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
	nodes, err := t.server.nodesOf(f)
	if err != nil {
		return err
	}
	rows, dim, err := db.Features(ctx, nodes)
	if err != nil {
		return err
	}
	if err := t.take(int64(len(mem.BytesOf(rows)))); err != nil {
		return err
	}
	return t.sendArrays(protocol.Arrays{Arrays: []protocol.Array{
		{Name: arrayRows, Type: "f4", Shape: []int{len(nodes), dim}}}}, mem.BytesOf(rows))
}

// labels sends the labels of nodes, in the types that labels have in batches.
func (t *session) labels(ctx context.Context, db *gdb.DB, f *protocol.Frame) error {
	nodes, err := t.server.nodesOf(f)
	if err != nil {
		return err
	}
	l, err := db.Labels(ctx, nodes)
	if err != nil {
		return err
	}
	if err := t.take(wideBytes * int64(len(nodes)*max(1, l.Width))); err != nil {
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

// neighbors sends the in-neighbors of nodes: the offset at which the list of each node begins, and
// all lists. The sample of a hop holds each node once, so a node that is asked for twice is looked
// up once.
func (t *session) neighbors(ctx context.Context, db *gdb.DB, f *protocol.Frame) error {
	var m protocol.Neighbors
	if err := f.Decode(&m); err != nil {
		return err
	}
	nodes, err := t.server.nodesOf(f)
	if err != nil {
		return err
	}
	if m.Fanout != sample.All && m.Fanout < 1 {
		return usage(fmt.Errorf("serve: fanout %d: want at least 1, or -1 for all", m.Fanout))
	}
	if err := t.take(placeBytes * int64(len(nodes))); err != nil {
		return err
	}
	place, once := map[sample.NodeID]int{}, []sample.NodeID{}
	for _, v := range nodes {
		if _, ok := place[v]; !ok {
			place[v] = len(once)
			once = append(once, v)
		}
	}
	d := &sample.Dense{Lists: dense.Lists{NbrOffsets: []uint32{0}}}
	if len(once) > 0 {
		if d, err = db.Sample(ctx, once, []int{m.Fanout}, m.Seed, 0, 0); err != nil {
			return err
		}
	}
	return t.sendLists(nodes, place, d)
}

// placeBytes is the memory that finding a node's place in a sample takes: an entry of a map that
// grows, and the node. wideBytes is the size of a number in an answer.
const placeBytes, wideBytes = 64, 8

// sendLists sends the lists of a sample for each of nodes. place gives the position of a node in
// the sample. The list of a node that is asked for twice is sent twice.
func (t *session) sendLists(nodes []sample.NodeID, place map[sample.NodeID]int,
	d *sample.Dense) error {
	all := 0
	for _, v := range nodes {
		all += int(d.NbrOffsets[place[v]+1] - d.NbrOffsets[place[v]])
	}
	places, s := len(nodes)+1, shelf{}
	s.addTight(arrayOffsets, "i8", wideBytes, places)
	s.addTight(arrayNodes, "i8", wideBytes, all)
	typed := len(d.Types) > 0 && all > 0
	if typed {
		s.addTight(arrayTypes, "i8", wideBytes, all)
	}
	sampled := int64(len(mem.BytesOf(d.Nbrs)) + len(mem.BytesOf(d.NodeIDs)) +
		len(mem.BytesOf(d.ReprMap)) + len(mem.BytesOf(d.Types)))
	if err := t.take(int64(s.bytes) + sampled); err != nil {
		return err
	}
	data := make([]byte, s.bytes)
	offsets, nbrs := mem.View[int64](data)[:places], mem.View[int64](data)[places:][:all]
	at := 0
	for i, v := range nodes {
		first, end := d.NbrOffsets[place[v]], d.NbrOffsets[place[v]+1]
		widen(nbrs[at:], d.Nbrs[first:end])
		if typed {
			widen(mem.View[int64](data)[places+all:][at:], d.Types[first:end])
		}
		at += int(end - first)
		offsets[i+1] = int64(at)
	}
	return t.sendArrays(protocol.Arrays{Arrays: s.arrays}, data)
}

// edgeBytes is the memory that an edge takes: its two ends and its type, as they are read and as
// they are sent.
const edgeBytes = 2*nodeBytes + 2 + 2*nodeBytes + wideBytes

// edges sends edges of one split of the store's edges.
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
	if err := t.take(int64(m.Count) * edgeBytes); err != nil {
		return err
	}
	var e edgefile.Edges
	if err := file.Read(ctx, m.First, m.First+m.Count, &e); err != nil {
		return err
	}
	var on shelf
	on.addTight(arrayEdges, "u4", nodeBytes, 2, len(e.Src))
	if e.Rel != nil {
		on.addTight(arrayTypes, "i8", wideBytes, len(e.Rel))
	}
	data := make([]byte, on.bytes)
	n := copy(data, mem.BytesOf(e.Src))
	n += copy(data[n:], mem.BytesOf(e.Dst))
	for i, r := range e.Rel {
		mem.View[int64](data[n:])[i] = int64(r)
	}
	return t.sendArrays(protocol.Arrays{Arrays: on.arrays}, data)
}

// deleted sends the numbers of nodes that were deleted.
func (t *session) deleted(f *protocol.Frame) error {
	var m protocol.Deleted
	if err := f.Decode(&m); err != nil {
		return err
	}
	has := uint64(0)
	if t.server.deleted != nil {
		has = t.server.deleted.GetCardinality()
	}
	if m.Count > protocol.DeletedMost || m.First > has || m.Count > has-m.First {
		return usage(fmt.Errorf("serve: %d deleted nodes from the %dth on: there are %d", m.Count,
			m.First, has))
	}
	if err := t.take(int64(m.Count) * wideBytes); err != nil {
		return err
	}
	nodes := make([]int64, 0, m.Count)
	if m.Count > 0 {
		first, err := t.server.deleted.Select(uint32(m.First))
		if err != nil {
			return fmt.Errorf("serve: deleted node %d of %d: %w", m.First, has, err)
		}
		it := t.server.deleted.Iterator()
		it.AdvanceIfNeeded(first)
		for uint64(len(nodes)) < m.Count {
			nodes = append(nodes, int64(it.Next()))
		}
	}
	return t.sendArrays(protocol.Arrays{Arrays: []protocol.Array{
		{Name: arrayNodes, Type: "i8", Shape: []int{len(nodes)}}}}, mem.BytesOf(nodes))
}

// nodeTypes sends the type number of each node. The external id of a node begins with the name of
// its type.
func (t *session) nodeTypes(ctx context.Context, db *gdb.DB, f *protocol.Frame) error {
	nodes, err := t.server.nodesOf(f)
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
	if err := t.take(wideBytes * int64(len(nodes))); err != nil {
		return err
	}
	types := make([]int64, 0, len(nodes))
	err = eachName(ctx, db, nodes, func(v sample.NodeID, name string) error {
		typ, _, _ := strings.Cut(name, source.TypeSep)
		number, ok := numbers[typ]
		if !ok {
			return fmt.Errorf("serve: node %d is called %s, which no type of nodes begins", v, name)
		}
		types = append(types, number)
		return nil
	})
	if err != nil {
		return err
	}
	return t.sendArrays(protocol.Arrays{Arrays: []protocol.Array{
		{Name: arrayNodeTypes, Type: "i8", Shape: []int{len(types)}}}}, mem.BytesOf(types))
}

// namesAtOnce bounds the names that are in memory beside an answer.
const namesAtOnce = 1024

// eachName calls fn with each of nodes and its name.
func eachName(ctx context.Context, db *gdb.DB, nodes []sample.NodeID,
	fn func(v sample.NodeID, name string) error) error {
	for part := range slices.Chunk(nodes, namesAtOnce) {
		names, err := db.External(ctx, part)
		if err != nil {
			return err
		}
		for i, name := range names {
			if err := fn(part[i], name); err != nil {
				return err
			}
		}
	}
	return nil
}

// query sends the result of a statement.
func (t *session) query(ctx context.Context, db *gdb.DB, f *protocol.Frame) error {
	var m protocol.Query
	if err := f.Decode(&m); err != nil {
		return err
	}
	params, err := paramsOf(m.Params)
	if err != nil {
		return err
	}
	res, err := db.QueryColumns(ctx, m.Statement, params)
	if err != nil {
		return err
	}
	defer res.Release()
	out := protocol.Table{Rows: res.Rows}
	for _, note := range res.Notes {
		out.Notes = append(out.Notes, message.Plain(note))
	}
	layouts, data := res.Layouts()
	if out.Columns, err = json.Marshal(layouts); err != nil {
		return fmt.Errorf("serve: describe columns: %w", err)
	}
	return t.send(protocol.KindTable, out, data...)
}

// paramsOf returns the parameters of a statement; numbers are json.Number.
func paramsOf(text []byte) (params map[string]any, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&params); err != nil {
		return nil, fmt.Errorf("serve: parameters: want an object: %w", err)
	}
	return params, nil
}

// names sends the external ids of nodes.
func (t *session) names(ctx context.Context, db *gdb.DB, f *protocol.Frame) error {
	nodes, err := t.server.nodesOf(f)
	if err != nil {
		return err
	}
	return t.sendList(protocol.KindNamed, protocol.Names{Names: []string{}},
		func(text *protocol.Text) error {
			return eachName(ctx, db, nodes, func(_ sample.NodeID, name string) error {
				return text.Add(name)
			})
		})
}

// sendList sends an object whose last field is a list. fill adds the elements of the list; they are
// counted in the budget as they are added.
func (t *session) sendList(kind protocol.Kind, of any, fill func(*protocol.Text) error) error {
	text := &protocol.Text{Budget: t.server.lookup}
	defer text.Free()
	if err := text.BeginList(of); err != nil {
		return err
	}
	if err := fill(text); err != nil {
		return err
	}
	if err := text.EndList(); err != nil {
		return err
	}
	return t.send(kind, text.JSON(), nil)
}

// nodes sends the nodes that the user's ids name.
func (t *session) nodes(ctx context.Context, db *gdb.DB, f *protocol.Frame) error {
	var m protocol.Names
	if err := f.Decode(&m); err != nil {
		return err
	}
	if err := t.take(wideBytes * int64(len(m.Names))); err != nil {
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
