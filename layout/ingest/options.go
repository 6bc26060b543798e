package ingest

import "io"

// Options are the effective flags of an ingest. The zero value of a field is its default.
type Options struct {
	Sources []string // directories or files
	Out     string   // the store's directory

	Format         string // npy, csv, snap, ogb, triples; "" detects
	Undirected     bool
	Dedup          bool
	KeepDuplicates bool
	KeepSelfLoops  bool
	Both           bool // also write out-lists

	// Explicit files, and columns of text files.
	Edges, Nodes, Features, Labels string
	Splits                         map[string]string // NAME=FILE
	SrcCol, DstCol, RelCol         string
	IDCol, LabelCol, FeatureCols   string
	WeightCol, TimeCol             string
	Delim                          string
	Header                         string // auto, yes, no

	SplitColumn  int
	Partitions   int
	Partitioner  string // none, random, range
	FeatureDType string // f32, f16, bf16; "" is f32
	Normalize    string // none, row, zscore
	BlockBytes   int    // default 4096
	AllowNaN     bool
	SkipBad      int64 // bad lines tolerated

	Memory  int64  // bound of the process, bytes
	Threads int    // default: cores
	Seed    uint64 // of random partitions
	Resume  bool
	DryRun  bool
	Version string // of gdb, for the catalog

	// Progress gets phase, work done and in all (bytes or rows, by unit); nil for none.
	Progress func(phase string, done, total int64, unit string)
	// Notes gets one line per note, skipped line or guess; nil for none.
	Notes io.Writer
}
