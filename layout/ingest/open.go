package ingest

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Open detects the format of the sources and opens them: a directory of arrays or triples, or text
// files. Options.Format decides where the guess is wrong.
func Open(ctx context.Context, fs vfs.FS, opt *Options) (Source, error) {
	files := opt.Sources
	if opt.Edges != "" && !strings.HasSuffix(opt.Edges, ".npy") {
		files = append(slices.Clone(files), opt.Edges)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w: no source: give a directory, files, or --edges FILE", ErrUsage)
	}
	dir := ""
	for _, f := range files {
		info, err := fs.Stat(f)
		if err != nil {
			return nil, fmt.Errorf("ingest: %w", err)
		}
		if info.IsDir() {
			dir = f
		}
	}
	if dir != "" && len(files) > 1 {
		return nil, fmt.Errorf("%w: %s is a directory, and there are other sources: give one "+
			"directory, or files", ErrUsage, dir)
	}
	if dir != "" {
		return openDir(ctx, fs, opt, dir)
	}
	format := opt.Format
	if format == "" {
		format = textName(files[0])
	}
	if format != "csv" && format != "snap" && format != "triples" {
		return nil, fmt.Errorf("%w: --format %s wants a directory", ErrUsage, format)
	}
	return openTexts(fs, opt, format, files)
}

// textName guesses the format of a text file by its name.
func textName(file string) string {
	base := strings.TrimSuffix(strings.TrimSuffix(path.Base(file), ".gz"), ".zst")
	if strings.HasSuffix(base, ".txt") || strings.HasSuffix(base, ".edges") ||
		strings.HasSuffix(base, ".edgelist") {
		return "snap"
	}
	return "csv"
}

func openDir(_ context.Context, fs vfs.FS, opt *Options, dir string) (Source, error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, fmt.Errorf("ingest: list %s: %w", dir, err)
	}
	has := func(name string) bool { return slices.Contains(names, name) }
	format := opt.Format
	switch {
	case format != "":
	case slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, ".npy") }):
		format = "npy"
	case has("train.tsv") || has("train.txt"):
		format = "triples"
	case has("edges.csv"):
		format = "csv"
	default:
		return nil, &BadInputError{Where: dir, What: "no format was recognized",
			Do: "gdb help formats lists them; --format says which"}
	}
	switch format {
	case "npy":
		return openArrays(fs, opt, dir)
	case "triples":
		var files []string
		for _, n := range []string{"train.tsv", "valid.tsv", "test.tsv", "train.txt", "valid.txt",
			"test.txt"} {
			if has(n) {
				files = append(files, fs.PathJoin(dir, n))
			}
		}
		return openTexts(fs, opt, format, files)
	case "csv":
		if has("nodes.csv") && opt.Nodes == "" {
			opt.Nodes = fs.PathJoin(dir, "nodes.csv")
		}
		return openTexts(fs, opt, format, []string{fs.PathJoin(dir, "edges.csv")})
	}
	return nil, fmt.Errorf("%w: --format %s: want npy, csv, snap or triples", ErrUsage, format)
}
