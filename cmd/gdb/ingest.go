package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gdb/cmd/gdb/cli"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/parts"
	"gdb/layout/splits"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) ingestCommand() *cobra.Command {
	opt := &ingest.Options{}
	var more ingestWords
	cmd := &cobra.Command{
		Use:   "ingest SRC... --out STORE",
		Short: "Load a graph from source files into a store, in bounded memory",
		Long: `Load a graph from a directory or files into a new store. The format is
detected and printed; gdb help formats lists what is read. Nothing is left
behind that looks like a store unless the ingest finished; after a kill, the
same command with --resume goes on.`,
		Example: `  gdb ingest cora/ --out cora.gdb --undirected
  gdb ingest --edges edges.csv --nodes papers.csv --label-col topic --out my.gdb
  gdb ingest web-Google.txt.gz --out web.gdb --dry-run
  gdb ingest shop/ --schema-out shop.json
  gdb ingest shop/ --schema shop.json --label-col users.churned --out shop.gdb`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if more.splits, opt.RandomSplit = randomSplit(more.splits); opt.RandomSplit != "" {
				if _, err := splits.ParseShares(opt.RandomSplit); err != nil {
					return cli.Usage(err)
				}
				if len(more.splits) > 0 {
					return cli.Usage(fmt.Errorf("ingest: --split %s would replace --split %s: "+
						"give one of them", opt.RandomSplit, more.splits[0]))
				}
			}
			if more.schemaOut != "" {
				return a.schemaOut(opt, args, more.schemaOut)
			}
			if err := a.ingestOptions(opt, args, &more, cmd.Flags()); err != nil {
				return err
			}
			fs, remove, err := a.spoolInput(opt)
			if err != nil {
				return err
			}
			defer func() { err = cli.FirstError(err, remove()) }()
			err = a.ingest(cmd, fs, *opt)
			if err == nil && opt.RandomSplit != "" && !opt.DryRun {
				err = a.split(cmd.Context(), opt.Out, opt.RandomSplit)
			}
			return err
		},
	}
	ingestFlags(cmd.Flags(), opt, &more)
	cli.OnlyOnce(cmd.Flags())
	return cmd
}

// ingestWords are flags of ingest as they were given, before they are options.
type ingestWords struct {
	edges, nodes, splits []string
	block, comment       string
	schema, schemaOut    string
}

func ingestFlags(f *pflag.FlagSet, opt *ingest.Options, more *ingestWords) {
	f.StringVar(&opt.Out, "out", "", "directory of the new store")
	f.StringVar(&opt.Format, "format", "",
		"npy, csv, parquet, arrow, snap, ogb or triples (default: detected)")
	f.BoolVar(&opt.Undirected, "undirected", false,
		"add each edge's reverse; drop duplicates and self loops")
	f.BoolVar(&opt.Dedup, "dedup", false, "drop duplicate edges of directed input too")
	f.BoolVar(&opt.KeepDuplicates, "keep-duplicates", false,
		"keep duplicates with --undirected too")
	f.StringVar(&opt.Merge, "merge", "",
		"weights of duplicate edges: sum (default), mean, min, max, last "+
			"or error")
	f.StringVar(&opt.ColumnTypes, "column-types", "",
		"types of stored columns: TYPE.COLUMN=string,…; REL. or edges. of edges")
	f.StringVar(&more.schema, "schema", "",
		"keys and times of the tables in SRC (default: its schema.json)")
	f.StringVar(&more.schemaOut, "schema-out", "",
		"write the schema that the tables in SRC seem to have, and end")
	f.BoolVar(&opt.Reverse, "reverse", false,
		"add to each relation between types its reverse, rev_REL")
	f.BoolVar(&opt.KeepSelfLoops, "keep-self-loops", false, "keep self loops with --undirected too")
	direction := f.VarPF((*cli.Direction)(&opt.Both), "direction", "",
		"in, or both: write out-lists too (default in)")
	direction.DefValue = ""
	f.StringArrayVar(&more.edges, "edges", nil,
		"file of edges; repeatable as REL=FILE or SRC:REL:DST=FILE")
	f.StringArrayVar(&more.nodes, "nodes", nil,
		"file of nodes: ids, labels, features; repeatable as TYPE=FILE")
	f.StringVar(&opt.SrcType, "src-type", "", "type of the sources: their ids are numbered apart")
	f.StringVar(&opt.DstType, "dst-type", "", "type of the destinations")
	f.BoolVar(&opt.SameIDs, "same-ids", false,
		"both ends are of one kind, though their columns look like two")
	f.StringVar(&opt.Features, "features", "",
		"file of features; or features to make: degree, random:64, one-hot")
	f.StringVar(&opt.Labels, "labels", "", "file of labels")
	f.StringArrayVar(&more.splits, "split", nil,
		"NAME=FILE: members of a split, repeatable; or random=60/20/20")
	f.StringVar(&opt.EdgeSplit, "edge-split", "",
		"splits of edges for link prediction: random=85/5/10, or "+
			"time=2024-01-01,2024-06-01: val from the first time on, test from the second")
	columnFlags(f, opt, more)
	f.IntVar(&opt.SplitColumn, "split-column", 0,
		"default column of a splits.npy of several splits")
	f.IntVar(&opt.Partitions, "partitions", 1, "number of node partitions")
	f.StringVar(&opt.Partitioner, "partitioner", "none",
		"none, random, range; or by the lists: ldg, fennel or gap, as gdb order")
	f.IntVar(&opt.Restream, "restream", 0, "how often lists are read again, to deal nodes anew")
	f.BoolVar(&opt.Cluster, "cluster", false, "cluster nodes first: fewer edges are cut")
	f.StringVar(&opt.FeatureDType, "feature-dtype", "auto", "features on disk: f32, f16, bf16, "+
		"or auto, which is f32, or sparse where the source is and that is smaller")
	f.StringVar(&opt.Normalize, "normalize", "", "features: none, row (sum 1), "+
		"zscore (columns) or auto (default: none; auto for tables of several types)")
	f.StringVar(&more.block, "block", "4KiB", "topology block")
	f.BoolVar(&opt.AllowNaN, "allow-nan", false, "take NaN and Inf in features")
	f.Int64Var(&opt.SkipBad, "skip-bad", 0, "bad lines to tolerate; each is reported")
	f.BoolVar(&opt.Resume, "resume", false, "go on with an ingest that was stopped")
	f.BoolVar(&opt.DryRun, "dry-run", false,
		"print what would be done and what it takes; write nothing")
}

// columnFlags say what the columns of text files are, and how their rows are cut.
func columnFlags(f *pflag.FlagSet, opt *ingest.Options, more *ingestWords) {
	f.StringVar(&opt.SrcCol, "src-col", "", "column of sources, name or number (default: first)")
	f.StringVar(&opt.DstCol, "dst-col", "", "column of destinations (default: second)")
	f.StringVar(&opt.RelCol, "rel-col", "", "column of relations, or none")
	f.StringVar(&opt.WeightCol, "weight-col", "", "column of edge weights, or none")
	f.StringVar(&opt.TimeCol, "time-col", "",
		"column of edge times: seconds, or dates by ISO 8601; or none")
	f.StringVar(&opt.IDCol, "id-col", "", "column of node ids in --nodes (default: first)")
	f.StringVar(&opt.LabelCol, "label-col", "", "column of labels in --nodes, or none")
	f.StringVar(&opt.FeatureCols, "feature-cols", "",
		"columns of features: a,b,c or f0:f127; * for all numbers")
	f.StringVar(&opt.Categorical, "categorical", "",
		"columns of categories: features, a number for each")
	f.StringVar(&opt.Fill, "fill", "",
		"missing features: mean, zero or a number; mean,indicator adds columns")
	f.StringVar(&opt.NA, "na", "", "words that say a value is missing: NA,null")
	f.StringVar(&opt.MissingNodes, "missing-nodes", "",
		"a node without a row of features: error (default) or zero")
	f.StringVar(&opt.LabelSep, "label-sep", "", "character between several labels of a node")
	f.BoolVar(&opt.MultiLabel, "multi-label", false,
		"a node may have several labels: pairs of id and label")
	f.StringVar(&opt.SplitCol, "split-col", "",
		"column in --nodes that names a node's split, or none")
	f.StringVar(&opt.Delim, "delim", "", "delimiter of text files (default: detected)")
	f.StringVar(&more.comment, "comment", "auto",
		"sign that begins lines to pass over; '' reads all lines")
	f.StringVar(&opt.Header, "header", "auto",
		"first line of text files is a header: auto, yes, no")
}

// randomShares are the shares of a split that is drawn, right or wrong, and no name of a file.
var randomShares = regexp.MustCompile(`^random=[-0-9.,:/% ]*$`)

// randomSplit takes random=A/B/C out of the values of --split: the others are files.
func randomSplit(all []string) (files []string, random string) {
	for _, s := range all {
		if randomShares.MatchString(s) && random == "" {
			random = s
			continue
		}
		files = append(files, s)
	}
	return files, random
}

func (a *app) ingestOptions(opt *ingest.Options, args []string, more *ingestWords,
	flags *pflag.FlagSet) error {
	opt.Sources = args
	if err := edgeFiles(opt, more); err != nil {
		return err
	}
	if err := a.applySchema(opt, more.schema, flags); err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	if len(args) == 0 && opt.Edges == "" && len(opt.Relations) == 0 &&
		(!opt.NoEdges || len(more.nodes) == 0) {
		return cli.Usage(errors.New("ingest: no source: give a directory, files, or --edges FILE"))
	}
	if opt.Out == "" {
		return cli.Usage(fmt.Errorf("ingest: no --out STORE: say where the store goes, as in "+
			"--out %s", likelyStore(args, opt)))
	}
	if err := layout.CheckOutside(a.FS, opt.Out); err != nil {
		return cli.Usage(fmt.Errorf("ingest: --out %w", err))
	}
	n, err := mem.ParseSize(more.block)
	if err != nil {
		return cli.Usage(fmt.Errorf("ingest: --block: %w", err))
	}
	if n < 4096 || n > 1<<20 || n&(n-1) != 0 {
		return cli.Usage(fmt.Errorf("ingest: --block %s: want a power of two of 4KiB to 1MiB",
			more.block))
	}
	opt.BlockBytes = int(n)
	opt.Splits = map[string]string{}
	for _, s := range more.splits {
		name, file, ok := strings.Cut(s, "=")
		if !ok || name == "" || file == "" {
			return cli.Usage(fmt.Errorf("ingest: --split %q: want NAME=FILE; %s split draws them "+
				"at random, once the store is made", s, message.Program))
		}
		if before := opt.Splits[name]; before != "" && before != file {
			return cli.Usage(fmt.Errorf("ingest: --split %s=%s and --split %s: put the ids of one "+
				"split into one file", name, before, s))
		}
		opt.Splits[name] = file
	}
	switch opt.Comment = more.comment; opt.Comment {
	case "auto":
		opt.Comment = ""
	case "":
		opt.Comment = "none"
	}
	opt.Memory, opt.Threads, opt.Seed, opt.Version = a.Memory, a.Threads, a.Seed, "gdb "+version
	if !a.Quiet {
		opt.Notes = a.Err
		opt.Found = func(found *source.Info) {
			// A list that cannot be written must not end the ingest.
			_ = printColumns(a.Out, found.Columns)
		}
	}
	return nil
}

// likelyStore returns a name for the store of what is ingested.
func likelyStore(args []string, opt *ingest.Options) string {
	from := opt.Edges
	if len(args) > 0 {
		from = args[0]
	}
	name, _, _ := strings.Cut(filepath.Base(from), ".")
	if from == "" || strings.Trim(name, "/") == "" {
		name = "graph"
	}
	return name + ".gdb"
}

// edgeFiles takes the files of --edges and --nodes apart from the types before them.
func edgeFiles(opt *ingest.Options, more *ingestWords) error {
	for _, s := range more.edges {
		r, named := source.ParseRelation(s)
		switch {
		case named:
			opt.Relations = append(opt.Relations, r)
		case opt.Edges != "":
			return cli.Usage(fmt.Errorf("ingest: --edges %s: several files of edges need names, "+
				"as in --edges REL=FILE; or list them without --edges", s))
		default:
			opt.Edges = s
		}
	}
	if opt.Edges != "" && len(opt.Relations) > 0 {
		return cli.Usage(fmt.Errorf("ingest: --edges %s has no name, and others have: write "+
			"--edges REL=%s", opt.Edges, opt.Edges))
	}
	return nodesFile(opt, more.nodes)
}

// nodesFile takes the type before the file of --nodes.
func nodesFile(opt *ingest.Options, nodes []string) error {
	if len(nodes) == 0 {
		return nil
	}
	if len(nodes) > 1 || opt.Reverse || isWhole(opt, nodes[0]) {
		for _, s := range nodes {
			r, named := source.ParseRelation(s)
			if !named || r.Src != "" {
				return cli.Usage(fmt.Errorf("ingest: --nodes %s: several tables of nodes need the "+
					"type of each: --nodes TYPE=FILE", s))
			}
			opt.NodeTables = append(opt.NodeTables, source.NodeTable{Type: r.Name, File: r.File})
		}
		return nil
	}
	opt.Nodes = nodes[0]
	if r, named := source.ParseRelation(nodes[0]); named && r.Src == "" {
		opt.NodesType, opt.Nodes = r.Name, r.File
	}
	return nil
}

// isWhole reports whether the graph has one table of nodes, and relations of its type alone. If
// edges are to be made both ways, it is stored without types.
func isWhole(opt *ingest.Options, nodes string) bool {
	t, named := source.ParseRelation(nodes)
	other := func(r source.Relation) bool { return r.Src != t.Name || r.Dst != t.Name }
	return named && t.Src == "" && !opt.Undirected && len(opt.Relations) > 0 &&
		!slices.ContainsFunc(opt.Relations, other)
}

func (a *app) ingest(cmd *cobra.Command, fs vfs.FS, opt ingest.Options) error {
	if opt.DryRun {
		plan, err := ingest.DryRun(cmd.Context(), fs, opt)
		if err != nil {
			return fmt.Errorf("ingest: %w", err)
		}
		return a.printPlan(plan)
	}
	p := a.Progress()
	opt.Progress = p.Update
	m, dealt, err := parts.Ingest(cmd.Context(), fs, opt)
	p.Finish()
	if err != nil && cmd.Context().Err() != nil && opt.Edges == source.StandardInput {
		return fmt.Errorf("ingest: stopped; standard input is gone and cannot be resumed: delete "+
			"%s and give it again: %w", opt.Out, cmd.Context().Err())
	}
	if err != nil && cmd.Context().Err() != nil {
		return a.stopped("ingest", cmd.Context().Err())
	}
	if err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	if err := a.printIngested(&opt, m); err != nil || dealt == nil || a.Quiet {
		return err
	}
	return printDealt(&cli.Lines{W: a.Out}, dealt)
}

// stopped returns the error of a command that was stopped, with the command line that goes on.
func (a *app) stopped(command string, why error) error {
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(s string) bool {
		return s == "--resume"
	})
	return fmt.Errorf("%s: stopped; go on with: %s --resume: %w", command, a.commandLine(args), why)
}

// plainWord needs no quotes in a shell.
var plainWord = regexp.MustCompile(`^[-+=:,./@%^\w]+$`)

// commandLine returns a command of this program as one would type it.
func (a *app) commandLine(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		if words[i] = arg; !plainWord.MatchString(arg) {
			words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return message.Program + " " + strings.Join(words, " ")
}

func (a *app) printIngested(opt *ingest.Options, m *kv.Meta) error {
	if a.Quiet {
		return nil
	}
	s, w := m.Stats, &cli.Lines{W: a.Out}
	w.Printf("%s: %s nodes, %s edges, %s\n", opt.Out, cli.Count(m.Nodes), cli.Count(m.Edges),
		mem.FormatSize(m.Bytes()))
	w.Printf("read %s edges; dropped %s self loops, %s duplicates\n", cli.Count(s.EdgesRead),
		cli.Count(s.DroppedSelfLoops), cli.Count(s.DroppedDuplicates))
	for _, line := range cli.EdgeSplitLines(m) {
		w.Printf("edge split %s\n", line)
	}
	if s.DroppedDuplicates > 0 && m.Weighted && opt.Merge == "" {
		w.Printf("the weights of duplicate edges were added up: --merge has other ways\n")
	}
	if len(m.Features) > 0 || m.Labels != nil || len(m.Splits) > 0 {
		said := []string{cli.Plural(len(m.Features), "feature file")}
		if m.Labels != nil && m.Labels.Kind != "target" {
			said = append(said, cli.Plural(classCount(m), "class"))
		}
		if len(m.Splits) > 0 {
			said = append(said, cli.Plural(len(m.Splits), "split"))
		}
		w.Printf("%s\n", strings.Join(said, ", "))
	}
	if w.Err == nil {
		for _, line := range cli.DirectionNotes(m) {
			a.Note(line)
		}
	}
	return w.Err
}

func (a *app) printPlan(p *ingest.Plan) error {
	w := &cli.Lines{W: a.Out}
	w.Printf("format      %s\n", p.Info.Format)
	for _, f := range p.Info.Paths {
		w.Printf("file        %s\n", f)
	}
	w.Printf("nodes       %s\n", known(p.Nodes))
	edges := known(p.Edges)
	if p.Edges == 0 && p.Info.EdgesAbout > 0 {
		edges = fmt.Sprintf("about %s, by the first lines", cli.Count(p.Info.EdgesAbout))
	}
	w.Printf("edges       %s\n", edges)
	ids := "row numbers"
	if p.Info.TextIDs {
		ids = "strings"
	} else if !p.Info.RowIDs {
		ids = "integers"
	}
	w.Printf("ids         %s\n", ids)
	for _, f := range p.Info.Features {
		w.Printf("features    %s: %d x %s, %s rows\n", f.Name, f.Dim, f.DType, known(f.Rows))
	}
	if p.Info.Labels != nil {
		w.Printf("labels      %s\n", p.Info.Labels.Kind)
	}
	if len(p.Info.Splits) > 0 {
		w.Printf("splits      %s\n", strings.Join(p.Info.Splits, " "))
	}
	if w.Err == nil {
		w.Err = printColumns(a.Out, p.Info.Columns)
	}
	for _, n := range p.Info.Notes {
		w.Printf("note        %s\n", n)
	}
	w.Printf("memory      %s (the least that would do: %s)\n", mem.FormatSize(p.MemoryBytes),
		mem.FormatSize(p.LeastMemory))
	w.Printf("disk        %s for the store, %s more while it is made\n",
		mem.FormatSize(p.DiskBytes), mem.FormatSize(p.TempBytes))
	for _, f := range p.Files {
		w.Printf("will write  %s\n", f)
	}
	return w.Err
}

func known(n uint64) string {
	if n == 0 {
		return "known after reading"
	}
	return cli.Count(n)
}
