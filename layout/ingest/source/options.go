package source

import (
	"io"
	"slices"
	"strings"

	"gdb/layout/ingest/table"
)

// Options say what is read, and how. The zero value of a field is its default.
type Options struct {
	Sources []string // directories or files
	Format  string   // npy, csv, snap, ogb, triples; "" detects

	// Explicit files, and columns of text files.
	Edges, Nodes, Features, Labels string
	Splits                         map[string]string // NAME=FILE
	// Relations are files of edges besides Edges, each of one type.
	Relations []Relation
	// SrcType and DstType are the types of the ends of edges, and NodesType that of the ids in
	// Nodes,
	// Labels, Features and Splits: ids are numbered by type.
	SrcType, DstType, NodesType string
	// SameIDs says that both ends of edges are of one kind, though their columns look like two.
	SameIDs bool

	SrcCol, DstCol, RelCol       string
	IDCol, LabelCol, FeatureCols string
	WeightCol, TimeCol, SplitCol string
	Categorical                  string // columns of categories: features too
	Fill                         string // of gaps in features: see table.ParseFill
	NA                           string // words for missing, with commas between
	LabelSep                     string // between the labels of a node
	MultiLabel                   bool   // a node may have several labels, each in a row
	Delim                        string
	Comment                      string // begins lines to pass over; "none": none do; "": guessed
	Header                       string // auto, yes, no

	AllowNaN bool
	Memory   int64 // of the process, bytes; 0: no bound
	SkipBad  int64 // bad lines tolerated

	// Notes gets one line per note, skipped line or guess; nil for none.
	Notes io.Writer
}

// noColumn is the value of a flag for a column that says that none has its role.
const noColumn = "none"

// named are the columns that flags name, and the ends of ranges.
func (o *Options) named() []string {
	names := []string{o.SrcCol, o.DstCol, o.RelCol, o.IDCol, o.LabelCol, o.WeightCol, o.TimeCol,
		o.SplitCol}
	for _, part := range slices.Concat(table.ListOf(o.FeatureCols), table.ListOf(o.Categorical)) {
		lo, hi, _ := strings.Cut(part, ":")
		names = append(names, lo, hi)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return name == "" || name == noColumn
	})
}
