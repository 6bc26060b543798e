package main

import (
	"context"
	"fmt"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/layout"
	"gdb/layout/parts"

	"github.com/spf13/cobra"
)

func (a *app) partitionCommand() *cobra.Command {
	var opt parts.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "partition STORE --parts K --hops L --out DIR",
		Short: "Cut a store into stores for several machines",
		Long: `Cut a store into K stores, one for each machine that trains, that need nothing
from each other. The nodes of the split train (of several, the default one) are
dealt out evenly, near ones together; each part also has all nodes within L hops
of its own, with their features and labels, under the ids they had. What no
batch reaches is left out: evaluate with the whole store. See docs/python.md.
DIR appears whole or not at all.`,
		Example: `  gdb partition papers.gdb --parts 4 --hops 3 --out parts`,
		Args:    cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.partition(cmd.Context(), args[0], opt, asJSON)
		},
	}
	f := cmd.Flags()
	f.IntVar(&opt.Parts, "parts", 0, "how many stores to make")
	f.IntVar(&opt.Hops, "hops", 0, "how far batches reach: the layers of the model")
	f.StringVar(&opt.Out, "out", "", "directory of the parts, which is made")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// partition cuts a store.
func (a *app) partition(ctx context.Context, dir string, opt parts.Options, asJSON bool) (
	err error) {
	if opt.Out != "" {
		if err := layout.CheckOutside(a.FS, opt.Out); err != nil {
			return cli.Usage(fmt.Errorf("partition: --out %w", err))
		}
	}
	st, dev, err := a.OpenStore(ctx, dir, string(blockdev.Auto))
	if err != nil {
		return fmt.Errorf("partition: %w", err)
	}
	opt.Memory, opt.Threads, opt.Version = a.Memory, a.Threads, "gdb "+version
	bar := a.Progress()
	opt.Progress = bar.Update
	if a.Verbose {
		opt.Notes = a.Err
	}
	report, err := parts.Write(ctx, st, dev, a.FS, opt)
	bar.Finish()
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(report)
	}
	return printParts(&cli.Lines{W: a.Out}, report)
}

// printParts prints what was made.
func printParts(w *cli.Lines, r *parts.Report) error {
	for _, p := range r.Parts {
		w.Printf("%s: %s training nodes, %s nodes (%.1f %% of the store), %s edges\n", p.Path,
			cli.Count(p.Train), cli.Count(p.Nodes), 100*float64(p.Nodes)/float64(r.Nodes),
			cli.Count(p.Edges))
	}
	w.Printf("replication %.2f: how often a node that is reached is stored\n", r.Replication)
	w.Printf("balance %.3f: training nodes of the largest part, by the mean\n", r.Balance)
	w.Printf("left out %s of %s nodes, which no batch reaches\n", cli.Count(r.Nodes-r.Reached),
		cli.Count(r.Nodes))
	return w.Err
}
