package bench

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gdb/bench/gen"
	"gdb/internal/mem"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// IngestFormats are the formats that Ingest measures.
var IngestFormats = []string{"npy", "csv-integer", "csv-string"}

// IngestOptions configure the ingest benchmark.
type IngestOptions struct {
	FS vfs.FS
	// Source is a directory of arrays. If it is empty, an R-MAT graph is made in Dir.
	Source string
	// Dir is where text sources and stores are written; what this benchmark wrote is removed.
	Dir string
	// Scale, Edges and Dim are the size of the made graph. Default 22, 64e6, 128.
	Scale int
	Edges uint64
	Dim   int
	// Formats lists what is measured: npy, csv-integer, csv-string. Default all.
	Formats []string
	// Memory is the bound of each ingest. Default 512 MiB.
	Memory int64
	Seed   uint64
	// Progress is called as ingest goes on; nil for no calls.
	Progress func(phase string, done, total int64, unit string)
}

func (o *IngestOptions) setDefaults() error {
	o.Scale = cmp.Or(o.Scale, 22)
	o.Edges = cmp.Or(o.Edges, 64e6)
	o.Dim = cmp.Or(o.Dim, 128)
	o.Memory = cmp.Or(o.Memory, 512<<20)
	if len(o.Formats) == 0 {
		o.Formats = slices.Clone(IngestFormats)
	}
	for _, f := range o.Formats {
		if !slices.Contains(IngestFormats, f) {
			return optionErrorf("bench: ingest: format %q is not one of %s", f,
				strings.Join(IngestFormats, ", "))
		}
	}
	if o.Dir == "" {
		return optionErrorf("bench: ingest: no directory to work in")
	}
	if o.Scale < 1 || o.Scale > 32 {
		return optionErrorf("bench: ingest: --scale %d: want 1 to 32", o.Scale)
	}
	return nil
}

// ingestDir is where everything is written, below the directory to work in.
const ingestDir = "gdb-bench-ingest"

// Ingest measures ingesting one graph from several formats: the arrays with their features, and
// its edges as text with integer and with string ids. The peak of memory is the process's, and is
// only that of one ingest where the kernel can reset it.
func Ingest(ctx context.Context, opt IngestOptions) (r *Report, err error) {
	if err := opt.setDefaults(); err != nil {
		return nil, err
	}
	r = newReport("ingest", "format", "edges", "seconds", "edges_per_s", "peak_rss_bytes")
	if _, err := opt.FS.Stat(opt.Dir); err != nil {
		return nil, fmt.Errorf("bench: ingest: the directory to work in: %w", err)
	}
	work := opt.FS.PathJoin(opt.Dir, ingestDir)
	// Of a process that was killed.
	if err := errors.Join(opt.FS.RemoveAll(work), opt.FS.MkdirAll(work, 0o755)); err != nil {
		return nil, fmt.Errorf("bench: ingest: %w", err)
	}
	defer func() { err = errors.Join(err, opt.FS.RemoveAll(work)) }()
	if opt.Source == "" {
		opt.Source = opt.FS.PathJoin(work, "arrays")
		_, err := gen.Make(ctx, gen.Options{Kind: "rmat", Nodes: 1 << opt.Scale, Edges: opt.Edges,
			Dim: opt.Dim, Classes: 47, TrainFrac: 0.1, Seed: opt.Seed, Out: opt.Source,
			FS: opt.FS, Progress: opt.Progress})
		if err != nil {
			return nil, err
		}
	}
	for _, format := range opt.Formats {
		row, err := ingestFormat(ctx, &opt, format, work)
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, row)
	}
	return r, nil
}

func ingestFormat(ctx context.Context, opt *IngestOptions, format, work string) (Row, error) {
	from := opt.Source
	if format != "npy" {
		from = opt.FS.PathJoin(work, format+".csv")
		if err := writeEdgeText(ctx, opt, from, format == "csv-string"); err != nil {
			return nil, err
		}
	}
	out := opt.FS.PathJoin(work, "store")
	reset := mem.ResetPeak() == nil
	start := time.Now()
	meta, err := ingest.Run(ctx, opt.FS,
		ingest.Options{Options: source.Options{Sources: []string{from}, Memory: opt.Memory},
			Out: out, Progress: opt.Progress})
	if err != nil {
		return nil, fmt.Errorf("bench: ingest %s: %w", format, err)
	}
	seconds := time.Since(start).Seconds()
	_, peak := mem.RSS()
	edges := meta.Stats.EdgesRead
	row := Row{"format": format, "edges": edges, "seconds": seconds,
		"edges_per_s": float64(edges) / seconds, "peak_rss_bytes": peak}
	if !reset {
		row["peak_rss_bytes"], row["why"] = nil, "the kernel does not let the peak be reset"
	}
	if format != "npy" {
		err = opt.FS.Remove(from)
	}
	return row, errors.Join(err, opt.FS.RemoveAll(out))
}

// writeEdgeText writes the edges of the arrays as lines of text.
func writeEdgeText(ctx context.Context, opt *IngestOptions, path string, text bool) (err error) {
	src, err := source.Open(ctx, opt.FS, &source.Options{Sources: []string{opt.Source}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	f, err := opt.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("bench: ingest: %w", err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	line := []byte("source,destination\n")
	err = src.Edges(ctx, func(c *source.EdgeChunk) error {
		for i, s := range c.SrcInt {
			line = appendID(line, s, text)
			line = append(line, ',')
			line = appendID(line, c.DstInt[i], text)
			line = append(line, '\n')
			if _, err := w.Write(line); err != nil {
				return fmt.Errorf("bench: ingest: write %s: %w", path, err)
			}
			line = line[:0]
		}
		return ctx.Err()
	})
	return errors.Join(err, w.Flush(), f.Close())
}

// appendID writes a node as an integer, or as a name of 6 to 12 characters in no order.
func appendID(b []byte, id uint64, text bool) []byte {
	if !text {
		return strconv.AppendUint(b, id, 10)
	}
	b = append(b, "user-"...)
	return strconv.AppendUint(b, id*2654435761%1000000007, 36)
}
