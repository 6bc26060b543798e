package main

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/layout"
	"gdb/layout/export"
	"gdb/layout/ingest/schema"

	"github.com/spf13/cobra"
)

func (a *app) exportCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "export STORE --out DIR",
		Short: "Give nodes and edges back as Parquet, with your ids and columns",
		Long: `Write a directory of Parquet: a file for the nodes of each type, with ids,
columns, labels, splits and features, and one for the edges of each relation,
with the ids of both ends, weights, times and columns. Its schema.json says what
they are, so that ingesting the directory makes an equal store. The directory
appears whole, or not at all.`,
		Example: `  gdb export shop.gdb --out shop/
  gdb ingest shop/ --out again.gdb`,
		Args: cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.export(cmd.Context(), args[0], out)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "directory of the files; it is made")
	return cmd
}

func (a *app) export(ctx context.Context, dir, out string) (err error) {
	if out == "" {
		return cli.Usage(errors.New("export: no --out DIR: say where the files go"))
	}
	if err := layout.CheckOutside(a.FS, out); err != nil {
		return cli.Usage(fmt.Errorf("export: --out %w", err))
	}
	st, dev, err := a.OpenStore(ctx, dir, string(blockdev.Auto))
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	bar := a.Progress()
	opt := export.Options{Out: out, Memory: a.Memory, Progress: bar.Update}
	if !a.Quiet {
		opt.Notes = a.Err
	}
	err = export.Export(ctx, st, dev, a.FS, opt)
	bar.Finish()
	if err != nil || a.Quiet {
		return err
	}
	m, w := st.Meta(), &cli.Lines{W: a.Out}
	nodes := m.Nodes
	if deleted, err := st.Deleted(ctx); err != nil {
		return fmt.Errorf("export: %w", err)
	} else if deleted != nil {
		nodes -= deleted.GetCardinality()
	}
	w.Printf("%s: %s nodes, %s edges, and %s for %s ingest\n", out, cli.Count(nodes),
		cli.Count(m.Edges), schema.FileName, "gdb")
	return w.Err
}
