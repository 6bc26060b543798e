// Package indexcmd is the command that makes, lists and drops indexes of nodes by columns.
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

	"github.com/spf13/cobra"
)

// app has the command.
type app struct{ *cli.App }

// Command returns the command index.
func Command(of *cli.App) *cobra.Command {
	a := &app{of}
	var drop, asJSON bool
	cmd := &cobra.Command{
		Use:   "index STORE [TYPE.COLUMN] [--drop]",
		Short: "Make an index of nodes by a column, list indexes, drop one",
		Long: `Make an index of the nodes of a type by a column, or make it again, so that
MATCH finds the nodes whose value is equal, or IN a list, and looks at no other.
Without a column, the indexes of the store are listed. Nodes are found by their
ids without one. An index is of the snapshot that it was made of; statements on
another one say that they do not use it.`,
		Example: `  gdb index shop.gdb user.name
  gdb index shop.gdb
  gdb index shop.gdb user.name --drop`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 || len(args) > 2:
				return cli.Usage(fmt.Errorf("index: want %s", cmd.Use))
			case len(args) == 1 && drop:
				return cli.Usage(errors.New("index: --drop takes one away: name it as " +
					"TYPE.COLUMN"))
			case asJSON && len(args) == 2:
				return cli.Usage(errors.New("index: --json is of the list: leave TYPE.COLUMN out"))
			case len(args) == 1:
				return a.listIndexes(cmd.Context(), args[0], asJSON)
			}
			return a.index(cmd.Context(), args[0], args[1], drop)
		},
	}
	cmd.Flags().BoolVar(&drop, "drop", false, "take the index away")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
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
				m.Bytes, m.Values, nodeindex.Stale(m, st)})
		}
		return a.PrintJSON(map[string]any{"indexes": listed})
	}
	w := &cli.Lines{W: a.Out}
	Print(w, st, all)
	if len(all) == 0 && !a.Quiet {
		a.Note(fmt.Sprintf("no index; %s index %s TYPE.COLUMN makes one", message.Program, dir))
	}
	return w.Err
}

// Print prints a line for each index.
func Print(w *cli.Lines, st *layout.Store, all []kv.IndexMeta) {
	for _, m := range all {
		line := fmt.Sprintf("%s %s, %s values, %s", m.Name(), m.Type, cli.Count(m.Values),
			mem.FormatSize(m.Bytes))
		if why := nodeindex.Stale(m, st); why != "" {
			line += "; not used: " + why
		}
		w.Printf("index       %s\n", line)
	}
}

// index makes an index, or drops it. A name of a type may have a point, if one before the last
// point is of a type.
func (a *app) index(ctx context.Context, dir, name string, drop bool) (err error) {
	st, dev, err := a.OpenStore(ctx, dir, string(blockdev.Auto))
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	defer func() { err = cli.FirstError(err, dev.Close()) }()
	label, property, ok := splitName(st.Meta(), name)
	if !ok {
		return cli.Usage(fmt.Errorf("index: %q is not TYPE.COLUMN; %s info %s lists them", name,
			message.Program, dir))
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
