package ingest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"gdb/kv"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The values of options that have few: the first of each is the default.
var (
	Partitioners  = []string{"none", "random", "range", "ldg", "fennel", "gap"}
	FeatureDTypes = []string{"auto", "f32", "f16", "bf16"}
	Normalizes    = []string{"none", "row", "zscore", "auto"}
	MissingNodes  = []string{"error", "zero"}
)

// streamFrom is the first of Partitioners that reads the lists of a store.
const streamFrom = 3

// Streams reports whether the partitioner reads the lists of a store, which is there when it has
// been ingested once.
func (o *Options) Streams() bool { return slices.Index(Partitioners, o.Partitioner) >= streamFrom }

// Options are the effective flags of an ingest. The zero value of a field is its default.
type Options struct {
	// Options say what is read, and how. Features may also name features that are made; Memory is
	// the bound of the process.
	source.Options
	Out string // the store's directory

	Undirected     bool
	Dedup          bool
	KeepDuplicates bool
	KeepSelfLoops  bool
	Merge          string // weights of parallel edges: see stats.MergeNames; implies Dedup
	Both           bool   // also write out-lists
	MissingNodes   string // one of MissingNodes; "" is error

	EdgeSplit    string // random=TRAIN/VAL/TEST: edges are in splits by chance; "" for none
	RandomSplit  string // splits that the caller draws of the store, so the source may have none
	SplitColumn  int
	Partitions   int
	Partitioner  string // one of Partitioners
	Restream     int    // how often such a partitioner reads the lists again
	Cluster      bool   // it clusters nodes first
	FeatureDType string // one of FeatureDTypes; "" is auto
	Normalize    string // one of Normalizes
	BlockBytes   int    // default 4096

	Threads int    // default: cores
	Seed    uint64 // of what is random
	Resume  bool
	DryRun  bool
	Version string // of gdb, for the catalog
	// UUID is the identity of the store; zero makes one.
	UUID kv.UUID `json:"-"`
	// Lacks, if it is not nil, is told of each node without a row of features, which is no error
	// then: the row is zeros.
	Lacks func(node uint32) `json:"-"`

	// Progress gets phase, work done and in all (bytes or rows, by unit); nil for none.
	Progress func(phase string, done, total int64, unit string)
	// Found gets what was found in the sources, before it is ingested; nil for none.
	Found func(*source.Info)
}

// read returns the options of what is read.
func (o *Options) read() *source.Options {
	read := o.Options
	read.Features = o.featureFile()
	read.KeepSparse = o.autoDType() && (o.Normalize == "" || o.Normalize == "none" ||
		o.Normalize == "row")
	return &read
}

// autoDType reports whether features are stored as sparse rows where they come so and that is
// smaller, and else as float32.
func (o *Options) autoDType() bool { return o.FeatureDType == "" || o.FeatureDType == "auto" }

// dtype returns the type of features that are not sparse.
func (o *Options) dtype() string {
	if o.autoDType() {
		return rowfile.F32
	}
	return o.FeatureDType
}

// inputs returns the files of edges as they were given, or those of nodes if these are alone.
func (o *Options) inputs() []string {
	if o.Schema != "" {
		return []string{o.Schema}
	}
	files := slices.Clone(o.Sources)
	for _, r := range o.Relations {
		files = append(files, r.File)
	}
	if o.Edges != "" {
		files = append(files, o.Edges)
	}
	for _, t := range o.NodeTables {
		if len(o.Relations) == 0 {
			files = append(files, t.File)
		}
	}
	if len(files) == 0 && o.Nodes != "" {
		files = append(files, o.Nodes)
	}
	return files
}

// featureFile returns the file of --features; "" if features are made.
func (o *Options) featureFile() string {
	if source.IsMade(o.Features) {
		return ""
	}
	return o.Features
}

// args returns the options as flags, without those that do not shape the store: the catalog keeps
// them as how the store was made.
func (o *Options) args() []string {
	var args []string
	add := func(flag, value string) {
		if value != "" {
			args = append(args, "--"+flag+"="+value)
		}
	}
	number := func(flag string, v int64) {
		if v != 0 {
			add(flag, strconv.FormatInt(v, 10))
		}
	}
	add("format", o.Format)
	if o.Both {
		add("direction", "both")
	}
	add("edges", o.Edges)
	for _, r := range o.Relations {
		add("edges", r.String())
		if r.Time != "" {
			add("time-col", r.Src+source.TypeSep+r.Key+"="+r.Time)
		}
	}
	add("nodes", o.Nodes)
	for _, t := range o.NodeTables {
		add("nodes", t.String())
		if t.Key != "" {
			add("id-col", t.Type+source.ColumnSep+t.Key)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Splits)) {
		add("split", name+"="+o.Splits[name])
	}
	for _, f := range [][2]string{{"src-col", o.SrcCol}, {"dst-col", o.DstCol},
		{"rel-col", o.RelCol}, {"id-col", o.IDCol}, {"label-col", o.LabelCol},
		{"feature-cols", o.FeatureCols}, {"weight-col", o.WeightCol}, {"time-col", o.TimeCol},
		{"split-col", o.SplitCol}, {"categorical", o.Categorical}, {"fill", o.Fill}, {"na", o.NA},
		{"label-sep", o.LabelSep}, {"missing-nodes", o.MissingNodes}, {"delim", o.Delim},
		{"comment", o.Comment}, {"header", o.Header}, {"src-type", o.SrcType},
		{"dst-type", o.DstType}, {"nodes-type", o.NodesType}, {"features", o.Features},
		{"labels", o.Labels}, {"partitioner", o.Partitioner}, {"merge", o.Merge},
		{"feature-dtype", o.FeatureDType}, {"normalize", o.Normalize},
		{"edge-split", o.EdgeSplit}, {"column-types", o.ColumnTypes}} {
		add(f[0], f[1])
	}
	set := map[string]bool{"cluster": o.Cluster, "undirected": o.Undirected,
		"dedup": o.Dedup, "allow-nan": o.AllowNaN,
		"keep-duplicates": o.KeepDuplicates, "keep-self-loops": o.KeepSelfLoops,
		"multi-label": o.MultiLabel, "same-ids": o.SameIDs, "reverse": o.Reverse}
	for _, flag := range slices.Sorted(maps.Keys(set)) {
		if set[flag] {
			args = append(args, "--"+flag)
		}
	}
	number("split-column", int64(o.SplitColumn))
	number("partitions", int64(o.Partitions))
	number("restream", int64(o.Restream))
	number("block", int64(o.BlockBytes))
	number("skip-bad", o.SkipBad)
	if o.Partitioner == "random" || source.IsMade(o.Features) || o.EdgeSplit != "" {
		add("seed", strconv.FormatUint(o.Seed, 10))
	}
	return args
}

// fingerprint describes what decides the bytes of the store.
func (p *pipeline) fingerprint() (options string, sources []steps.SourceFile, err error) {
	return Fingerprint(p.FS, p.info, p.opt, p.orderSum())
}

// Fingerprint describes what decides the bytes of what is made of a source, whose nodes are in an
// order, "" for their own: the options, but for those that only say how to get there, and the state
// of the source files.
func Fingerprint(fs vfs.FS, from *source.Info, opt Options, order string) (options string,
	sources []steps.SourceFile, err error) {
	opt.Out = "" // the directory may be called otherwise, or moved
	opt.Memory, opt.Threads, opt.Resume, opt.DryRun, opt.Version = 0, 0, false, false, ""
	opt.Progress, opt.Notes, opt.Found = nil, nil, nil
	b, err := json.Marshal(struct {
		Options
		Progress, Notes, Found struct{} // hide what JSON cannot hold
		Order                  string   `json:",omitempty"` // of the nodes of a store
	}{Options: opt, Order: order})
	if err != nil {
		return "", nil, fmt.Errorf("ingest: describe the options: %w", err)
	}
	for _, path := range from.Paths {
		info, err := fs.Stat(path)
		if err != nil {
			return "", nil, fmt.Errorf("ingest: %w", err)
		}
		sources = append(sources, steps.SourceFile{Path: path, Size: info.Size(),
			Modified: info.ModTime().UTC()})
	}
	return string(b), sources, nil
}

// checkSame refuses to resume another ingest than the one that was interrupted.
func (p *pipeline) checkSame() error {
	options, sources, err := p.fingerprint()
	if err != nil {
		return err
	}
	if options != p.Journal.Options {
		return fmt.Errorf("ingest: resume %s: the options differ; give those of the first time, "+
			"or delete the directory and start again: %w", p.Out, ErrChanged)
	}
	same := slices.EqualFunc(sources, p.Journal.Sources, func(a, b steps.SourceFile) bool {
		return a.Path == b.Path && a.Size == b.Size && a.Modified.Equal(b.Modified)
	})
	if !same {
		return fmt.Errorf("ingest: resume %s: the source files changed since; delete the "+
			"directory and start again: %w", p.Out, ErrChanged)
	}
	return nil
}
