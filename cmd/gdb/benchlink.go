package main

import (
	"strings"

	"gdb/bench"
	"gdb/cmd/gdb/benches"
	"gdb/cmd/gdb/cli"
	"gdb/internal/message"
	"gdb/train/setting"

	"github.com/spf13/cobra"
)

// benchLinkLong says what is compared and what the columns are.
const benchLinkLong = `Train for link prediction with all vectors in memory, and with shares of
their partitions in memory in each order of going through them (gdb train
--task link --order), from the same settings. A run is trained for each row,
and removed. A setting that cannot be has a row without figures, and the reason
below the table. Ctrl-C ends the row under way and prints those before it.

The order mmap is a baseline: vectors and state in one file that is mapped into
memory, and edges in a random order. Its epoch is worked out from the batches of
--mmap-seconds. What it keeps in memory is up to the kernel: run it in a cgroup
to bound that.

Columns:
  epb            Edge Permutation Bias of the first epoch: 0 is an order by
                 chance
  epoch_s        an epoch without evaluation, mean of all; wait_s of it for the
                 disk
  read_bytes     of vectors, an epoch, written_bytes too
  mrr            filtered, of the test edges, by the vectors of the best
                 evaluation
--json has hits@10 and partitions_in_memory besides.`

func (a *app) benchLinkCommand() *cobra.Command {
	t, opt := &trainFlags{}, bench.LinkOptions{}
	var orders, buffers string
	cmd := &cobra.Command{
		Use: "link STORE", Args: cli.ExactArgs(1),
		Short: "Link prediction with vectors in memory, and with parts of them",
		Long:  benchLinkLong,
		Example: `  gdb bench link kg.gdb --decoder distmult --dim 100 --epochs 24
  gdb bench link kg.gdb --orders memory,tlbeta --buffers 1/4,1/8 --json
  gdb bench link kg.gdb --orders tlbeta,mmap --buffers 1/8`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opt.Orders = strings.Split(orders, ",")
			var err error
			if opt.Buffers, err = bench.ParseBuffers(buffers); err != nil {
				return cli.Usage(err)
			}
			if opt.Config, err = t.link(a, cmd.Flags(), nil); err != nil {
				return err
			}
			return a.benchLink(cmd, args[0], t, opt)
		},
	}
	f := cmd.Flags()
	f.StringVar(&orders, "orders", strings.Join(bench.DefaultLinkOrders(), ","),
		"where vectors are, with commas: "+message.OneOf(bench.LinkOrders()))
	f.StringVar(&buffers, "buffers", "1/2,1/4,1/8",
		"shares of the partitions that are in memory, but for memory and mmap")
	f.Float64Var(&opt.MmapSeconds, "mmap-seconds", 60,
		"how long the order mmap trains, the first half of it to warm up")
	t.bind(f, setting.BenchLink)
	return cmd
}

// benchLink opens the store, measures, and prints.
func (a *app) benchLink(cmd *cobra.Command, store string, t *trainFlags,
	opt bench.LinkOptions) (err error) {
	if err := opt.Validate(); err != nil {
		return cli.Usage(err)
	}
	if opt.Store, opt.Device, err = a.OpenStore(cmd.Context(), store, t.line.IO()); err != nil {
		return err
	}
	p := a.Progress()
	opt.Progress = p.Update
	r, err := bench.Link(cmd.Context(), opt)
	p.Finish()
	if r == nil || len(r.Rows) == 0 {
		return err
	}
	return cli.FirstError(err, benches.Print(&a.App, r, t.json))
}
