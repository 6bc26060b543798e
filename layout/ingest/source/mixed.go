package source

import (
	"context"
	"errors"
	"maps"
	"slices"

	"gdb/internal/message"
	"gdb/layout/ingest/input"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// mixes reports whether edges are text while flags name arrays.
func mixes(fs vfs.FS, opt *Options, dir string, files []string) bool {
	named := append(slices.Collect(maps.Values(opt.Splits)), opt.Features, opt.Labels)
	arrays := slices.ContainsFunc(named, func(f string) bool { return f != "" && !textSplit(f) })
	switch {
	case opt.Edges != "":
		return textSplit(opt.Edges) && textName.MatchString(fs.PathBase(opt.Edges)) &&
			(arrays || opt.Format == "npy")
	case opt.Format == "" || opt.Format == "csv" || opt.Format == "snap":
		return arrays && slices.ContainsFunc(files, func(f string) bool {
			return (dir == "" || edgeName.MatchString(fs.PathBase(f))) && textSplit(f)
		})
	}
	return false
}

// openMixed opens edges of text beside arrays that have a row for each node: ids are row numbers.
func openMixed(ctx context.Context, fs vfs.FS, opt *Options, dir string,
	files []string) (Source, error) {
	s := &arraySet{parts: newParts(fs, opt, "csv", dir)}
	g := &textGraph{parts: s.parts, rows: true}
	if err := checkFlags(opt, ofMixed); err != nil {
		return nil, err
	}
	edges, nodes, splits, err := g.assign(files)
	edges = slices.DeleteFunc(edges, func(f string) bool { return !textSplit(f) })
	if err == nil && nodes != "" {
		err = input.Wrong(nodes, "give features and labels as columns of it, or leave it out",
			"a table of nodes has ids, but arrays are in order of node number")
	}
	if err == nil {
		err = inOrder(func() error { return s.describeNodes(ctx, files) }, s.describeSplits)
	}
	for _, name := range slices.Sorted(maps.Keys(splits)) {
		if _, given := opt.Splits[name]; err == nil && !given {
			err = s.addTextSplit(name, splits[name], true)
		}
	}
	if err == nil {
		err = s.mixedEdges(ctx, g, edges)
	}
	if err != nil {
		return nil, errors.Join(input.AsError(err), s.Close())
	}
	s.noteUnused()
	return s.parts, nil
}

// mixedEdges opens the edge files, whose ids must be row numbers.
func (s *arraySet) mixedEdges(ctx context.Context, g *textGraph, files []string) error {
	relations := slices.Clone(s.opt.Relations)
	for _, f := range files {
		relations = append(relations, Relation{File: f})
	}
	for _, r := range relations {
		if r.Src != "" {
			return input.Usage("--edges %s: %s", r, rowIDs)
		}
		r.File = s.locate(r.File)
		format, err := detectText(s.fs, r.File)
		if err == nil {
			err = g.openEdges(ctx, r, format)
		}
		if err != nil {
			return err
		}
	}
	if err := g.finishEdges(); err != nil {
		return err
	}
	if s.info.TextIDs {
		return input.Wrong(g.edges[0].Path, "number the nodes in order of the rows, or give "+
			"features, labels and splits as text with ids ("+message.Program+" help formats)",
			"its ids are text, but arrays are in order of node number, 0, 1, …")
	}
	s.info.RowIDs = s.nodesFrom != ""
	stream := s.parts.edges
	s.parts.edges = func(ctx context.Context, fn func(*EdgeChunk) error) error {
		return stream(ctx, func(c *EdgeChunk) error {
			for _, end := range []struct {
				what string
				ids  []uint64
			}{{"source", c.SrcInt}, {"destination", c.DstInt}} {
				if i := s.firstOutside(end.ids); i >= 0 {
					return s.outOfRange(c.Position(i), end.what, end.ids[i], false)
				}
			}
			return fn(c)
		})
	}
	return nil
}
