package kv

import (
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// NodeID is the internal id of a node: a number from 0 to N-1, in the order of partitions.
type NodeID uint32

// FormatVersion is the version of the store format that stores without tables of types have, and
// TypedVersion that of typed stores: see Meta.Typed. This code writes and reads both. Typed stores
// of version 2, which no released version wrote, had one list for all relations of a node.
const (
	FormatVersion = 1
	TypedVersion  = 3
)

// ManifestVersion is the largest version of Meta.Manifest that this code reads: that of stores that
// were appended to. Earlier versions refuse such a store, and do not read only a part of it.
const ManifestVersion = 1

// UUID names a store; every file of the store repeats it in its first block.
type UUID [16]byte

// String writes the UUID in lower-case hexadecimal.
func (u UUID) String() string { return hex.EncodeToString(u[:]) }

// MarshalText writes the UUID as String does.
func (u UUID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (u *UUID) UnmarshalText(b []byte) error {
	if len(b) != 2*len(u) {
		return fmt.Errorf("kv: UUID %q: want %d hexadecimal digits", b, 2*len(u))
	}
	if _, err := hex.Decode(u[:], b); err != nil {
		return fmt.Errorf("kv: UUID %q: %w", b, err)
	}
	return nil
}

// Meta holds all that the catalog knows of a store except its sets. It is loaded whole and takes
// O(files + partitions) bytes, whatever the size of the graph.
type Meta struct {
	Format    int
	UUID      UUID
	CreatedBy string // "gdb 0.1.0"
	Created   time.Time

	Nodes      uint64
	Edges      uint64   // as stored: with reverse edges, without what was dropped
	Undirected bool     // reverse edges were added at ingest
	Directions []string // "in", and "out" when out-lists are kept
	BlockBytes int
	// Coded says that neighbor lists are coded: their files have layout 2 or above.
	Coded bool `json:",omitempty"`

	EdgeTypes   []string // names by type number; empty if edges have no type
	Weighted    bool     // edges carry a float32 weight
	Timestamped bool     // edges carry an int64 timestamp
	// Times says how the source wrote the times of edges. Times that it wrote as dates are kept as
	// seconds since 1970.
	Times TimeForm `json:",omitempty"`

	// NodeTypes lists the node types whose names external ids begin with, as in "user:17"; empty if
	// ids have none. In a typed store each is a range of node ids, one after the other.
	NodeTypes []NodeTypeMeta `json:",omitempty"`
	// Relations says, for each of EdgeTypes of a typed store, which types of nodes its edges join.
	Relations []RelationMeta `json:",omitempty"`
	// EdgeTables are the tables of edges, by their relations.
	EdgeTables []EdgeTable `json:",omitempty"`

	IDs      IDsMeta
	Features []RowsMeta // by name; the first is the default
	// FeatureNames holds the source's names of the columns of Features, by RowsMeta.Name; it is
	// empty for a source without names. FeatureColumns reads it.
	FeatureNames map[string][]ColumnMeta `json:",omitempty"`
	Labels       *LabelsMeta
	Splits       []SplitMeta
	SplitColumn  int // the default column K of train@K, -1 if splits have no columns
	// EdgeSplits lists the splits of the edges. Each split is a file of edges, and the neighbor
	// lists hold only the edges of train.
	EdgeSplits []EdgeSplitMeta

	// Partitioner says how nodes were dealt to Partitions, or "none".
	Partitioner string
	Partitions  []Partition
	// EdgeCut is the share of the entries of in-lists whose neighbor is in another partition; nil
	// if it was not counted.
	EdgeCut *float64 `json:",omitempty"`

	Stats  GraphStats
	Source SourceMeta
	// Manifest is the version of the rules by which Files make up the graph; 0: each file is
	// complete and of level 0. In version 1 they are the base, to which Levels add.
	Manifest int        `json:",omitempty"`
	Files    []FileMeta // every data file, in path order

	// Snapshot is the number of the last commit or compaction; 0 for none. Base is the folder of
	// the files that all levels add to, a store; "" where these are in the store's own folder.
	Snapshot uint64 `json:",omitempty"`
	Base     string `json:",omitempty"`
	// Committed is when that commit or compaction was made. Rewrites is the snapshot that it wrote
	// anew, if it was a compaction: both have the same content.
	Committed time.Time `json:",omitzero"`
	Rewrites  uint64    `json:",omitempty"`
	// Numbered is the last snapshot that added or deleted nodes of a store that it wrote anew, a
	// typed one or one whose edges are in splits; 0 for none. Moved is the last that deleted some:
	// those behind them have other places, in their types, since.
	Numbered uint64 `json:",omitempty"`
	Moved    uint64 `json:",omitempty"`
	// Levels are what commits added, the oldest first. Nodes, Edges, Splits, the counts of Labels,
	// and Stats.SelfLoops and TypeCounts are of all levels; other Stats only count the base.
	Levels  []LevelMeta `json:",omitempty"`
	Deleted string      `json:",omitempty"` // the set of nodes without ids; "" for none
	// Below counts, in a level, the nodes before it. These come first, without ids and rows.
	Below uint64 `json:",omitempty"`
}

// TimeForm says how the source wrote the times of edges.
type TimeForm string

// The values of TimeForm.
const (
	TimeNumber   TimeForm = ""         // numbers, kept as they were
	TimeDate     TimeForm = "date"     // days: 2024-05-31
	TimeDatetime TimeForm = "datetime" // days with a time of day
)

// NoTime is the time of edges in a typed store whose relation has no times, where others have them:
// such edges are there before all others.
const NoTime = math.MinInt64

// NodeTypeMeta describes one type of nodes.
type NodeTypeMeta struct {
	Name  string
	Nodes uint64
	// First is the first node of the type in a typed store: it has the nodes First to
	// First+Nodes-1.
	First uint64 `json:",omitempty"`
	// Columns are the columns of the type's table: node First+i has row i.
	Columns []TableColumn `json:",omitempty"`
	// Roles says what columns were read as, by name, that are not only values: label, split, or an
	// end of an edge.
	Roles map[string]string `json:",omitempty"`
	// Features holds the source's names of the columns of the type's features.
	Features []ColumnMeta `json:",omitempty"`
	// Encoding says how rows of the type's features are made of its columns; nil if it has none, or
	// if the store was ingested before that was recorded.
	Encoding *FeatureEncoding `json:",omitempty"`
	// Keys says how the ids of the type are kept where they are integers; nil where the
	// dictionary has them.
	Keys *KeysMeta `json:",omitempty"`
	// KeyName is the name of the column of ids in the type's table, if it has one that is not "id".
	KeyName string `json:",omitempty"`
}

// IsID reports whether a name means the ids of the type: "id", or what the source called them,
// unless a column of values is called so.
func (t *NodeTypeMeta) IsID(name string) bool {
	return (name == "id" || name == t.KeyName && name != "") &&
		!slices.ContainsFunc(t.Columns, func(c TableColumn) bool { return c.Name == name })
}

// KeysMeta says how the ids of a type that are integers below 2^63 are kept.
type KeysMeta struct {
	// Base is the id of the first node where ids count up by one: node First+i has the id Base+i,
	// and there are no columns.
	Base uint64
	// Rows is the column of the ids of all nodes in order.
	Rows *TableColumn `json:",omitempty"`
	// Sorted is the column of the ids in ascending order, and Places that of the rows that have
	// them, where the ids of Rows do not ascend.
	Sorted *TableColumn `json:",omitempty"`
	Places *TableColumn `json:",omitempty"`
}

// RelationMeta says which types of nodes the edges of a type join: numbers of NodeTypes.
type RelationMeta struct {
	Src, Dst int
}

// Typed reports whether each type of nodes is a range of node ids, and each type of edges joins
// nodes of two types.
func (m *Meta) Typed() bool { return m.Format == TypedVersion }

// TypeOf returns the number of the type of a node of a typed store: the last type that begins at it
// or before it, since types without nodes begin where the next one does. It takes O(log types).
func (m *Meta) TypeOf(node NodeID) int {
	return sort.Search(len(m.NodeTypes), func(i int) bool {
		return m.NodeTypes[i].First > uint64(node)
	}) - 1
}

// IDsMeta says how external ids are kept.
type IDsMeta struct {
	Kind IDKind
	// HashSeed seeds the hash of the external-to-internal file.
	HashSeed uint64
}

// IDKind names a way to keep external ids.
type IDKind string

// The values of IDKind.
const (
	// IDsDense says that the external id is the node id; there is no dictionary.
	IDsDense IDKind = "dense"
	// IDsInteger says that ids are integers, kept in the dictionary as canonical decimal strings.
	IDsInteger IDKind = "integer"
	// IDsString says that ids are any strings.
	IDsString IDKind = "string"
	// IDsTyped says that some types have integers as ids, as NodeTypeMeta.Keys says. The other
	// nodes are in the dictionary, numbered as if there were no others.
	IDsTyped IDKind = "typed"
)

// Text reports whether ids are shown as text that is no number.
func (k IDKind) Text() bool { return k == IDsString || k == IDsTyped }

// InDictionary describes the nodes whose ids are in the dictionary, as a store of its own; nil if
// there is no dictionary.
func (m *Meta) InDictionary() *Meta {
	switch m.IDs.Kind {
	case IDsDense:
		return nil
	case IDsInteger, IDsString:
		if m.Below > 0 {
			part := *m
			part.Nodes -= min(m.Below, m.Nodes)
			return &part
		}
	case IDsTyped:
		part := *m
		part.Nodes, part.IDs.Kind = 0, IDsString
		for _, t := range m.NodeTypes {
			if t.Keys == nil {
				part.Nodes += t.Nodes
			}
		}
		if part.Nodes == 0 {
			return nil
		}
		return &part
	}
	return m
}

// RowsMeta describes a file of rows of a fixed width, one for each node.
type RowsMeta struct {
	Name      string // "features" or the name of the source file's stem
	Path      string // "features/NAME.rows"
	DType     string // f32, f16, bf16, sparse, i32, u8
	Dim       int    // elements in a row
	RowBytes  int
	PageBytes int // unit of layout: a whole number of rows, a multiple of 4 KiB
	SumBytes  int // unit of checksum: a power of two of 512..4096, divides PageBytes
	// Sections are the rows of each type of nodes of a typed store, whose rows have a width of
	// their own: Dim and RowBytes above tell of the widest then. It is empty where all rows have
	// the same width.
	Sections []RowsSection `json:",omitempty"`
}

// RowsSection is the rows of one type of nodes. Dim may be 0: its nodes have no values.
type RowsSection struct {
	First    uint64 // the first node
	Dim      int
	RowBytes int
}

// Equal reports whether two descriptions are the same.
func (r *RowsMeta) Equal(other *RowsMeta) bool { return reflect.DeepEqual(r, other) }

// ColumnMeta names one column of features, or the adjacent columns that were one column of lists in
// the source.
type ColumnMeta struct {
	Name string
	Dim  int `json:",omitempty"` // the length of the source's lists; 0 for plain numbers
}

// TableColumn describes a column of a table of nodes or edges of a type. Vectors of a fixed width
// are not columns but rows: see RowsMeta.
type TableColumn struct {
	Name string
	Type string // int64, float64, bool, string, date, timestamp, sparse
	Dim  int    `json:",omitempty"` // of sparse vectors
	Path string // relative to the store
	Rows uint64
	// Nulls counts the rows without a value.
	Nulls uint64 `json:",omitempty"`
	// Shared says which value of the features a row has where a block does not store it.
	Shared FeatureAt `json:",omitzero"`
	// BlockRows is the number of rows of a block of the file.
	BlockRows int
	// Dictionary counts the strings that are stored once, and numbered in the rows.
	Dictionary uint64 `json:",omitempty"`
	// Ones says that all values of sparse vectors are 1.
	Ones bool `json:",omitempty"`
	// Least and Greatest are the bounds of the values as text, of strings the first 64 bytes; both
	// are empty if there are no values, or sparse vectors.
	Least, Greatest string `json:",omitempty"`
}

// FeatureAt is a value of each row of features, from the row of a node on.
type FeatureAt struct {
	Path   string // of the rows; empty for none
	First  uint64 // the node of the column's first row
	Column int
}

// LabelsMeta describes the labels.
type LabelsMeta struct {
	// Kind is "class" (one int32 for each node, -1 if unlabeled), "multi" (one row of bits for each
	// node) or "target" (one float32 for each node, NaN if unlabeled).
	Kind    string
	Rows    RowsMeta
	Classes []string // the user's names, by class number
	// ClassCounts counts the labeled nodes of each class.
	ClassCounts []uint64
	// OfType names the type of the nodes that may have labels, in a typed store.
	OfType string `json:",omitempty"`
	// Labeled counts the nodes that have a label. For "multi" the set "labeled" holds them.
	Labeled uint64
	// Unknown counts, for "multi", the labels of labeled nodes of which the source does not say
	// whether the node has them. If it is not 0, a row has a bit for each class that says whether
	// the node has it, and then as many bytes with a bit for each class that says whether this is
	// known.
	Unknown uint64 `json:",omitempty"`
}

// KnownAt returns the offset in a row of multi-labels at which the bits begin that say which labels
// are known; 0 if all are known.
func (l *LabelsMeta) KnownAt() int {
	if l.Unknown == 0 {
		return 0
	}
	return l.Rows.RowBytes / 2
}

// SplitMeta names a stored set of nodes: train, val, test, train@0, ….
type SplitMeta struct {
	Name  string
	Count uint64
	// Set is the name of the stored set where a commit replaced members: earlier snapshots have the
	// set of another name. "" for Name.
	Set string `json:",omitempty"`
}

// EdgeSplitMeta describes a split of the edges: train, val or test.
type EdgeSplitMeta struct {
	Name  string
	Count uint64
	// UnseenNodes and UnseenTypes count the nodes and the edge types of the split that occur in no
	// edge of train.
	UnseenNodes uint64 `json:",omitempty"`
	UnseenTypes uint64 `json:",omitempty"`
	// Reversed counts the edges of the split whose reverse, of the same type, is in train.
	Reversed uint64 `json:",omitempty"`
}

// Partition is a contiguous range of node ids.
type Partition struct {
	First NodeID
	Nodes uint64
	Edges uint64 // in-edges of its nodes
}

// PartBounds returns where partitions begin and end: partition p has the nodes from number p of the
// bounds up to, but without, number p+1. It returns nil for a store of one partition. A partition
// may be empty.
func (m *Meta) PartBounds() []uint64 {
	if len(m.Partitions) < 2 {
		return nil
	}
	bounds := make([]uint64, len(m.Partitions)+1)
	for i, p := range m.Partitions {
		bounds[i+1] = max(bounds[i], uint64(p.First)+p.Nodes)
	}
	bounds[len(m.Partitions)] = m.Nodes
	return bounds
}

// GraphStats holds statistics that ingest counts. Hist[0] counts nodes of degree 0, and Hist[i]
// nodes of a degree in [2^(i-1), 2^i).
type GraphStats struct {
	InHist, OutHist   []uint64
	InMax, OutMax     uint64
	SelfLoops         uint64 // self-loops that were kept
	DroppedSelfLoops  uint64
	DroppedDuplicates uint64
	EdgesRead         uint64 // the rows of the source
	SkippedBadLines   uint64
	TypeCounts        []uint64 // edges of each type
	// SampledPairs counts pairs of nodes that an edge joins, and ReversedPairs those of them that
	// edges join both ways. SampledEnds counts nodes that have an edge, and SharedEnds those of
	// them that are both a source and a destination. All are counted, or a sample of them in a
	// large graph. They are 0 where reverse edges were added.
	SampledPairs, ReversedPairs uint64 `json:",omitempty"`
	SampledEnds, SharedEnds     uint64 `json:",omitempty"`
	// CountFeatures names the features whose values are counts, for example of words: whole numbers
	// from 0 on, most of them 0, and not only 0 and 1.
	CountFeatures []string `json:",omitempty"`
}

// PartFormat is the Format in the SourceMeta of a store that was cut from another store. The
// outermost nodes of such a store have no lists.
const PartFormat = "partition"

// ReversedUsual is the share of reversed edges from which on the edges of a graph are taken to go
// both ways.
const ReversedUsual = 0.9

// ReversedShare returns the share of edges whose reverse is in the store too, estimated from a
// sample. The share is not known where reverse edges were added, for a store that was cut from
// another, and where edges have types, since the reverse may have another type.
func (m *Meta) ReversedShare() (share float64, known bool) {
	s := m.Stats
	if s.SampledPairs == 0 || len(m.EdgeTypes) > 1 || m.Typed() || m.Source.Format == PartFormat {
		return 0, false
	}
	return float64(s.ReversedPairs) / float64(s.SampledPairs), true
}

// SourceMeta says what a store was made from.
type SourceMeta struct {
	Format string
	Paths  []string
	Args   []string // the effective ingest flags
}

// FileMeta describes one data file of the store.
type FileMeta struct {
	Path string // relative to the store, with slashes
	Kind string
	Size int64
	// Checksum is the CRC32C of the whole file.
	Checksum uint32
	// Level orders files that add to the files of lower levels; files that ingest wrote have level
	// 0.
	Level int `json:",omitempty"`
}

// SplitEdges returns the number of edges of these splits of the edges, or of all if none is named.
func (m *Meta) SplitEdges(names ...string) (n uint64) {
	for _, s := range m.EdgeSplits {
		if len(names) == 0 || slices.Contains(names, s.Name) {
			n += s.Count
		}
	}
	return n
}

// File returns the record of the data file at a path; false if the store lists no such file.
func (m *Meta) File(path string) (FileMeta, bool) {
	i := slices.IndexFunc(m.Files, func(f FileMeta) bool { return f.Path == path })
	if i < 0 {
		return FileMeta{}, false
	}
	return m.Files[i], true
}

// Bytes returns what all files of the store take on disk.
func (m *Meta) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// CheckSize returns what is wrong with the length of a data file, or "" if the length is the
// recorded one or the store lists no such file. Code that opens a file asks before it reads
// anything: a file may claim to be longer than any disk and yet take no room on it.
func (m *Meta) CheckSize(path string, bytes int64) string {
	if f, listed := m.File(path); listed && f.Size != bytes {
		return fmt.Sprintf("file is %d bytes long, want %d", bytes, f.Size)
	}
	return ""
}

// SplitName returns the name of the stored set behind "train", "val" or "test". With a column K it
// is NAME@K. Without one it is NAME itself, or the set of the store's default column if the store
// has only columns.
func (m *Meta) SplitName(base, column string) string {
	if column != "" {
		return base + "@" + column
	}
	for _, s := range m.Splits {
		if s.Name == base {
			return base
		}
	}
	if m.SplitColumn >= 0 {
		return base + "@" + strconv.Itoa(m.SplitColumn)
	}
	return base
}

// Columns knows the names of the columns of a file of features.
type Columns struct {
	named []ColumnMeta
	dim   int
}

// FeatureColumns returns the columns of one of the store's features.
func (m *Meta) FeatureColumns(features RowsMeta) Columns {
	return Columns{named: m.FeatureNames[features.Name], dim: features.Dim}
}

// FeatureColumns returns the columns of the features of a type of a typed store.
func (t *NodeTypeMeta) FeatureColumns() Columns { return Columns{named: t.Features} }

// Named reports whether the source had names for the columns.
func (c Columns) Named() bool { return len(c.named) > 0 }

// Names returns the names of all columns, in order: the source's name, NAME[k] for number k of a
// list, or fI for column I of a source without names.
func (c Columns) Names() []string {
	names := make([]string, 0, c.dim)
	for _, n := range c.named {
		if n.Dim == 0 {
			names = append(names, n.Name)
		}
		for k := range n.Dim {
			names = append(names, fmt.Sprintf("%s[%d]", n.Name, k))
		}
	}
	for i := len(names); i < c.dim; i++ {
		names = append(names, "f"+strconv.Itoa(i))
	}
	return names
}

// Index finds a column by its name. fI finds column I too, unless the source gives that name to
// another column.
func (c Columns) Index(name string) (i int, found bool) {
	if at := slices.Index(c.Names(), name); at >= 0 {
		return at, true
	}
	digits, numbered := strings.CutPrefix(name, "f")
	i, err := strconv.Atoi(digits)
	if !numbered || err != nil || i < 0 || i >= c.dim || strconv.Itoa(i) != digits {
		return 0, false
	}
	return i, true
}

// Sources returns the names of the columns of the source, where a list is one column: NAME, or
// NAME[N] for a list of N numbers.
func (c Columns) Sources() (names []string) {
	for _, n := range c.named {
		if n.Dim > 0 {
			names = append(names, fmt.Sprintf("%s[%d]", n.Name, n.Dim))
			continue
		}
		names = append(names, n.Name)
	}
	return names
}

// checkFeatureNames fails unless all names belong to features of the store and all columns of these
// features have a name.
func (m *Meta) checkFeatureNames() error {
	for name, named := range m.FeatureNames {
		at := slices.IndexFunc(m.Features, func(r RowsMeta) bool { return r.Name == name })
		if at < 0 {
			return fmt.Errorf("names of columns of features %q, which are not there", name)
		}
		left := m.Features[at].Dim
		for _, n := range named {
			if n.Dim < 0 || max(n.Dim, 1) > left {
				return fmt.Errorf("features %q have %d columns, and more names",
					name, m.Features[at].Dim)
			}
			left -= max(n.Dim, 1)
		}
		if left > 0 {
			return fmt.Errorf("features %q: %d of %d columns have no name", name, left,
				m.Features[at].Dim)
		}
	}
	return nil
}
