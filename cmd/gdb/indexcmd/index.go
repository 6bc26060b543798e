// Package indexcmd is the command that makes, lists and drops indexes of nodes by columns and by
// vectors.
package indexcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/nodeindex"
	"gdb/train/ivf"
	"gdb/train/link/triples"
	"gdb/train/nearest"

	"github.com/spf13/cobra"
)

// app has the command.
type app struct{ *cli.App }

// vectorsWord stands for vectors in the place of a column, which has a point.
const vectorsWord = "vectors"

// Command returns the command index.
func Command(of *cli.App) *cobra.Command {
	a := &app{of}
	var o options
	cmd := &cobra.Command{
		Use:   "index STORE [TYPE.COLUMN | vectors] [--drop]",
		Short: "Make, list or drop indexes of nodes by a column or by vectors",
		Long: `Make an index of the nodes of a type by a column, or make it again, so that
MATCH finds the nodes whose value is equal, or IN a list, and looks at no other.
Nodes are found by their ids without one.

With the word vectors it is an index of the vectors that a run has learned of
nodes (--run), or of rows of features (--features), so that NEAREST,
gdb.nearest and POST /nearest compare a node with a small part of them. How
much is looked at is measured on vectors of the store itself, so that --recall
of the ten closest are found on average; it is printed, and kept.

Without either, the indexes of the store are listed. An index is of the
snapshot that it was made of, and of vectors as they were then; statements on
others say that they do not use it.`,
		Example: `  gdb index shop.gdb user.name
  gdb index shop.gdb vectors --run first
  gdb index shop.gdb vectors --features features --by euclid --recall 0.98
  gdb index shop.gdb
  gdb index shop.gdb user.name --drop`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return cli.Usage(fmt.Errorf("index: %w", err))
			}
			switch {
			case len(args) == 1:
				return a.listIndexes(cmd.Context(), args[0], o.json)
			case args[1] == vectorsWord:
				return a.vectors(cmd.Context(), args[0], o)
			}
			return a.index(cmd.Context(), args[0], args[1], o.drop)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.drop, "drop", false, "take the index away")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	f.StringVar(&o.of.Run, "run", "", "run whose learned vectors are indexed")
	f.StringVar(&o.of.Features, "features", "", "features whose rows are indexed")
	f.StringVar(&o.by, "by", "", "how vectors are compared: "+message.OneOf(ivf.Closenesses())+
		" (default: what fits them)")
	f.Float64Var(&o.recall, "recall", 0.95,
		"share of the ten closest vectors that is found, on average")
	return cmd
}

// options are the flags.
type options struct {
	drop, json bool
	of         triples.VectorsOf
	by         string
	recall     float64
}

// check refuses what does not go together.
func (o *options) check(cmd *cobra.Command, args []string) error {
	ofVectors := len(args) == 2 && args[1] == vectorsWord
	for _, name := range []string{"run", "features", "by", "recall"} {
		if cmd.Flags().Changed(name) && !ofVectors {
			return fmt.Errorf("--%s goes with vectors, as in %s index STORE vectors --run NAME",
				name, message.Program)
		}
	}
	switch {
	case len(args) == 0 || len(args) > 2:
		return fmt.Errorf("want %s", cmd.Use)
	case len(args) == 1 && o.drop:
		return errors.New("--drop takes one away: name it as TYPE.COLUMN, or vectors")
	case o.json && len(args) == 2:
		return errors.New("--json is of the list: leave " + args[1] + " out")
	case !ofVectors:
		return nil
	case o.of.Check() != nil:
		return o.of.Check()
	case o.by != "" && ivf.CheckCloseness(o.by) != nil:
		return fmt.Errorf("--by %q: want %s", o.by, message.OneOf(ivf.Closenesses()))
	case !(o.recall > 0 && o.recall <= 1):
		return fmt.Errorf("--recall %v: want more than 0, and at most 1", o.recall)
	case o.drop && (o.by != "" || cmd.Flags().Changed("recall")):
		return errors.New("--drop takes an index away: leave --by and --recall out")
	}
	return nil
}

// listedIndex is an index as JSON has it.
type listedIndex struct {
	Label    string    `json:"label"`
	Property string    `json:"property"`
	Type     string    `json:"type"`
	Snapshot uint64    `json:"snapshot"`
	Created  time.Time `json:"created"`
	Bytes    int64     `json:"bytes"`
	Values   uint64    `json:"values"`
	By       string    `json:"by,omitempty"`
	Lists    int       `json:"lists,omitempty"`
	Probes   int       `json:"probes,omitempty"`
	Rerank   int       `json:"rerank,omitempty"`
	Recall   float64   `json:"recall,omitempty"`
	Unused   string    `json:"unused,omitempty"` // why statements do not use it
}

func (a *app) listIndexes(ctx context.Context, dir string, asJSON bool) error {
	st, err := a.Open(ctx, dir)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	all, err := st.Catalog().Indexes(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		listed := []listedIndex{}
		for _, m := range all {
			listed = append(listed, listedIndex{m.Label, m.Property, m.Type, m.Snapshot, m.Created,
				m.Bytes, m.Values, m.By, m.Lists, m.Probes, m.Rerank, m.Recall, stale(m, st)})
		}
		return a.PrintJSON(map[string]any{"indexes": listed})
	}
	w := &cli.Lines{W: a.Out}
	Print(w, st, all)
	if len(all) == 0 && !a.Quiet {
		a.Note(fmt.Sprintf("no index; %s index %s TYPE.COLUMN makes one, or vectors --run NAME",
			message.Program, dir))
	}
	return w.Err
}

// Print prints a line for each index.
func Print(w *cli.Lines, st *layout.Store, all []kv.IndexMeta) {
	for _, m := range all {
		line := fmt.Sprintf("%s %s, %s values, %s", m.Name(), m.Type, cli.Count(m.Values),
			mem.FormatSize(m.Bytes))
		if m.Type == nearest.IndexType {
			line = fmt.Sprintf("%s, %s vectors by %s, %s; %s", m.Name(), cli.Count(m.Values), m.By,
				mem.FormatSize(m.Bytes), searched(m))
		}
		if why := stale(m, st); why != "" {
			line += "; not used: " + why
		}
		w.Printf("index       %s\n", line)
	}
}

// searched tells how much of an index of vectors a search looks at, and what it finds.
func searched(m kv.IndexMeta) string {
	return fmt.Sprintf("recall@10 %.3f with %s of %s lists and %s candidates", m.Recall,
		cli.Count(uint64(m.Probes)), cli.Count(uint64(m.Lists)), cli.Count(uint64(m.Rerank)))
}

// stale says why an index is not used; "" if it is.
func stale(m kv.IndexMeta, st *layout.Store) string {
	if m.Type == nearest.IndexType {
		return nearest.Stale(m, st)
	}
	return nodeindex.Stale(m, st)
}

// vectors makes an index of vectors, or drops it.
func (a *app) vectors(ctx context.Context, dir string, o options) (err error) {
	st, dev, err := a.OpenStore(ctx, dir, string(blockdev.Auto))
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	if o.drop {
		err := nearest.Drop(ctx, st, o.of)
		if errors.Is(err, kv.ErrNotFound) {
			return cli.Usage(fmt.Errorf("index: there is no index of vectors of %s; %s index %s "+
				"lists them", o.of, message.Program, dir))
		}
		return err
	}
	p := a.Progress()
	m, err := nearest.Build(ctx, st, dev, nearest.Options{Of: o.of, By: o.by, Recall: o.recall,
		Threads: a.Threads, Seed: a.Seed, Budget: mem.NewProcessBudget(a.Memory),
		Progress: func(stage string, share float64) {
			p.Update(stage, int64(1000*share), 1000, "")
		}})
	p.Finish()
	var not *nearest.UsageError
	if errors.As(err, &not) {
		return cli.Usage(fmt.Errorf("index: %w", err))
	}
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	if m.Recall < o.recall {
		a.Note(fmt.Sprintf("recall@10 is %.3f, and %v was asked for: these vectors need more than "+
			"an index looks at", m.Recall, o.recall))
	}
	if a.Quiet {
		return nil
	}
	_, err = fmt.Fprintf(a.Out, "index of %s: %s vectors by %s, %s; %s\n", m.Name(),
		cli.Count(m.Values), m.By, mem.FormatSize(m.Bytes), searched(m))
	return err
}

// index makes an index, or drops it. A name of a type may have a point, if one before the last
// point is of a type.
func (a *app) index(ctx context.Context, dir, name string, drop bool) (err error) {
	st, dev, err := a.OpenStore(ctx, dir, string(blockdev.Auto))
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	label, property, ok := splitName(st.Meta(), name)
	if !ok {
		return cli.Usage(fmt.Errorf("index: %q is not TYPE.COLUMN or vectors; %s info %s lists "+
			"columns", name, message.Program, dir))
	}
	if drop {
		err := nodeindex.Drop(ctx, st, label, property)
		if errors.Is(err, kv.ErrNotFound) {
			return cli.Usage(fmt.Errorf("index: there is no index %s; %s index %s lists them", name,
				message.Program, dir))
		}
		return err
	}
	m, err := nodeindex.Build(ctx, st, dev, mem.NewProcessBudget(a.Memory), label, property)
	var not *nodeindex.UsageError
	if errors.As(err, &not) {
		return cli.Usage(fmt.Errorf("index %s: %w", name, err))
	}
	if err != nil || a.Quiet {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "index %s: %s values, %s\n", m.Name(), cli.Count(m.Values),
		mem.FormatSize(m.Bytes))
	return err
}

// splitName returns the type and the column of a name. Of the points in it, the first counts that
// ends the name of a type, else the first.
func splitName(m *kv.Meta, name string) (label, property string, ok bool) {
	for _, t := range m.NodeTypes {
		if property, is := strings.CutPrefix(name, t.Name+"."); is && property != "" {
			return t.Name, property, true
		}
	}
	label, property, ok = strings.Cut(name, ".")
	return label, property, ok && label != "" && property != ""
}
