package benches

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gdb/bench"
	"gdb/cmd/gdb/cli"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/train/setting"

	"github.com/spf13/cobra"
)

func (a commands) cache() *cobra.Command {
	opt := bench.CacheOptions{}
	fanout := []int{10, 10, 10}
	var store, sizes, io, plots string
	var cmd *cobra.Command
	cmd = a.command("cache", "Hits of each feature cache policy on a store, and the bound",
		`  gdb bench cache --store big.gdb --fanout 10,10,10 --batch 1000
  gdb bench cache --store big.gdb --sizes 1GiB,4GiB,20% --json`,
		func(ctx context.Context) (r *bench.Report, err error) {
			if store == "" {
				return nil, cli.Usage(errors.New("bench cache: no --store DIR: " + message.Program +
					" ingest makes one"))
			}
			opt.Fanout, opt.Seed, opt.Memory = fanout, a.Seed, a.Memory
			if opt.Store, opt.Device, err = a.OpenStore(cmd.Context(), store, io); err != nil {
				return nil, err
			}
			whole, err := bench.FeatureBytes(opt.Store)
			if err != nil {
				return nil, err
			}
			if opt.Sizes, err = parseShares("--sizes", sizes, whole); err != nil {
				return nil, err
			}
			p := a.Progress()
			defer p.Finish()
			opt.Progress = p.Update
			r, err = bench.Cache(ctx, opt)
			if err != nil || plots == "" {
				return r, err
			}
			paths, err := bench.PlotCache(a.FS, plots, r)
			a.NotePlots(paths)
			return r, err
		})
	f := cmd.Flags()
	f.StringVar(&store, "store", "", "store whose training is simulated")
	f.Var(setting.Fanout(&fanout), "fanout", "neighbors per hop, as in training")
	f.IntVar(&opt.Batch, "batch", 1000, cli.HelpOf("batch"))
	f.IntVar(&opt.Epochs, "epochs", 1, "epochs to train, here to replay")
	cli.SplitColumn(f, &opt.Split)
	f.StringVar(&sizes, "sizes", "5%,10%,20%,40%",
		"sizes of the cache, in bytes or in percent of the memory of all features")
	f.StringVar(&plots, "plot", "", cli.PlotHelp)
	f.StringVar(&io, "io", "auto", cli.HelpOf("io"))
	return cmd
}

// parseShares parses sizes such as 10%,64MiB; percents are of whole.
func parseShares(flag, s string, whole int64) ([]int64, error) {
	var out []int64
	for _, part := range strings.Split(s, ",") {
		part = strings.TrimSpace(part)
		if number, ok := strings.CutSuffix(part, "%"); ok {
			percent, err := strconv.ParseFloat(number, 64)
			if err != nil || !(percent > 0 && percent <= 1000) {
				return nil, cli.Usage(fmt.Errorf("%s %q: want percents such as 10%%", flag, part))
			}
			out = append(out, max(1, int64(percent/100*float64(whole))))
			continue
		}
		n, err := mem.ParseSize(part)
		if err != nil || n == 0 {
			return nil, cli.Usage(fmt.Errorf("%s %q: want sizes such as 64MiB or 10%%", flag, part))
		}
		out = append(out, n)
	}
	return out, nil
}
