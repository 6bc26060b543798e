package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"gdb/blockdev"
	"gdb/cmd/gdb/graphnote"
	"gdb/internal/mem"
	"gdb/internal/wrap"
	"gdb/kv"
	"gdb/layout"

	"github.com/spf13/cobra"
)

// lines writes formatted text and keeps the first error.
type lines struct {
	w   io.Writer
	err error
}

func (l *lines) printf(format string, args ...any) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.w, format, args...)
	}
}

// fieldIndent is where the text of a field begins.
const fieldIndent = 12

// field writes a name and what is said of it, in as many lines as that takes.
func (l *lines) field(name, format string, args ...any) {
	text := wrap.Indented(fmt.Sprintf(format, args...), fieldIndent)
	l.printf("%-*s%s\n", fieldIndent, name, text[fieldIndent:])
}

func (a *app) infoCommand() *cobra.Command {
	var asJSON, io bool
	cmd := &cobra.Command{
		Use: "info STORE", Short: "Print what is in a store", Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := layout.Open(cmd.Context(), a.fs, args[0])
			if err != nil {
				return fmt.Errorf("info: %w", err)
			}
			if io {
				return a.printIO(st, asJSON)
			}
			if asJSON {
				return a.printFields(st.Meta())
			}
			if err := printInfo(a.out, args[0], st.Meta()); err != nil {
				return err
			}
			all, err := st.Catalog().Runs(cmd.Context())
			if err != nil || len(all) == 0 {
				return err
			}
			w := &lines{w: a.out}
			w.printf("\n")
			return printRuns(w, all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&io, "io", false, "print how the store's files are read, and why")
	return cmd
}

func (a *app) printJSON(v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n", b)
	return err
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
	return a.printJSON(json.RawMessage(fieldName.ReplaceAllFunc(b, func(name []byte) []byte {
		return bytes.ToLower(wordBegin.ReplaceAll(name, []byte("${1}_$2")))
	})))
}

// printIO opens the largest file of the store the way training would, and says how it is read.
func (a *app) printIO(st *layout.Store, asJSON bool) (err error) {
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		return fmt.Errorf("info: %w", err)
	}
	defer func() { err = firstError(err, dev.Close()) }()
	largest := kv.FileMeta{}
	for _, f := range st.Meta().Files {
		if f.Size > largest.Size {
			largest = f
		}
	}
	if largest.Path != "" {
		f, err := dev.OpenFile(st.FS(), st.Path(strings.Split(largest.Path, "/")...))
		if err != nil {
			return fmt.Errorf("info: %w", err)
		}
		defer func() { err = firstError(err, f.Close()) }()
	}
	info := dev.Info()
	if asJSON {
		return a.printFields(info)
	}
	w := &lines{w: a.out}
	w.field("backend", "%s", info.Backend)
	w.field("queue depth", "%d", info.QueueDepth)
	w.field("why", "%s", info.Why)
	return w.err
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func storeBytes(m *kv.Meta) (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

func classCount(m *kv.Meta) int {
	if m.Labels == nil {
		return 0
	}
	return len(m.Labels.Classes)
}

func printInfo(out io.Writer, dir string, m *kv.Meta) error {
	w := &lines{w: out}
	w.printf("store       %s\n", dir)
	w.printf("uuid        %s\n            format %d, made by %s\n", m.UUID, m.Format, m.CreatedBy)
	w.printf("source      %s\n", m.Source.Format)
	for _, path := range m.Source.Paths {
		w.printf("            %s\n", path)
	}
	w.printf("nodes       %s\n", count(m.Nodes))
	reverse := ""
	if m.Undirected {
		reverse = ", reverse edges added"
	}
	w.printf("edges       %s (%s%s)\n", count(m.Edges), strings.Join(m.Directions, " and "),
		reverse)
	if n := len(m.EdgeTypes); n > 0 {
		w.printf("edge types  %d: %s\n", n, shorten(m.EdgeTypes, 8))
	}
	for i, t := range m.NodeTypes {
		if i == 0 {
			w.printf("node types  ids are TYPE:ID\n")
		}
		w.printf("  type      %-30.30s %s\n", t.Name, count(t.Nodes))
	}
	w.printf("in-degree   max %s, %s nodes without in-edges\n", count(m.Stats.InMax),
		zeroDegree(m))
	w.printf("ids         %s\n", m.IDs.Kind)
	for _, f := range m.Features {
		w.printf("features    %s: %d x %s, %s a row, page %s\n", f.Name, f.Dim, f.DType,
			mem.FormatSize(int64(f.RowBytes)), mem.FormatSize(int64(f.PageBytes)))
	}
	if l := m.Labels; l != nil && l.Kind == "target" {
		w.printf("labels      numbers, of %s nodes\n", count(l.Labeled))
	} else if l != nil {
		w.printf("labels      %s, %s of nodes labeled; %d classes: %s\n", l.Kind, count(l.Labeled),
			len(l.Classes), cut(shorten(l.Classes, 8), 28))
	}
	if l := m.Labels; l != nil && len(l.ClassCounts) > 1 && len(l.ClassCounts) <= 20 {
		for k, n := range l.ClassCounts {
			w.printf("  class     %-24s %9s\n", cut(l.Classes[k], 24), count(n))
		}
	}
	for _, s := range m.Splits {
		w.printf("split       %s: %s nodes\n", s.Name, count(s.Count))
	}
	for _, line := range graphnote.EdgeSplits(m) {
		w.printf("edge split  %s\n", line)
	}
	w.printf("partitions  %d (%s)\n", len(m.Partitions), m.Partitioner)
	w.printf("files       %d, %s\n", len(m.Files), mem.FormatSize(storeBytes(m)))
	for _, note := range graphnote.Directions(m) {
		w.printf("note  %s\n", note)
	}
	return w.err
}

func zeroDegree(m *kv.Meta) string {
	if len(m.Stats.InHist) == 0 {
		return "0"
	}
	return count(m.Stats.InHist[0])
}

func shorten(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, " ")
	}
	return strings.Join(names[:most], " ") + " …"
}
