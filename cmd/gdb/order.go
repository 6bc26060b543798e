package main

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/partitioner"
	"gdb/layout/parts"

	"github.com/spf13/cobra"
)

func (a *app) orderCommand() *cobra.Command {
	var opt parts.OrderOptions
	var method string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "order STORE --partitions K --out NEW",
		Short: "Write a store anew with its nodes in order of partitions",
		Long: `Deal the nodes of a store to K partitions and write a new store in which each
partition is a range of node numbers, so that training reads it whole. gap,
fennel and ldg keep neighbors together; gap also gives each partition its share
of the training nodes of each class. Ids, edges, features, labels and splits
stay as they are; runs stay with the old store. See docs/partitioners.md.
After a kill, the same command with --resume goes on.`,
		Example: `  gdb order papers.gdb --partitions 256 --cluster --out ordered.gdb`,
		Args:    cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opt.Method = partitioner.Method(method)
			return a.order(cmd.Context(), args[0], opt, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Out, "out", "", "directory of the new store")
	f.StringVar(&method, "partitioner", string(partitioner.GAP),
		"gap, fennel, ldg, random or range")
	f.IntVar(&opt.Parts, "partitions", 0, "number of node partitions")
	f.IntVar(&opt.Restream, "restream", 0, "how often lists are read again, to deal nodes anew")
	f.BoolVar(&opt.Cluster, "cluster", false, "cluster nodes first: fewer edges are cut")
	cli.SplitColumn(f, &opt.Split)
	f.BoolVar(&opt.Resume, "resume", false, "go on with what was stopped")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// order writes a store anew.
func (a *app) order(ctx context.Context, dir string, opt parts.OrderOptions, asJSON bool) (
	err error) {
	if opt.Out == "" {
		return cli.Usage(errors.New("order: no --out NEW: say where the new store goes"))
	}
	if err := layout.CheckOutside(a.FS, opt.Out); err != nil {
		return cli.Usage(fmt.Errorf("order: --out %w", err))
	}
	st, dev, err := a.OpenStore(ctx, dir, string(blockdev.Auto))
	if err != nil {
		return fmt.Errorf("order: %w", err)
	}
	opt.Memory, opt.Threads, opt.Seed, opt.Version = a.Memory, a.Threads, a.Seed, "gdb "+version
	bar := a.Progress()
	opt.Progress = bar.Update
	if a.Verbose {
		opt.Notes = a.Err
	}
	meta, report, err := parts.Order(ctx, st, dev, a.FS, opt)
	bar.Finish()
	switch {
	case err != nil && ctx.Err() != nil:
		return a.stopped("order", ctx.Err())
	case err != nil:
		return err
	case asJSON:
		return a.PrintJSON(report)
	case a.Quiet:
		return nil
	}
	w := &cli.Lines{W: a.Out}
	w.Printf("%s: %s nodes, %s edges, %s\n", opt.Out, cli.Count(meta.Nodes), cli.Count(meta.Edges),
		mem.FormatSize(meta.Bytes()))
	w.Printf("partitions %s\n", partitionsLine(meta))
	return printDealt(w, report)
}

// printDealt prints how good partitions are, and what it took to deal nodes to them.
func printDealt(w *cli.Lines, r *partitioner.Report) error {
	w.Printf("edge cut %.4f: entries of lists whose neighbor is in another of %d partitions\n",
		r.Cut, r.Parts)
	labels := ""
	if r.HasLabel {
		labels = fmt.Sprintf(", of a label %.3f", r.Labels)
	}
	w.Printf("balance %.3f of nodes, %.3f of edges%s: the largest partition, by the mean\n",
		r.Nodes, r.Edges, labels)
	rate := ""
	if r.Rate > 0 {
		rate = fmt.Sprintf(", %s edges a second", cli.Count(uint64(r.Rate)))
	}
	w.Printf("dealt in %.2f s%s; peak memory %s\n", r.Seconds, rate, mem.FormatSize(r.PeakRSS))
	return w.Err
}
