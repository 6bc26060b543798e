package source

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"gdb/layout/ingest/columnar"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// formats are the formats that Open knows, by the names of --format.
var formats = []string{"npy", "csv", "parquet", "arrow", "snap", "ogb", "triples"}

// Formats returns the names of --format.
func Formats() []string { return slices.Clone(formats) }

// Open detects the format of the sources, or takes Options.Format, and opens them: it reads
// headers and the first rows, so that Info is known. Errors about the files are input.Errors.
func Open(ctx context.Context, fs vfs.FS, opt *Options) (Source, error) {
	if opt.Format != "" && !slices.Contains(formats, opt.Format) {
		return nil, input.Usage("--format %s is not one of %s", opt.Format,
			strings.Join(formats, ", "))
	}
	if len(opt.NodeTables) > 0 || opt.isOfTyped() {
		return openTyped(ctx, fs, opt)
	}
	dir, files, err := resolve(fs, opt)
	if err != nil {
		return nil, err
	}
	if mixes(fs, opt, dir, files) {
		return openMixed(ctx, fs, opt, dir, files)
	}
	format := opt.Format
	if format == "" {
		if format, err = detect(fs, dir, files); err != nil {
			return nil, err
		}
	}
	src, err := openAs(ctx, fs, opt, format, dir, files)
	if err != nil {
		return nil, input.AsError(err)
	}
	return src, nil
}

func openAs(ctx context.Context, fs vfs.FS, opt *Options, format, dir string,
	files []string) (Source, error) {
	switch format {
	case "npy":
		return openArrays(ctx, fs, opt, dir, files)
	case "ogb":
		if dir == "" {
			return nil, input.Usage("--format ogb needs a dataset's directory")
		}
		return openOGB(ctx, fs, opt, dir)
	case "triples":
		return openTriples(fs, opt, dir, files)
	}
	return openTexts(ctx, fs, opt, format, dir, files)
}

// resolve returns the source directory, or "", and the files: those given, or the directory's.
func resolve(fs vfs.FS, opt *Options) (dir string, files []string, err error) {
	sources := opt.Sources
	if len(sources) == 0 {
		switch {
		case opt.Edges != "":
			sources = []string{opt.Edges}
		case len(opt.Relations) > 0:
			sources = []string{opt.Relations[0].File}
		case opt.NoEdges && opt.Nodes != "":
			sources = []string{opt.Nodes}
		default:
			return "", nil, input.Usage("no source, give a directory or files")
		}
	}
	for _, s := range sources {
		found, err := table.Glob(fs, s)
		if err != nil {
			return "", nil, err
		}
		for _, f := range found {
			stat, err := fs.Stat(f)
			switch {
			case err != nil:
				return "", nil, input.Missing(f, err)
			case !stat.IsDir() || isTable(fs, f):
				if !slices.Contains(files, f) {
					files = append(files, f)
				}
			case dir != "" || len(sources) > 1:
				return "", nil, input.Usage("%s is a directory, give one directory, or files", f)
			default:
				dir = f
			}
		}
	}
	if dir == "" {
		return "", files, nil
	}
	names, err := fs.List(dir)
	if err != nil {
		return "", nil, fmt.Errorf("ingest: list %s: %w", dir, err)
	}
	slices.Sort(names)
	for _, n := range names {
		files = append(files, fs.PathJoin(dir, n))
	}
	return dir, files, nil
}

// The endings of tables: text, which may be compressed, Parquet and Arrow.
const (
	packed    = `(\.gz|\.bz2|\.zst)?$`
	tableEnds = `\.((csv|tsv|txt)` + packed + `|` + columnar.Endings + `)`
)

// StandardInput is the name of a text file of edges that was given without a name: the caller's
// file system has a file of it.
const StandardInput = "standard input"

// The names of tables by what they hold.
var (
	textName = regexp.MustCompile(`\.(csv|tsv|txt|tab|edges|edgelist|el|dat)` + packed +
		`|\.` + columnar.Endings + `|^` + StandardInput + `$`)
	snapName  = regexp.MustCompile(`\.(txt|edges|edgelist|el)` + packed)
	edgeName  = regexp.MustCompile(`^edges?([-_.]?[0-9].*)?` + tableEnds)
	nodeName  = regexp.MustCompile(`^(nodes?|vertices)` + tableEnds)
	splitText = regexp.MustCompile(`^(train|val|valid|test)([-_](idx|ids|nodes|mask))?` + tableEnds)
	metisName = regexp.MustCompile(`\.(graph|metis)` + packed)
)

// detect finds the format by the names of the files, and of a text file by its beginning.
func detect(fs vfs.FS, dir string, files []string) (format string, err error) {
	if dir != "" {
		if _, err := fs.Stat(fs.PathJoin(dir, "raw")); err == nil {
			return "ogb", nil
		}
	}
	var arrays, texts, edges, triples []string
	for _, f := range files {
		base := fs.PathBase(f)
		switch ext := path.Ext(base); {
		case ext == ".npy" || ext == ".npz":
			arrays = append(arrays, f)
		case textName.MatchString(base):
			texts = append(texts, f)
		}
		if edgeName.MatchString(base) {
			edges = append(edges, f)
		}
		if tripleSplit(base) != "" {
			triples = append(triples, f)
		}
	}
	switch {
	case len(arrays) > 0 && (dir == "" && len(texts) > 0 || len(edges) > 0):
		return "", input.Wrong(path.Dir(files[0]), "--format npy or csv says which to take; "+
			"or take some of both: --edges F.csv --features F.npy",
			"there are arrays and text files of edges")
	case len(arrays) > 0:
		return "npy", nil
	case dir != "" && len(triples) > 1 && len(edges) == 0:
		return "triples", nil
	case dir != "" && len(edges) > 0 && columnar.Is(edges[0]):
		return columnar.Format(edges[0]), nil
	case dir != "" && len(edges) > 0:
		return "csv", nil
	case dir == "":
		return detectText(fs, files[0])
	case len(texts) == 1:
		return detectText(fs, texts[0])
	}
	if err := table.Foreign(fs, files); err != nil {
		return "", err
	}
	if len(texts) > 0 {
		return "", input.Wrong(dir,
			"name that of edges with --edges, and that of nodes with --nodes; or, of tables "+
				"with keys, write their schema with --schema-out FILE",
			"no edges were found; it has the files %s", table.Few(texts))
	}
	return "", input.Wrong(dir, "want edges.npy, edges.csv, train.tsv with test.tsv, or raw/ of "+
		"OGB; or name a file with --edges", "no edges were found")
}

// detectText distinguishes SNAP's edge lists from other text: by name, or because they begin with
// #.
func detectText(fs vfs.FS, first string) (format string, err error) {
	columns, err := table.Files(fs, first)
	if err != nil {
		return "", err
	}
	if columns != nil {
		return columnar.Format(columns[0]), nil
	}
	if metisName.MatchString(fs.PathBase(first)) {
		return "", input.Wrong(first, "write a source and a destination a line; --format csv "+
			"reads it as that", "its name says METIS, where a line lists the neighbors of a node")
	}
	head, all, err := table.Head(fs, first)
	if err != nil {
		return "", err
	}
	format = "csv"
	switch f := table.GuessFormat(head, all, first, table.Comment(head)); {
	case f.Delim == 0 && snapName.MatchString(fs.PathBase(first)),
		f.Comment != 0 && (f.Delim == 0 || f.Delim == '\t'):
		format = "snap"
	}
	return format, nil
}

// isTable reports whether a directory is a table: files of columns, none of which has a role by
// name.
func isTable(fs vfs.FS, dir string) bool {
	files, err := table.Files(fs, dir)
	return err == nil && !slices.ContainsFunc(files, func(f string) bool {
		base := fs.PathBase(f)
		return edgeName.MatchString(base) || nodeName.MatchString(base) ||
			splitText.MatchString(base)
	})
}

// TablesIn returns the tables in a directory: their files by their names without endings.
func TablesIn(fs vfs.FS, dir string) (files map[string]string, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, input.Missing(dir, err)
	}
	slices.Sort(names)
	files = map[string]string{}
	for _, n := range names {
		file := fs.PathJoin(dir, n)
		stat, err := fs.Stat(file)
		switch {
		case err != nil:
			return nil, input.Missing(file, err)
		case strings.HasPrefix(n, "_"), strings.HasPrefix(n, "."):
			continue
		case stat.IsDir() && !isTable(fs, file), !stat.IsDir() && !textName.MatchString(n):
			continue
		}
		name, _, _ := strings.Cut(n, ".")
		if other := files[name]; other != "" {
			return nil, input.Wrong(dir, `write "file": "…" for one, or move the other away`,
				"%s and %s are two tables of one name", fs.PathBase(other), n)
		}
		files[name] = file
	}
	return files, nil
}
