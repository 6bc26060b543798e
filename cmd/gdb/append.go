package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	var del live.Deletion
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "append STORE SRC...",
		Short: "Add edges and nodes to a store, all of them or none",
		Long: `Add what files hold to a store: edges, and nodes whose ids it lacks, with
features, labels and splits. Those of nodes that it has replace what they had.
Files are read as gdb ingest reads them, and the store is as it was ingested,
directed or not, with or without duplicates. What is added is durable when the
command ends, and is read beside what was there; gdb compact writes both anew as
one. See docs/live.md for what is not read so. A store with types of nodes takes
edges of its relations, among nodes that it has: --edges SRC:REL:DST=FILE.

--delete-edges and --delete-nodes delete what files name instead: edges by their
ends and, if the file has them, type and time, all that are parallel too; nodes
with all their edges. What a file names and the store lacks is counted.`,
		Example: `  gdb append shop.gdb --edges today.csv --nodes new.csv --label-col kind
  gdb append typed.gdb --edges user:buys:item=today.csv
  gdb append shop.gdb --nodes changed.csv --label-col kind
  gdb append shop.gdb --delete-edges returned.csv --delete-nodes closed.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(errors.New("append: no STORE: name the store and its sources"))
			}
			if del.Edges != "" || del.DeleteNodes != "" {
				return a.delete(cmd, args, opt, &more, del, asJSON)
			}
			opt.NoEdges = true
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
	cmd.Flags().StringVar(&del.Edges, "delete-edges", "", "file of edges to delete")
	cmd.Flags().StringVar(&del.DeleteNodes, "delete-nodes", "",
		"text file with an id a line: nodes to delete, with\nall their edges")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cli.OnlyOnce(cmd.Flags())
	return cmd
}

func (a *app) append(ctx context.Context, dir string, opt *ingest.Options, asJSON bool) error {
	bar := a.Progress()
	opt.Progress = bar.Update
	done, err := live.Append(ctx, a.FS, dir, *opt)
	bar.Finish()
	switch {
	case errors.Is(err, live.ErrUsage):
		return cli.Usage(err)
	case err != nil:
		return err
	case asJSON:
		return a.printFields(done)
	case a.Quiet:
		return nil
	}
	w := &cli.Lines{W: a.Out}
	w.Printf("%s: snapshot %d adds %s, %s\n", dir, done.Snapshot,
		nodesAndEdges(done.Nodes, done.Edges), mem.FormatSize(done.Bytes))
	if done.Replaced > 0 {
		w.Printf("%s had other values before\n", cli.Plural(int(done.Replaced), "node"))
	}
	return w.Err
}

// deleteFlags say how a file of edges to delete is read.
var deleteFlags = []string{"format", "src-col", "dst-col", "rel-col", "weight-col", "time-col",
	"na", "delim", "comment", "header", "delete-edges", "delete-nodes", "json"}

func (a *app) delete(cmd *cobra.Command, args []string, opt *ingest.Options, more *ingestWords,
	del live.Deletion, asJSON bool) error {
	if len(args) > 1 {
		return cli.Usage(errors.New("append: --delete-edges and --delete-nodes name what they " +
			"read: add other sources by a command of their own"))
	}
	var err error
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && !slices.Contains(deleteFlags, f.Name) {
			err = cli.Usage(fmt.Errorf("append: --%s does not go with --delete-edges or "+
				"--delete-nodes", f.Name))
		}
	})
	if err != nil {
		return err
	}
	edges := del.Edges
	del.Options = *opt
	del.Edges, del.Out = edges, "-"
	if edges != "" {
		if err := a.ingestOptions(&del.Options, nil, more, cmd.Flags()); err != nil {
			return err
		}
	}
	del.Out, del.Found, del.BlockBytes, del.Memory = "", nil, 0, a.Memory
	bar := a.Progress()
	del.Progress = bar.Update
	done, err := live.Delete(cmd.Context(), a.FS, args[0], del)
	bar.Finish()
	switch {
	case errors.Is(err, live.ErrUsage):
		return cli.Usage(err)
	case err != nil:
		return err
	case asJSON:
		return a.printFields(done)
	}
	w := &cli.Lines{W: a.Out}
	if !a.Quiet {
		w.Printf("%s: snapshot %d is without %s\n", args[0], done.Snapshot,
			nodesAndEdges(done.Nodes, done.Edges))
	}
	if done.LostNodes+done.LostEdges > 0 {
		a.Note("the files name " + nodesAndEdges(done.LostNodes, done.LostEdges) +
			" that the store does not have")
	}
	return w.Err
}

// nodesAndEdges returns two counts in words.
func nodesAndEdges(nodes, edges uint64) string {
	words := [2]string{cli.Count(nodes) + " nodes", cli.Count(edges) + " edges"}
	if nodes == 1 {
		words[0] = "1 node"
	}
	if edges == 1 {
		words[1] = "1 edge"
	}
	return words[0] + " and " + words[1]
}
