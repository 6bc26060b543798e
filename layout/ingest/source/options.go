package source

import (
	"io"
	"reflect"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout/ingest/columnar"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"
)

// Options say what is read, and how. The zero value of a field is its default.
type Options struct {
	Sources []string // directories or files
	Format  string   // npy, csv, snap, ogb, triples; "" detects

	// Explicit files, and columns of text files.
	Edges, Nodes, Features, Labels string
	Splits                         map[string]string // NAME=FILE
	// NodeTables are the tables of nodes where several types have one; Nodes is "" then.
	NodeTables []NodeTable
	// ColumnTypes are types of columns that are stored, as TYPE.COLUMN=KIND with commas between:
	// of nodes, of a relation, or "edges" where nodes have no tables of types.
	ColumnTypes string
	// Schema is the file that NodeTables and Relations are from, where one was read.
	Schema string
	// Reverse adds to each relation of a typed source another one, the other way round.
	Reverse bool
	// Of is the store that tables are read for: its columns keep their types, and tables need not
	// have them. Those of the types and relations of a typed store need no table of nodes then. It
	// is nil for other sources.
	Of *kv.Meta `json:"-"`
	// Relations are files of edges besides Edges, each of one type.
	Relations []Relation
	// SrcType and DstType are the types of the ends of edges, and NodesType is the type of the ids
	// in Nodes, Labels, Features and Splits: ids are numbered by type.
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
	// NoEdges allows sources without edges: Nodes may be the only file.
	NoEdges bool
	// KeepSparse gives sparse features as rows of their entries, if these are at most half as
	// large as dense ones: see FeatureInfo.Words.
	KeepSparse bool
	Memory     int64 // of the process, bytes; 0: no bound
	SkipBad    int64 // bad lines tolerated

	// Notes gets one line per note, skipped line or guess; nil for none.
	Notes io.Writer
}

// NoColumn is the value of a flag for a column that says that none has its role.
const NoColumn = "none"

// named returns the columns that flags name, and the ends of ranges.
func (o *Options) named() []string {
	names := append(o.namedNodes(), o.SrcCol, o.DstCol, o.RelCol, o.WeightCol, o.TimeCol)
	return slices.DeleteFunc(names, func(name string) bool {
		return name == "" || name == NoColumn
	})
}

// namedNodes returns the columns of tables of nodes that flags name, and the ends of ranges.
func (o *Options) namedNodes() []string {
	names := []string{o.IDCol, o.LabelCol, o.SplitCol}
	for _, part := range slices.Concat(table.ListOf(o.FeatureCols), table.ListOf(o.Categorical)) {
		lo, hi, _ := strings.Cut(part, ":")
		names = append(names, lo, hi)
	}
	return names
}

// kind is a kind of source as far as flags are concerned: what reads its files.
type kind int

// The kinds. Text reads every flag.
const (
	ofText    kind = iota // CSV, TSV and SNAP
	ofColumns             // Parquet and Arrow
	ofArrays
	ofMixed // edges of text beside arrays
	ofTriples
	ofOGBText
	ofOGBArrays
	kinds
)

var kindNames = [kinds]string{"text", "Parquet and Arrow", "arrays", "edges of text beside arrays",
	"triples", "OGB's text files", "OGB's arrays"}

// flagRule is a flag that says what is read, and the kinds of sources that do not read it.
type flagRule struct {
	flag  string
	given func(o *Options) bool
	// refused is what to do instead, by the kinds that refuse the flag. Others read it.
	refused map[kind]string
}

// What to do instead of a flag that a kind of source does not read, where several say the same.
const (
	asTables = "give a table of edges and one of nodes: --edges F.csv --nodes F.csv"
	asTriple = "read the triples as a table: --edges train.tsv --src-col 0 --rel-col 1 --dst-col " +
		"2, which takes --nodes, --labels, --features, types and columns; --edge-split splits " +
		"its edges"
	asArray   = "labels, features and splits are arrays with a row for each node"
	ogbOwn    = "the files in raw/ and split/ are what is read; for others, make tables of them"
	rowIDs    = "ids are row numbers of arrays, of all nodes together; for types, " + asTables
	cutFields = "only text is cut into fields"
)

// everywhere returns what to do instead of a flag that only tables read.
func everywhere(arrays, triples, ogb string) map[kind]string {
	return map[kind]string{ofArrays: arrays, ofMixed: arrays, ofTriples: triples, ofOGBText: ogb,
		ofOGBArrays: ogb}
}

// but returns refused without some kinds, which read the flag.
func but(refused map[kind]string, reading ...kind) map[kind]string {
	for _, k := range reading {
		delete(refused, k)
	}
	return refused
}

// is returns whether a flag, the value of which is in a field of Options, was given.
func is(field string) func(o *Options) bool {
	return func(o *Options) bool {
		v := reflect.ValueOf(o).Elem().FieldByName(field)
		if v.Kind() == reflect.Map || v.Kind() == reflect.Slice {
			return v.Len() > 0
		}
		return !v.IsZero()
	}
}

// flagRules are the flags of ingest that say what is read.
var flagRules = []flagRule{
	{"--edges", func(o *Options) bool { return o.Edges != "" && len(o.Sources) > 0 },
		map[kind]string{ofTriples: "name the files, or their directory, without it",
			ofOGBText: ogbOwn}},
	{"--edges NAME=FILE", is("Relations"),
		but(everywhere("the type of each edge stands in edge_type.npy", "the relation stands in "+
			"the second column", ogbOwn), ofMixed)},
	{"--nodes", is("Nodes"), everywhere(asArray, asTriple, ogbOwn)},
	{"--features", is("Features"), map[kind]string{ofTriples: asTriple, ofOGBText: ogbOwn}},
	{"--labels", is("Labels"), map[kind]string{ofTriples: asTriple, ofOGBText: ogbOwn}},
	{"--split NAME=FILE", is("Splits"), map[kind]string{ofTriples: "the names of the files, " +
		"train, valid and test, split the edges; for splits of nodes, " + asTriple}},
	{"--src-type", is("SrcType"), everywhere(rowIDs, asTriple, ogbOwn)},
	{"--dst-type", is("DstType"), everywhere(rowIDs, asTriple, ogbOwn)},
	{"--same-ids", is("SameIDs"), everywhere("ids are row numbers of arrays, of all nodes together",
		"all entities of triples are of one kind", ogbOwn)},
	{"--src-col", is("SrcCol"),
		but(everywhere("sources are the first column of edges.npy, or src.npy", "", ogbOwn),
			ofMixed, ofTriples)},
	{"--dst-col", is("DstCol"),
		but(everywhere("destinations are the second column of edges.npy, or dst.npy", "", ogbOwn),
			ofMixed, ofTriples)},
	{"--rel-col", is("RelCol"), but(everywhere("save the type of each edge as edge_type.npy", "",
		ogbOwn), ofMixed, ofTriples)},
	{"--weight-col", is("WeightCol"),
		but(everywhere("save the weight of each edge as edge_weight.npy", asTriple,
			"save the weight of each edge as raw/edge_weight.csv.gz"), ofMixed)},
	{"--time-col", is("TimeCol"),
		but(everywhere("save the time of each edge as edge_time.npy, integers", asTriple, ogbOwn),
			ofMixed)},
	{"--column-types", is("ColumnTypes"),
		but(everywhere("arrays say what their values are", "triples have no other columns", ogbOwn),
			ofMixed)},
	{"--id-col", is("IDCol"), everywhere(asArray, asTriple, ogbOwn)},
	{"--label-col", is("LabelCol"), everywhere(asArray+": labels.npy", asTriple, ogbOwn)},
	{"--feature-cols", is("FeatureCols"), everywhere(asArray+": features.npy", asTriple, ogbOwn)},
	{"--categorical", is("Categorical"),
		everywhere(asArray+"; save columns of 0 and 1 in features.npy", asTriple, ogbOwn)},
	{"--split-col", is("SplitCol"),
		everywhere("save the ids of each split as train_idx.npy, val_idx.npy and test_idx.npy",
			asTriple, ogbOwn)},
	{"--fill", is("Fill"),
		everywhere("fill the array itself, as by numpy.nan_to_num, or take NaN by --allow-nan",
			asTriple, "--allow-nan takes gaps as NaN")},
	{"--na", is("NA"), but(everywhere("NaN says in an array that a value is missing", asTriple,
		"NaN says in an array that a value is missing"), ofOGBText)},
	{"--label-sep", is("LabelSep"),
		everywhere("save several labels of a node as labels_coo.npy, or as columns of 0 and 1",
			asTriple, "several labels of a node are columns of 0 and 1")},
	{"--multi-label", is("MultiLabel"),
		everywhere("save several labels of a node as labels_coo.npy, or as columns of 0 and 1",
			asTriple, "several labels of a node are columns of 0 and 1")},
	{"--delim", is("Delim"), map[kind]string{ofColumns: cutFields, ofArrays: cutFields,
		ofOGBArrays: cutFields, ofOGBText: "OGB's files have commas"}},
	{"--comment", is("Comment"), map[kind]string{ofColumns: cutFields, ofArrays: cutFields,
		ofOGBArrays: cutFields, ofOGBText: "OGB's files have no comments"}},
	{"--header", func(o *Options) bool { return o.Header == "yes" || o.Header == "no" },
		map[kind]string{ofColumns: "columns have names in these files", ofArrays: "arrays have " +
			"none", ofOGBArrays: "arrays have none", ofOGBText: "OGB's files have none"}},
	{"--allow-nan", is("AllowNaN"), map[kind]string{ofTriples: "triples have no features"}},
	{"--skip-bad", func(o *Options) bool { return o.SkipBad > 0 },
		map[kind]string{ofArrays: "rows are numbered, so none may be left out",
			ofOGBArrays: "rows are numbered, so none may be left out",
			ofOGBText:   "rows are numbered, so none may be left out"}},
}

// checkFlags refuses flags that a kind of source does not read.
func checkFlags(opt *Options, k kind) error {
	for _, r := range flagRules {
		if do, refused := r.refused[k]; refused && r.given(opt) {
			return input.Usage("%s is not read with %s: %s", r.flag, kindNames[k], do)
		}
	}
	return nil
}

// checkTableFlags refuses flags of tables of nodes where there is none, and flags of text where all
// tables are Parquet or Arrow.
func (s *parts) checkTableFlags(nodes string) error {
	o := s.opt
	tables := nodes != "" || o.Labels != "" || o.Features != ""
	switch {
	case o.IDCol != "" && !tables && len(o.Splits) == 0:
		return input.Usage("--id-col %s is a column of a table of nodes, and there is none: "+
			"--nodes names one", o.IDCol)
	case o.SplitCol != "" && nodes == "":
		return input.Usage("--split-col %s is a column of a table of nodes, and there is none: "+
			"--nodes names one", o.SplitCol)
	case o.NA != "" && !tables && len(s.info.EdgeTables) == 0:
		return input.Usage("--na %s is for labels, features and splits in tables of nodes, and "+
			"columns of edges, and there are none: --nodes names a table", o.NA)
	case !slices.ContainsFunc(s.info.Paths, func(p string) bool { return !columnar.Is(p) }):
		return checkFlags(o, ofColumns)
	}
	return nil
}

// FlagNames returns the flags of ingest that say what is read.
func FlagNames() (names []string) {
	for _, r := range flagRules {
		names = append(names, r.flag)
	}
	slices.Sort(names)
	return names
}
