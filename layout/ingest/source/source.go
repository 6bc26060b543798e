// Package source reads the files that a store is made of: arrays, archives, text and the layouts of
// known collections, as streams of edges, ids, features, labels and splits in source order.
package source

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/input"
)

// Source is an opened set of source files. Each method streams one kind of data in source order,
// in chunks that are valid only during the call; it can be called again from the start. All
// methods check what they read and fail with a input.Error that names file and row.
type Source interface {
	// Info tells what was found; it is filled by opening, from headers and a sample of the rows.
	Info() *Info
	// Edges streams the edges.
	Edges(ctx context.Context, fn func(*EdgeChunk) error) error
	// Nodes streams the ids of node tables, where there are any (text sources with a node file).
	Nodes(ctx context.Context, fn func(*IDChunk) error) error
	// Features streams the rows of the feature array or columns called name.
	Features(ctx context.Context, name string, fn func(*RowChunk) error) error
	// Labels streams the labels.
	Labels(ctx context.Context, fn func(*LabelChunk) error) error
	// Splits streams the members of every split.
	Splits(ctx context.Context, fn func(*SplitChunk) error) error
	Close() error
}

// Info describes a source.
type Info struct {
	Format   string   // npy, csv, snap, ogb, triples
	Paths    []string // the files that will be read
	Nodes    uint64   // number of nodes if the source says so (rows of features or labels), else 0
	Edges    uint64   // number of edges if known without reading all, else 0
	TextIDs  bool     // ids are text; false: integers
	RowIDs   bool     // ids are row numbers of arrays: 0..Nodes-1, never renamed (npy, ogb)
	Typed    bool     // edges have a relation or type
	Weighted bool
	Timed    bool
	// Times is how times are written.
	Times kv.TimeForm
	// EdgesAbout is a guess from the first lines of text files and their sizes; 0 is none.
	EdgesAbout uint64
	// IDsAbout is about how many ids stand in the tables of edges and nodes; 0 is not known.
	IDsAbout uint64
	// EdgeTypes are the names by type number where the source lists them; else nil, and
	// EdgeChunk.TypeText names them.
	EdgeTypes []string
	// NodeTypes are the types that ids begin with, with TypeSep between. Ranged says that the nodes
	// of a type follow each other, in this order of types, and that Relations says, for each of
	// EdgeTypes, which types its edges join.
	NodeTypes []string
	Ranged    bool
	// KeyNames are the columns of ids of the tables of NodeTypes, "" of one without.
	KeyNames  []string
	Relations []kv.RelationMeta
	Features  []FeatureInfo
	Labels    *LabelInfo
	Splits    []string // names: train, val, test, train@0, …
	// EdgeSplits are the names of the splits of the edges, in EdgeChunk.Split.
	EdgeSplits []string
	// Tables are the tables of nodes whose columns are stored, of a source whose types are ranges.
	Tables []TableInfo
	// EdgeTables are the tables of edges with columns that are stored: EdgeChunk.Columns.
	EdgeTables []TableInfo
	// Columns are the columns of the tables that are read, with what each is taken for.
	Columns []TableColumn
	Bytes   int64    // of all files, for progress
	Notes   []string // what the user should know: ignored files, guesses made
	// AddInverse is set where the source's own convention asks for reverse edges (OGB).
	AddInverse bool
}

// TableColumn is a column of a table.
type TableColumn struct {
	File string
	Name string // or number from 0, where there is no name
	Role string // "source", "label", "feature", …; "" where the column is not stored
}

// FeatureInfo describes one feature array.
type FeatureInfo struct {
	Name   string
	Dim    int
	DType  string // as in the source
	Sparse bool
	// Words is the number of words of a row, if rows come as package sparse has them: these words
	// stand in the place of values. Else it is 0.
	Words int
	Rows  uint64 // 0 if unknown
	// Dims are the widths of the rows of each type, of a source whose types are ranges; Dim is the
	// largest then.
	Dims []int
	// Columns name the numbers of a row; none where the source has no names. OfTypes names
	// them for each type, where Dims is set.
	Columns []kv.ColumnMeta
	OfTypes [][]kv.ColumnMeta
	// Encodings say how the rows of each type are made of columns, where Dims is set; nil for a
	// type without rows. Rows of a type whose encoding has a scale are scaled already.
	Encodings []*kv.FeatureEncoding
}

// Width is how many values, or words in their place, a row has.
func (f *FeatureInfo) Width() int {
	if f.Words > 0 {
		return f.Words
	}
	return f.Dim
}

// LabelInfo describes the labels.
type LabelInfo struct {
	Kind   string // class, multi, target
	OfType string // the type of the nodes that have them, of a source whose types are ranges
	// Text is set where classes are strings; else they are integers.
	Text bool
	// Classes are all names where the source lists them: a class that no label has is one too.
	Classes []string
}

// IDChunk is a run of external ids: Ints or Text, not both. Position(i) tells where id i stands.
type IDChunk struct {
	Ints []uint64
	Text [][]byte
	// Type is the number of the type of all ids, of a source whose types are ranges. Repeats says
	// that ids may come several times, as they do in edges.
	Type    int
	Repeats bool
	Where
}

// Len returns the number of ids.
func (c *IDChunk) Len() int { return max(len(c.Ints), len(c.Text)) }

// empty makes the chunk one of no ids in a file, whose lines are not consecutive.
func (c *IDChunk) empty(in *Where) {
	c.Ints, c.Text = c.Ints[:0], c.Text[:0]
	c.Where = Where{File: in.File, Unit: in.Unit, Lines: c.Lines[:0]}
}

// add appends id i of another chunk.
func (c *IDChunk) add(from *IDChunk, i int) {
	if from.Ints != nil {
		c.Ints = append(c.Ints, from.Ints[i])
	} else {
		c.Text = append(c.Text, from.Text[i])
	}
	c.Lines = append(c.Lines, from.Line(i))
}

// Where locates the rows of a chunk in its file.
type Where = input.Where

// EdgeTypesMost is the largest number of edge types: they are uint16.
const EdgeTypesMost = 1 << 16

// EdgeChunk is a run of edges. Ids are Ints (SrcInt, DstInt) or text; of a source whose types are
// ranges, an end may be text where the other is the number of a row: see UseKeys. The other slices
// are parallel, or nil where the source has no such thing.
type EdgeChunk struct {
	SrcInt, DstInt   []uint64
	SrcText, DstText [][]byte
	TypeInt          []uint32
	TypeText         [][]byte
	Weight           []float32
	Rounded          RoundedWeights
	Time             []int64
	// Columns are the stored columns of the table that the edges are from, as Info.EdgeTables lists
	// them; nil where there are none, and of reverse edges.
	Columns []columnfile.Values
	// Split is the split of all edges of the chunk, where the source splits edges (triples).
	Split string
	Where
}

// RoundedWeights are those weights of a chunk that float32 holds as another number than their file,
// beyond the rounding of fractions.
type RoundedWeights struct {
	Count uint64
	First string // the first, as "edges.csv line 3: 16777217 -> 16777216"
}

// add counts a weight that is written at a place, and kept as w.
func (r *RoundedWeights) add(where func() string, written []byte, w float32) {
	if r.Count++; r.Count == 1 {
		after := strconv.FormatFloat(float64(w), 'g', -1, 64)
		if math.Abs(float64(w)) >= 1 { // it is an integer
			after = strconv.FormatFloat(float64(w), 'f', 0, 64)
		}
		r.First = fmt.Sprintf("%s: %s -> %s", where(), written, after)
	}
}

// Len returns the number of edges.
func (c *EdgeChunk) Len() int { return max(len(c.SrcInt), len(c.SrcText)) }

// RowChunk is a run of feature rows: Rows holds dim values for each. IDs is nil where rows are node
// numbers First, First+1, ….
type RowChunk struct {
	IDs   *IDChunk
	First uint64
	Rows  []float32
	Type  int // of all nodes, where FeatureInfo.Dims says how wide their rows are
	Where
}

// Special values in LabelChunk.Class.
const (
	// Unlabeled is the class of a node without a label.
	Unlabeled = -1
	// Ignored is what the losses of PyTorch leave out: unlabeled too, wherever -1 is.
	Ignored = -100
	// NoClass says of multi-labels that the node is labeled, and is of none of the classes.
	NoClass = -2
)

// LabelChunk is a run of labels. IDs is nil where rows are node numbers First, First+1, ….
// For kind class, Class or Text holds one label a row (Unlabeled or empty: none). For multi, each
// row is one (node, label) pair in IDs and Class or Text, or NoClass; if Unknown is not nil, it
// says of which pairs nobody knows whether the node has the label. For target, Target holds one
// number a row, NaN for none.
type LabelChunk struct {
	IDs     *IDChunk
	First   uint64
	Class   []int64
	Text    [][]byte
	Target  []float32
	Unknown []bool
	Where
}

// SplitChunk is a run of members of the split Name.
type SplitChunk struct {
	Name string
	IDs  IDChunk
}
