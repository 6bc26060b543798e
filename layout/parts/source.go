package parts

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/ingest/source"
	"gdb/layout/listfile"
	"gdb/layout/openfiles"
	"gdb/layout/rowfile"
	"gdb/layout/topology"

	"github.com/RoaringBitmap/roaring/v2"
)

// part is a part of a store as ingest reads it: its nodes, named by the ids of the user and in the
// order of the store, with their edges, features and labels.
type part struct {
	files *openfiles.Set
	meta  *kv.Meta
	dict  ids.Dictionary
	lists topology.Session

	train *nodeSet // nodes that the part trains
	inner *nodeSet // nodes whose lists the part has
	nodes *nodeSet // all nodes
	// level and next are the nodes of a hop and of the next, while nodes are found. reached are the
	// nodes of all parts so far.
	level, next, reached *nodeSet

	names []string
	// deleted nodes have no labels that count; nil if there are none.
	deleted *roaring.Bitmap
}

// sourceFormat is the format of its source in the catalog of a part.
const sourceFormat = kv.PartFormat

var _ source.Source = (*part)(nil)

// Info describes the part. It lists the classes and types of the whole store, so that their numbers
// are the same in all parts.
func (p *part) Info() *source.Info {
	m := p.meta
	info := &source.Info{Format: sourceFormat, Paths: []string{p.files.Store.Dir()},
		TextIDs: m.IDs.Kind.Text(), Typed: len(m.EdgeTypes) > 0, EdgeTypes: m.EdgeTypes,
		Weighted: m.Weighted, Timed: m.Timestamped, Times: m.Times, Splits: []string{"train"},
		IDsAbout: p.nodes.count()}
	for _, t := range m.NodeTypes {
		info.NodeTypes = append(info.NodeTypes, t.Name)
	}
	for _, f := range m.Features {
		info.Features = append(info.Features, source.FeatureInfo{Name: f.Name, Dim: f.Dim,
			DType: f.DType, Rows: info.IDsAbout, Columns: m.FeatureNames[f.Name]})
		if f.DType == rowfile.Sparse {
			info.Features[len(info.Features)-1].Words = f.RowBytes / 4
		}
	}
	if m.Labels != nil {
		info.Labels = &source.LabelInfo{Kind: m.Labels.Kind, Text: true, Classes: m.Labels.Classes}
	}
	return info
}

// chunk returns the ids of the user for nodes.
func (p *part) chunk(ctx context.Context, nodes []layout.NodeID) (c source.IDChunk, err error) {
	c.Where = source.Where{File: p.files.Store.Dir(), Unit: "node"}
	if len(nodes) > 0 {
		c.First = int64(nodes[0])
	}
	if p.meta.IDs.Kind == kv.IDsDense {
		c.Ints = make([]uint64, len(nodes))
		for i, v := range nodes {
			c.Ints[i] = uint64(v)
		}
		return c, nil
	}
	if p.names, err = p.dict.External(ctx, nodes, p.names[:0]); err != nil {
		return c, fmt.Errorf("partition: ids: %w", err)
	}
	for _, name := range p.names {
		if p.meta.IDs.Kind.Text() {
			c.Text = append(c.Text, []byte(name))
			continue
		}
		n, err := strconv.ParseUint(name, 10, 64)
		if err != nil {
			return c, fmt.Errorf("partition: ids: %w", err)
		}
		c.Ints = append(c.Ints, n)
	}
	return c, nil
}

// Nodes streams the ids of all nodes.
func (p *part) Nodes(ctx context.Context, fn func(*source.IDChunk) error) error {
	for nodes := range p.nodes.chunks(chunkNodes) {
		c, err := p.chunk(ctx, nodes)
		if err == nil {
			err = fn(&c)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Edges streams the lists of the inner nodes.
func (p *part) Edges(ctx context.Context, fn func(*source.EdgeChunk) error) error {
	var ends []layout.NodeID
	return eachList(ctx, p.lists, p.inner, func(nodes []layout.NodeID, l *listfile.Lists) error {
		if len(l.Nbrs) == 0 {
			return nil
		}
		ends = append(append(ends[:0], nodes...), l.Nbrs...)
		slices.Sort(ends)
		ends = slices.Compact(ends)
		c, err := p.chunk(ctx, ends)
		if err != nil {
			return err
		}
		return fn(edgesOf(nodes, l, ends, &c))
	})
}

// edgesOf returns the edges of lists, with both ends named by the ids of the user.
func edgesOf(nodes []layout.NodeID, l *listfile.Lists, ends []layout.NodeID,
	named *source.IDChunk) *source.EdgeChunk {
	e := &source.EdgeChunk{Where: named.Where, Weight: l.Weights, Time: l.Times}
	add := func(ints *[]uint64, texts *[][]byte, v layout.NodeID) {
		at, _ := slices.BinarySearch(ends, v)
		if named.Text != nil {
			*texts = append(*texts, named.Text[at])
		} else {
			*ints = append(*ints, named.Ints[at])
		}
	}
	for i, v := range nodes {
		for _, u := range l.Nbrs[l.Off[i]:l.Off[i+1]] {
			add(&e.SrcInt, &e.SrcText, u)
			add(&e.DstInt, &e.DstText, v)
		}
	}
	for _, t := range l.Types {
		e.TypeInt = append(e.TypeInt, uint32(t))
	}
	return e
}

// Features streams the rows of all nodes.
func (p *part) Features(ctx context.Context, name string,
	fn func(*source.RowChunk) error) error {
	at := slices.IndexFunc(p.meta.Features, func(m kv.RowsMeta) bool { return m.Name == name })
	rows, err := openFeatures(ctx, p.files, p.meta.Features[at])
	if err != nil {
		return err
	}
	dim := rows.Meta().Dim
	for nodes := range p.nodes.chunks(max(1, entriesMost/max(1, dim))) {
		c, err := p.chunk(ctx, nodes)
		if err != nil {
			return err
		}
		r := &source.RowChunk{IDs: &c, Rows: make([]float32, len(nodes)*dim), Where: c.Where}
		if err := rows.Gather(ctx, nodes, nil, r.Rows); err != nil {
			return fmt.Errorf("partition: features: %w", err)
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// openFeatures opens rows, of which sparse ones stay so.
func openFeatures(ctx context.Context, files *openfiles.Set, m kv.RowsMeta) (*rowfile.Reader,
	error) {
	rows, err := files.Rows(ctx, m)
	if err == nil && m.DType == rowfile.Sparse {
		rows.KeepSparse()
	}
	return rows, err
}

// Labels streams the labels of all nodes that have one.
func (p *part) Labels(ctx context.Context, fn func(*source.LabelChunk) error) error {
	l := &labelReader{meta: p.meta.Labels}
	var err error
	if l.rows, err = p.files.Rows(ctx, l.meta.Rows); err != nil {
		return err
	}
	if l.meta.Kind == "multi" {
		set, err := p.files.Store.Catalog().Set(ctx, "labeled")
		if err != nil {
			return err
		}
		l.labeled = set.Contains
	}
	for nodes := range p.nodes.chunks(chunkNodes) {
		if p.deleted != nil {
			nodes = slices.DeleteFunc(slices.Clone(nodes), func(v layout.NodeID) bool {
				return p.deleted.Contains(uint32(v))
			})
		}
		with, c, err := l.read(ctx, nodes)
		if err != nil {
			return fmt.Errorf("partition: labels: %w", err)
		}
		named, err := p.chunk(ctx, with)
		if err != nil {
			return err
		}
		c.IDs, c.Where = &named, named.Where
		if err := fn(c); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// labelReader reads labels as they are stored in the store.
type labelReader struct {
	meta    *kv.LabelsMeta
	rows    *rowfile.Reader
	labeled func(v uint32) bool // whether a node has multi-labels
}

// read reads the labels of nodes. with has a node for each row of the chunk.
func (l *labelReader) read(ctx context.Context, nodes []layout.NodeID) (with []layout.NodeID,
	c *source.LabelChunk, err error) {
	width := l.meta.Rows.RowBytes
	raw := make([]byte, width*len(nodes))
	if err := l.rows.GatherRaw(ctx, nodes, nil, raw); err != nil {
		return nil, nil, err
	}
	c = &source.LabelChunk{}
	for i, v := range nodes {
		row := raw[i*width : (i+1)*width]
		switch l.meta.Kind {
		case "target":
			x := math.Float32frombits(binary.LittleEndian.Uint32(row))
			if x == x {
				with, c.Target = append(with, v), append(c.Target, x)
			}
		case "multi":
			with = l.classesOf(c, with, v, row)
		default:
			if class := int32(binary.LittleEndian.Uint32(row)); class >= 0 {
				with, c.Text = append(with, v), append(c.Text, []byte(l.meta.Classes[class]))
			}
		}
	}
	return with, c, nil
}

// classesOf adds a row for each class that a node with multi-labels has, and for each that is
// unknown. If there is none, it adds a row that says so.
func (l *labelReader) classesOf(c *source.LabelChunk, with []layout.NodeID, v layout.NodeID,
	row []byte) []layout.NodeID {
	if !l.labeled(uint32(v)) {
		return with
	}
	knownAt, before := l.meta.KnownAt(), len(with)
	for class := range l.meta.Classes {
		at, bit := class/8, byte(1)<<(class%8)
		unknown := knownAt > 0 && row[knownAt+at]&bit == 0
		if unknown || row[at]&bit != 0 {
			with, c.Class = append(with, v), append(c.Class, int64(class))
			c.Unknown = append(c.Unknown, unknown)
		}
	}
	if len(with) == before {
		with, c.Class = append(with, v), append(c.Class, source.NoClass)
		c.Unknown = append(c.Unknown, false)
	}
	return with
}

// Splits streams the training nodes of the part.
func (p *part) Splits(ctx context.Context, fn func(*source.SplitChunk) error) error {
	for nodes := range p.train.chunks(chunkNodes) {
		c, err := p.chunk(ctx, nodes)
		if err == nil {
			err = fn(&source.SplitChunk{Name: "train", IDs: c})
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Close does nothing, since the files are shared by all parts.
func (p *part) Close() error { return nil }
