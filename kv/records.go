package kv

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// NodeID is an internal id: dense, 0..N-1, in partition order.
type NodeID uint32

// FormatVersion is the version of the store format that this code writes and reads.
const FormatVersion = 1

// ManifestVersion is the version of Meta.Manifest that this code reads. Who adds levels raises it,
// so
// that versions before refuse the store and do not read a part of it.
const ManifestVersion = 0

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

// Meta is all that the catalog knows of a store except its sets: loaded whole, O(files +
// partitions) bytes, whatever the size of the graph.
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
	// Coded says that neighbor lists are coded: their files have the layout 2 or above.
	Coded bool `json:",omitempty"`

	EdgeTypes   []string // names by type number; empty if edges have no type
	Weighted    bool     // edges carry a float32 weight
	Timestamped bool     // edges carry an int64 timestamp
	// Times says that the source wrote the times of edges as dates: they are seconds since 1970.
	Times TimeForm `json:",omitempty"`

	// NodeTypes are the types that ids begin with, "user:17"; empty if they have none.
	NodeTypes []NodeTypeMeta `json:",omitempty"`

	IDs      IDsMeta
	Features []RowsMeta // by name; the first is the default
	// FeatureNames are the source's names of the columns of Features, by RowsMeta.Name; a source
	// without names has none. FeatureColumns reads them.
	FeatureNames map[string][]ColumnMeta `json:",omitempty"`
	Labels       *LabelsMeta
	Splits       []SplitMeta
	SplitColumn  int // the default column K of train@K, -1 if splits have no columns
	// EdgeSplits are the splits of the edges: each is a file of edges, and the lists have those of
	// train only.
	EdgeSplits []EdgeSplitMeta

	Partitioner string
	Partitions  []Partition

	Stats  GraphStats
	Source SourceMeta
	// Manifest is the version of how Files make up the graph; 0: each is whole, of level 0.
	Manifest int        `json:",omitempty"`
	Files    []FileMeta // every data file, in path order
}

// TimeForm is how the source wrote the times of edges.
type TimeForm string

// The forms of times.
const (
	TimeNumber   TimeForm = ""         // numbers, kept as they were
	TimeDate     TimeForm = "date"     // days: 2024-05-31
	TimeDatetime TimeForm = "datetime" // days with a time of day
)

// NodeTypeMeta is a type of nodes.
type NodeTypeMeta struct {
	Name  string
	Nodes uint64
}

// IDsMeta tells how external ids are kept.
type IDsMeta struct {
	Kind IDKind
	// HashSeed seeds the hash of the external-to-internal file.
	HashSeed uint64
}

// IDKind is a way to keep external ids.
type IDKind string

// The kinds of external ids.
const (
	// IDsDense: the external id is the node id; there is no dictionary.
	IDsDense IDKind = "dense"
	// IDsInteger: integers, kept in the dictionary as canonical decimal strings.
	IDsInteger IDKind = "integer"
	// IDsString: any strings.
	IDsString IDKind = "string"
)

// RowsMeta describes a file of fixed-width rows, one per node.
type RowsMeta struct {
	Name      string // "features" or the name of the source file's stem
	Path      string // "features/NAME.rows"
	DType     string // f32, f16, bf16, i32, u8
	Dim       int    // elements in a row
	RowBytes  int
	PageBytes int // unit of layout: a whole number of rows, a multiple of 4 KiB
	SumBytes  int // unit of checksum: a power of two of 512..4096, divides PageBytes
}

// ColumnMeta names one column of features, or several next to each other that were a column of
// lists in the source.
type ColumnMeta struct {
	Name string
	Dim  int `json:",omitempty"` // numbers of a list; 0 where the column was none
}

// LabelsMeta describes the labels.
type LabelsMeta struct {
	// Kind is "class" (one int32 a node, -1 unlabeled), "multi" (a bit row a node) or "target"
	// (one float32 a node, NaN unlabeled).
	Kind    string
	Rows    RowsMeta
	Classes []string // the user's names, by class number
	// ClassCounts counts the labeled nodes of each class.
	ClassCounts []uint64
	// Labeled counts nodes with a label; for "multi" the set "labeled" tells which.
	Labeled uint64
	// Unknown counts, for "multi", the labels of labeled nodes that may be or may not be. If it is
	// not 0, a row has a bit for each class that the node has, and then as many bytes with a bit
	// for each class that is known.
	Unknown uint64 `json:",omitempty"`
}

// KnownAt returns where in a row of multi-labels the bits begin that say which labels are known; 0
// if all are.
func (l *LabelsMeta) KnownAt() int {
	if l.Unknown == 0 {
		return 0
	}
	return l.Rows.RowBytes / 2
}

// SplitMeta is a stored set of nodes with a name: train, val, test, train@0, ….
type SplitMeta struct {
	Name  string
	Count uint64
}

// EdgeSplitMeta is a split of the edges: train, val or test.
type EdgeSplitMeta struct {
	Name  string
	Count uint64
	// UnseenNodes and UnseenTypes count the nodes and the edge types of the split that no edge of
	// train has.
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

// GraphStats are counted at ingest. Hist[0] counts degree 0, Hist[i] degrees of [2^(i-1), 2^i).
type GraphStats struct {
	InHist, OutHist   []uint64
	InMax, OutMax     uint64
	SelfLoops         uint64 // kept
	DroppedSelfLoops  uint64
	DroppedDuplicates uint64
	EdgesRead         uint64 // rows of the source
	SkippedBadLines   uint64
	TypeCounts        []uint64 // edges by type
	// SampledPairs are pairs of nodes with an edge, of which ReversedPairs have edges both ways,
	// and SampledEnds nodes with an edge, of which SharedEnds are sources and destinations: all, or
	// a sample of the many. 0 where reverse edges were added.
	SampledPairs, ReversedPairs uint64 `json:",omitempty"`
	SampledEnds, SharedEnds     uint64 `json:",omitempty"`
	// CountFeatures names the features that are counts, such as of words: whole numbers of 0 and
	// more, most of them 0, not only 0 and 1.
	CountFeatures []string `json:",omitempty"`
}

// PartFormat is the Format of the source of a store that was cut from another: its outermost nodes
// have no lists.
const PartFormat = "partition"

// ReversedUsual is the share of reversed edges from which on a graph counts as one whose edges go
// both ways.
const ReversedUsual = 0.9

// ReversedShare is the share of the edges whose reverse is in the store too, by a sample. It is not
// known where reverse edges were added, of a part, and where edges have types, since the reverse
// may have another.
func (m *Meta) ReversedShare() (share float64, known bool) {
	s := m.Stats
	if s.SampledPairs == 0 || len(m.EdgeTypes) > 1 || m.Source.Format == PartFormat {
		return 0, false
	}
	return float64(s.ReversedPairs) / float64(s.SampledPairs), true
}

// SourceMeta tells what a store was made of.
type SourceMeta struct {
	Format string
	Paths  []string
	Args   []string // the effective ingest flags
}

// FileMeta is one data file of the store.
type FileMeta struct {
	Path string // relative to the store, with slashes
	Kind string
	Size int64
	// Checksum is the CRC32C of the whole file.
	Checksum uint32
	// Level orders files that add to those of the levels below; 0 is what ingest wrote.
	Level int `json:",omitempty"`
}

// File is the record of a data file by its path; false if the store lists no such file.
func (m *Meta) File(path string) (FileMeta, bool) {
	i := slices.IndexFunc(m.Files, func(f FileMeta) bool { return f.Path == path })
	if i < 0 {
		return FileMeta{}, false
	}
	return m.Files[i], true
}

// CheckSize says what is wrong with the length of a data file, "" if that is the recorded one or
// the store lists no such file. Whoever opens a file asks before anything of it is read: a file
// may be longer than any disk and yet take no room on it.
func (m *Meta) CheckSize(path string, bytes int64) string {
	if f, listed := m.File(path); listed && f.Size != bytes {
		return fmt.Sprintf("file is %d bytes long, want %d", bytes, f.Size)
	}
	return ""
}

// RunMeta is one training run.
type RunMeta struct {
	Name    string
	Created time.Time
	Updated time.Time
	Status  string // running, done, interrupted, failed
	Model   string
	Epochs  int
	Best    float64 // best validation metric
	Test    float64
	Metric  string
	// Validated and Tested say that Best and Test were measured. Runs of before have neither, and 0
	// for what was not.
	Validated bool `json:",omitempty"`
	Tested    bool `json:",omitempty"`
}

// BestScore is the best validation metric, or nil where none was measured.
func (r *RunMeta) BestScore() *float64 {
	if r.Validated || r.Best != 0 {
		return &r.Best
	}
	return nil
}

// TestScore is the metric of the test, or nil where there was none.
func (r *RunMeta) TestScore() *float64 {
	if r.Tested || r.Test != 0 {
		return &r.Test
	}
	return nil
}

// SplitName is the stored set behind "train", "val" or "test" for a column K of splits: NAME@K, or
// NAME itself without a column, or the store's default column if there are only columns.
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
