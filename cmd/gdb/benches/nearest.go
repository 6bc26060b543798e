package benches

import (
	"context"
	"errors"
	"fmt"

	"gdb/bench"
	"gdb/cmd/gdb/cli"
	"gdb/internal/mem"

	"github.com/spf13/cobra"
)

func (a commands) nearest() *cobra.Command {
	opt := bench.NearestOptions{}
	var store, io string
	cmd := a.command("nearest",
		"Searches by an index of vectors, and their recall",
		`  gdb index shop.gdb vectors --features features
  gdb bench nearest --store shop.gdb --features features --queries 2000`,
		func(ctx context.Context) (r *bench.Report, err error) {
			switch {
			case store == "":
				return nil, cli.Usage(errors.New("bench nearest: --store DIR is missing"))
			case opt.Of.Check() != nil:
				return nil, cli.Usage(fmt.Errorf("bench nearest: %w", opt.Of.Check()))
			case opt.Queries < 1 || opt.Exact < 1 || opt.Top < 1 || opt.Probes < 0 ||
				opt.Rerank < 0:
				return nil, cli.Usage(errors.New("bench nearest: --queries, --exact and --top " +
					"are at least 1, --probes and --rerank not below 0"))
			}
			if opt.Store, opt.Device, err = a.OpenStore(ctx, store, io); err != nil {
				return nil, err
			}
			opt.Budget, opt.Seed = mem.NewProcessBudget(a.Memory), a.Seed
			return bench.Nearest(ctx, opt)
		})
	f := cmd.Flags()
	f.StringVar(&store, "store", "", "store that has the index")
	f.StringVar(&opt.Of.Run, "run", "", "run whose learned vectors are compared")
	f.StringVar(&opt.Of.Features, "features", "", "features whose rows are compared")
	f.IntVar(&opt.Top, "top", 10, "answers of a query")
	f.IntVar(&opt.Queries, "queries", 2000, "random nodes that are asked for")
	f.IntVar(&opt.Exact, "exact", 20, "queries whose answers are compared with exact ones")
	f.IntVar(&opt.Probes, "probes", 0, "lists that are looked at (default: what the index says)")
	f.IntVar(&opt.Rerank, "rerank", 0,
		"candidates compared exactly for ten answers (default: what the index says)")
	f.IntVar(&opt.Threads, "askers", 1, "queries at a time")
	f.StringVar(&io, "io", "auto", cli.HelpOf("io"))
	return cmd
}
