package benches

import (
	"context"
	"errors"

	"gdb/bench"
	"gdb/cmd/gdb/cli"
	"gdb/internal/message"
	"gdb/layout/partitioner"

	"github.com/spf13/cobra"
)

func (a commands) partition() *cobra.Command {
	opt := bench.PartitionOptions{}
	var store, io string
	var cmd *cobra.Command
	cmd = a.command("partition", "Edge cut, balance, time and memory of streaming partitioners",
		`  gdb bench partition --store big.gdb --parts 64,1024
  gdb bench partition --store big.gdb --methods gap --restream 4 --json`,
		func(ctx context.Context) (r *bench.Report, err error) {
			if store == "" {
				return nil, cli.Usage(errors.New("bench partition: no --store DIR: " +
					message.Program + " ingest makes one"))
			}
			opt.Memory = a.Memory
			if opt.Store, opt.Device, err = a.OpenStore(cmd.Context(), store, io); err != nil {
				return nil, err
			}
			p := a.Progress()
			defer p.Finish()
			opt.Progress = p.Update
			r, err = bench.Partition(ctx, opt)
			if errors.Is(err, partitioner.ErrOptions) {
				return nil, cli.Usage(err)
			}
			return r, err
		})
	f := cmd.Flags()
	f.StringVar(&store, "store", "", "store whose nodes are dealt")
	f.IntSliceVar(&opt.Parts, "parts", []int{64, 1024}, "numbers of partitions")
	f.StringSliceVar(&opt.Methods, "methods", partitioner.Words()[:3], "partitioners")
	f.IntVar(&opt.Restream, "restream", 0, "how often lists are read again, to deal nodes anew")
	f.BoolVar(&opt.Cluster, "cluster", false, "cluster nodes first: fewer edges are cut")
	cli.SplitColumn(f, &opt.Split)
	f.StringVar(&io, "io", "auto", cli.HelpOf("io"))
	return cmd
}
