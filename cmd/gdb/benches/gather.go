package benches

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gdb/bench"
	"gdb/cmd/gdb/cli"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/train/setting"

	"github.com/spf13/cobra"
)

func (a commands) gather() *cobra.Command {
	opt := bench.GatherOptions{}
	use := bench.DeviceUseOptions{}
	fanout := []int{10, 10, 10}
	var table, store, caches, size, io string
	var cmd *cobra.Command
	cmd = a.command("gather",
		"Means of random feature rows; with --store, gathering from disk",
		`  gdb bench gather
  gdb bench gather --store big.gdb --cache none,static,sieve --feature-cache 10%`,
		func(ctx context.Context) (r *bench.Report, err error) {
			if store == "" {
				if err := onlyWithStore(cmd); err != nil {
					return nil, err
				}
				if opt.TableBytes, err = mem.ParseSize(table); err != nil {
					return nil, cli.Usage(fmt.Errorf("--table: %w", err))
				}
				opt.TableBytes = max(opt.TableBytes, 1) // 0 is the default
				opt.Budget = mem.NewBudget(a.Memory)
				return bench.Gather(ctx, opt)
			}
			use.Fanout, use.Seed, use.Memory = fanout, a.Seed, a.Memory
			if cmd.Flags().Changed("rounds") {
				use.Rounds = opt.Rounds
			}
			use.Caches, use.Threads = strings.Split(caches, ","), max(1, a.Threads/2)
			if err := use.Validate(); err != nil {
				return nil, err
			}
			if use.Store, use.Device, err = a.OpenStore(cmd.Context(), store, io); err != nil {
				return nil, err
			}
			whole, err := bench.FeatureBytes(use.Store)
			if err != nil {
				return nil, err
			}
			sizes, err := parseShares("--feature-cache", size, whole)
			if err != nil {
				return nil, err
			}
			use.CacheBytes = sizes[0]
			return bench.DeviceUse(ctx, use)
		})
	f := cmd.Flags()
	f.StringVar(&table, "table", "2GiB", "size of the table of rows")
	f.IntVar(&opt.Rounds, "rounds", 7, "measurements of each; the best counts (with --store: "+
		"3, the median)")
	f.StringVar(&store, "store", "", "store whose feature rows are gathered")
	f.Var(setting.Fanout(&fanout), "fanout", "neighbors per hop, as in training")
	f.IntVar(&use.Batch, "batch", 1000, cli.HelpOf("batch"))
	f.IntVar(&use.Batches, "batches", 3, "batches gathered in each round")
	cli.SplitColumn(f, &use.Split)
	f.StringVar(&caches, "cache", "none", "policies of the cache of features, with commas: "+
		message.OneOf(bench.Caches()))
	f.StringVar(&size, "feature-cache", "10%",
		"memory of each cache, in bytes or in percent of the memory of all features")
	f.StringVar(&io, "io", "auto", cli.HelpOf("io"))
	return cmd
}

// onlyWithStore refuses flags that say nothing without a store.
func onlyWithStore(cmd *cobra.Command) error {
	for _, name := range []string{"fanout", "batch", "batches", "split", "split-column", "cache",
		"feature-cache", "io"} {
		if cmd.Flags().Changed(name) {
			return cli.Usage(errors.New("bench gather: --" + name + " goes with --store DIR"))
		}
	}
	return nil
}
