package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/indexcmd"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/inspect"
	"gdb/layout/openfiles"
	"gdb/layout/topology"

	"github.com/spf13/cobra"
)

func (a *app) infoCommand() *cobra.Command {
	var asJSON, io bool
	cmd := &cobra.Command{
		Use: "info STORE", Short: "Print what is in a store", Args: cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := a.Open(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("info: %w", err)
			}
			if io {
				return a.printIO(st, asJSON)
			}
			m, growth, err := exactMeta(cmd.Context(), st)
			if err != nil {
				return fmt.Errorf("info: %w", err)
			}
			if asJSON {
				return a.printFields(struct {
					*kv.Meta
					Growth *inspect.Growth `json:",omitempty"`
				}{m, growth})
			}
			if err := printInfo(a.Out, args[0], m, growth, st); err != nil {
				return err
			}
			indexes, err := st.Catalog().Indexes(cmd.Context())
			if err != nil {
				return err
			}
			w := &cli.Lines{W: a.Out}
			indexcmd.Print(w, st, indexes)
			all, err := st.Catalog().Runs(cmd.Context())
			if err != nil || len(all) == 0 {
				return cli.FirstError(w.Err, err)
			}
			w.Printf("\n")
			return printRuns(w, all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&io, "io", false, "print how the store's files are read, and why")
	return cmd
}

// infoCache is the cache of blocks, in bytes, that degrees of a store with levels are counted with.
const infoCache = 4 << 20

// exactMeta returns the metadata of a store with degrees that count its levels, and what these
// cost.
func exactMeta(ctx context.Context, st *layout.Store) (meta *kv.Meta, growth *inspect.Growth,
	err error) {
	if growth, err = inspect.GrowthOf(ctx, st); err != nil || growth == nil {
		return st.Meta(), nil, err
	}
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		return nil, nil, err
	}
	set := openfiles.New(st, dev, nil)
	defer func() { err = cli.FirstError(err, errors.Join(set.Close(), dev.Close())) }()
	m := *st.Meta()
	m.Stats, err = set.Stats(ctx, topology.Options{CacheBytes: infoCache})
	return &m, growth, err
}

var (
	fieldName = regexp.MustCompile(`(?m)^ *"[A-Z][A-Za-z]*": `)
	wordBegin = regexp.MustCompile(`([a-z])([A-Z])`)
)

// printFields prints a value whose fields have no names of their own in JSON: created_by for
// CreatedBy. Each field begins a line, and no text in a value can look like one.
func (a *app) printFields(v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return a.PrintJSON(json.RawMessage(fieldName.ReplaceAllFunc(b, func(name []byte) []byte {
		return bytes.ToLower(wordBegin.ReplaceAll(name, []byte("${1}_$2")))
	})))
}

// printIO opens the largest file of the store the way training would, and says how it is read.
func (a *app) printIO(st *layout.Store, asJSON bool) (err error) {
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		return fmt.Errorf("info: %w", err)
	}
	defer func() { err = cli.FirstError(err, dev.Close()) }()
	largest := kv.FileMeta{}
	for _, f := range st.Meta().Files {
		if f.Size > largest.Size {
			largest = f
		}
	}
	if largest.Path != "" {
		f, err := st.OpenFile(dev, largest.Path)
		if err != nil {
			return fmt.Errorf("info: %w", err)
		}
		defer func() { err = cli.FirstError(err, f.Close()) }()
	}
	info := dev.Info()
	if asJSON {
		return a.printFields(info)
	}
	w := &cli.Lines{W: a.Out}
	w.Field("backend", "%s", info.Backend)
	w.Field("queue depth", "%d", info.QueueDepth)
	w.Field("why", "%s", info.Why)
	return w.Err
}

// listBytes returns what the lists of a direction take on disk, with their index.
func listBytes(m *kv.Meta, dir layout.Direction) (n int64) {
	lists, index := layout.TopologyPaths(dir)
	for _, f := range m.Files {
		if f.Path == lists || f.Path == index {
			n += f.Size
		}
	}
	return n
}

func classCount(m *kv.Meta) int {
	if m.Labels == nil {
		return 0
	}
	return len(m.Labels.Classes)
}

// printTypes lists the types of nodes and edges.
func printTypes(w *cli.Lines, m *kv.Meta) {
	if n := len(m.EdgeTypes); n > 0 {
		w.Printf("edge types  %d: %s\n", n, message.First(m.EdgeTypes, 8))
	}
	for i, r := range m.Relations {
		w.Printf("  relation  %s edges\n", cli.Cut(fmt.Sprintf("%s -> %s: %-20s %s",
			m.NodeTypes[r.Src].Name, m.NodeTypes[r.Dst].Name, m.EdgeTypes[i],
			cli.Count(m.Stats.TypeCounts[i])), 60))
		printEdgeTable(w, m, i, "    column  ")
	}
	if !m.Typed() {
		printEdgeTable(w, m, 0, "  column    ")
	}
	for i, t := range m.NodeTypes {
		if i == 0 {
			w.Printf("node types  ids are TYPE:ID\n")
		}
		w.Printf("  type      %-30.30s %s\n", t.Name, cli.Count(t.Nodes))
		if t.KeyName != "" {
			w.Printf("    ids     %s\n", cli.Cut(t.KeyName, 66))
		}
		printTableColumns(w, "    column  ", t.Columns)
	}
}

// printEdgeTable lists the columns of the edges of a relation.
func printEdgeTable(w *cli.Lines, m *kv.Meta, relation int, head string) {
	t := m.EdgeTable(relation)
	if t == nil {
		return
	}
	if t.Reverse != nil {
		w.Printf("    columns of %s\n", m.EdgeTypes[t.Reverse.Of])
	}
	printTableColumns(w, head, t.Columns)
}

// printTableColumns lists columns, each after head.
func printTableColumns(w *cli.Lines, head string, columns []kv.TableColumn) {
	for _, c := range columns {
		nulls := ""
		if c.Nulls > 0 {
			nulls = ", " + cli.Plural(int(c.Nulls), "null")
		}
		w.Printf("%s%s\n", head, cli.Cut(fmt.Sprintf("%s %s%s", c.Name, c.Type, nulls), 66))
	}
}

// printInfo prints what is in a store, which m describes.
func printInfo(out io.Writer, dir string, m *kv.Meta, growth *inspect.Growth,
	st *layout.Store) error {
	base := st.Base().Meta()
	w := &cli.Lines{W: out}
	w.Printf("store       %s\n", dir)
	w.Printf("uuid        %s\n            format %d, made by %s\n", m.UUID, m.Format, m.CreatedBy)
	w.Printf("source      %s\n", m.Source.Format)
	for _, path := range m.Source.Paths {
		w.Printf("            %s\n", path)
	}
	w.Printf("nodes       %s\n", cli.Count(m.Nodes))
	reverse := ""
	if m.Undirected {
		reverse = ", reverse edges added"
	}
	w.Printf("edges       %s (%s%s)\n", cli.Count(m.Edges), strings.Join(m.Directions, " and "),
		reverse)
	printLevels(w, st)
	printGrowth(w, growth)
	printTypes(w, m)
	w.Printf("in-degree   max %s, %s nodes without in-edges\n", cli.Count(m.Stats.InMax),
		zeroDegree(m))
	for _, dir := range []layout.Direction{layout.In, layout.Out} {
		if n := listBytes(base, dir); n > 0 && base.Edges > 0 {
			w.Printf("%-11s %.2f bytes an edge on disk, with the index\n", dir.String()+"-lists",
				float64(n)/float64(base.Edges))
		}
	}
	w.Printf("ids         %s\n", m.IDs.Kind)
	for _, f := range m.Features {
		w.Printf("features    %s: %d x %s, %s a row, page %s\n", f.Name, f.Dim, f.DType,
			mem.FormatSize(int64(f.RowBytes)), mem.FormatSize(int64(f.PageBytes)))
		for i, of := range f.Sections {
			columns := m.NodeTypes[i].FeatureColumns().Sources()
			w.Printf("  type      %s\n", cli.Cut(strings.TrimSpace(fmt.Sprintf("%s: %d x %s %s",
				m.NodeTypes[i].Name, of.Dim, f.DType, message.First(columns, 8))), 66))
		}
		if names := m.FeatureColumns(f).Sources(); len(names) > 0 {
			w.Printf("  columns   %s\n", cli.Cut(message.First(names, 8), 66))
		}
	}
	if l := m.Labels; l != nil && l.Kind == "target" {
		w.Printf("labels      numbers, of %s nodes\n", cli.Count(l.Labeled))
	} else if l != nil {
		w.Printf("labels      %s, %s of nodes labeled; %d classes: %s\n", l.Kind,
			cli.Count(l.Labeled), len(l.Classes), cli.Cut(message.First(l.Classes, 8), 28))
		if l.Unknown > 0 {
			w.Printf("  unknown   %s of their %s labels\n", cli.Count(l.Unknown),
				cli.Count(l.Labeled*uint64(len(l.Classes))))
		}
	}
	if l := m.Labels; l != nil && len(l.ClassCounts) > 1 && len(l.ClassCounts) <= 20 {
		for k, n := range l.ClassCounts {
			w.Printf("  class     %-24s %9s\n", cli.Cut(l.Classes[k], 24), cli.Count(n))
		}
	}
	for _, s := range m.Splits {
		w.Printf("split       %s: %s nodes\n", s.Name, cli.Count(s.Count))
	}
	for _, line := range cli.EdgeSplitLines(m) {
		w.Printf("edge split  %s\n", line)
	}
	w.Printf("partitions  %s\n", partitionsLine(m))
	w.Printf("files       %d, %s\n", len(m.Files), mem.FormatSize(m.Bytes()))
	for _, note := range cli.DirectionNotes(m) {
		w.Printf("note  %s\n", note)
	}
	return w.Err
}

// printReplaced writes what a commit replaced.
func printReplaced(w *cli.Lines, m *kv.Meta, l *kv.LevelMeta) {
	what := "features"
	if m.Labels != nil && l.Rows == m.Labels.Rows.Path {
		what = "labels"
	}
	w.Printf("  level     snapshot %d: other %s of %s, %s\n", l.Snapshot, what,
		cli.Plural(int(l.RowNodes), "node"), mem.FormatSize(l.Bytes))
}

// printLevels lists the levels of a store: small commits are one that adds and one that takes away.
func printLevels(w *cli.Lines, st *layout.Store) {
	for _, l := range st.Levels() {
		if l.Of.Rows != "" {
			printReplaced(w, st.Meta(), &l.Of)
			continue
		}
		what, edges := "level   ", cli.Count(l.Of.Edges)
		if l.Held != nil {
			what = "commits "
		}
		if l.Of.Gone {
			edges = cli.Count(l.Of.Removed) + " fewer"
		}
		w.Printf("  %s  snapshot %d: %s nodes, %s edges, %s\n", what, l.Of.Snapshot,
			cli.Count(l.Of.Nodes), edges, mem.FormatSize(l.Of.Bytes))
	}
}

// printGrowth prints what the levels of a store cost, and what a compaction would give.
func printGrowth(w *cli.Lines, g *inspect.Growth) {
	if g == nil {
		return
	}
	if g.Gone > 0 || g.Deleted > 0 {
		w.Printf("  deleted   %s nodes; %s edges taken away\n", cli.Count(g.Deleted),
			cli.Count(g.Gone))
	}
	if g.Levels > 0 {
		w.Printf("  reading   a list is in %.2f pieces; levels take up to %s of memory\n", g.Pieces,
			mem.FormatSize(g.Memory))
		w.Printf("  compact   gdb compact makes of %s about %s\n", mem.FormatSize(g.Bytes),
			mem.FormatSize(g.Compacted))
	}
}

// partitionsLine describes the partitions that nodes are in the order of.
func partitionsLine(m *kv.Meta) string {
	line := fmt.Sprintf("%d (%s)", len(m.Partitions), m.Partitioner)
	if m.EdgeCut == nil {
		return line
	}
	least, most := m.Nodes, uint64(0)
	for _, p := range m.Partitions {
		least, most = min(least, p.Nodes), max(most, p.Nodes)
	}
	return fmt.Sprintf("%s of %s to %s nodes, %.1f %% of edges cut", line, cli.Count(least),
		cli.Count(most), 100**m.EdgeCut)
}

func zeroDegree(m *kv.Meta) string {
	if len(m.Stats.InHist) == 0 {
		return "0"
	}
	return cli.Count(m.Stats.InHist[0])
}
