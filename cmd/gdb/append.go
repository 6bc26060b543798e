package main

import (
	"context"
	"errors"

	"gdb/cmd/gdb/cli"
	"gdb/internal/mem"
	"gdb/layout/ingest"
	"gdb/layout/live"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// appendFlags are the flags of ingest that say what is read; the others shape the store.
var appendFlags = []string{"format", "edges", "nodes", "labels", "split", "src-col",
	"dst-col", "rel-col", "weight-col", "time-col", "id-col", "label-col", "feature-cols",
	"split-col", "na", "fill", "delim", "comment", "header", "skip-bad", "allow-nan"}

func (a *app) appendCommand() *cobra.Command {
	opt := &ingest.Options{}
	var more ingestWords
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "append STORE SRC...",
		Short: "Add edges and nodes to a store, all of them or none",
		Long: `Add what files hold to a store: edges, and nodes whose ids it lacks, with
features, labels and splits. Files are read as gdb ingest reads them, and the
store is as it was ingested, directed or not, with or without duplicates. What
is added is durable when the command ends, and is read beside what was there;
gdb compact writes both anew as one. See docs/live.md for what is not read so.`,
		Example: `  gdb append shop.gdb --edges today.csv --nodes new.csv --label-col kind`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(errors.New("append: no STORE: name the store and its sources"))
			}
			opt.Out = "-" // the options are checked as those of an ingest
			if err := a.ingestOptions(opt, args[1:], &more, cmd.Flags()); err != nil {
				return err
			}
			opt.Found, opt.BlockBytes = nil, 0
			return a.append(cmd.Context(), args[0], opt, asJSON)
		},
	}
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	ingestFlags(all, opt, &more)
	for _, name := range appendFlags {
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cli.OnlyOnce(cmd.Flags())
	return cmd
}

func (a *app) append(ctx context.Context, dir string, opt *ingest.Options, asJSON bool) error {
	bar := a.Progress()
	opt.Progress = bar.Update
	level, err := live.Append(ctx, a.FS, dir, *opt)
	bar.Finish()
	switch {
	case errors.Is(err, live.ErrUsage):
		return cli.Usage(err)
	case err != nil:
		return err
	case asJSON:
		return a.printFields(level)
	case a.Quiet:
		return nil
	}
	w := &cli.Lines{W: a.Out}
	w.Printf("%s: snapshot %d adds %s nodes and %s edges, %s\n", dir, level.Snapshot,
		cli.Count(level.Nodes), cli.Count(level.Edges), mem.FormatSize(level.Bytes))
	return w.Err
}
