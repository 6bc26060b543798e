package source

import "io"

// Options say what is read, and how. The zero value of a field is its default.
type Options struct {
	Sources []string // directories or files
	Format  string   // npy, csv, snap, ogb, triples; "" detects

	// Explicit files, and columns of text files.
	Edges, Nodes, Features, Labels string
	Splits                         map[string]string // NAME=FILE
	SrcCol, DstCol, RelCol         string
	IDCol, LabelCol, FeatureCols   string
	WeightCol, TimeCol             string
	Delim                          string
	Header                         string // auto, yes, no

	AllowNaN bool
	SkipBad  int64 // bad lines tolerated

	// Notes gets one line per note, skipped line or guess; nil for none.
	Notes io.Writer
}
