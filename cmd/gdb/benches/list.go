package benches

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gdb/bench"
	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/train/setting"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// command makes a command that runs one measurement and prints its report.
func (a commands) command(use, short, example string,
	run func(ctx context.Context) (*bench.Report, error)) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example, Args: cli.ExactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := positiveNumbers(cmd.Flags()); err != nil {
				return err
			}
			r, err := run(cmd.Context())
			if err != nil {
				return err
			}
			return Print(a.App, r, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// positiveNumbers refuses flags that count or size something by less than 1, or by no number.
func positiveNumbers(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if kind := f.Value.Type(); !f.Changed || kind != "int" && kind != "float64" {
			return
		}
		n, e := strconv.ParseFloat(f.Value.String(), 64)
		if e != nil || !(n > 0) || math.IsInf(n, 1) {
			err = cli.Usage(fmt.Errorf("--%s %s: want a positive number", f.Name, f.Value))
		}
	})
	return err
}

func (a commands) io() *cobra.Command {
	opt := bench.IOOptions{}
	var size, blocks, backends string
	cmd := a.command("io", "Random reads by each backend, beside fio where it is installed",
		"  gdb bench io --size 4GiB --block 4KiB,64KiB --depth 32 --fio",
		func(ctx context.Context) (r *bench.Report, err error) {
			if opt.Size, err = mem.ParseSize(size); err != nil {
				return nil, cli.Usage(fmt.Errorf("--size: %w", err))
			}
			for _, s := range strings.Split(blocks, ",") {
				n, err := mem.ParseSize(s)
				if err != nil {
					return nil, cli.Usage(fmt.Errorf("--block: %w", err))
				}
				opt.Blocks = append(opt.Blocks, int(n))
			}
			for _, s := range strings.Split(backends, ",") {
				opt.Backends = append(opt.Backends, blockdev.Backend(s))
			}
			return bench.IO(ctx, opt)
		})
	f := cmd.Flags()
	f.StringVar(&opt.Dir, "out", ".", "directory on the disk to measure; its file is removed")
	f.StringVar(&size, "size", "4GiB", "size of the file")
	f.StringVar(&blocks, "block", "4KiB,64KiB", "lengths of reads")
	f.StringVar(&backends, "io", "uring,pread", cli.HelpOf("io")+"; several with commas")
	f.IntVar(&opt.Depth, "depth", 32, "reads in flight")
	f.BoolVar(&opt.Fio, "fio", false, "measure fio back to back, for the ratio")
	f.Float64Var(&opt.Seconds, "seconds", 2, "length of each of three measurements of a row")
	return cmd
}

// CompressWords are the values of --compress; the first is the default.
var CompressWords = []string{"on", "off"}

func (a commands) sample() *cobra.Command {
	opt := bench.SampleOptions{}
	fanout := []int{15, 10, 5}
	var edges float64
	var threads, topology, draws, cache, neighbors, compress string
	cmd := a.command("sample", "Neighbor sampling, with dedup and relabeling",
		`  gdb bench sample
  gdb bench sample --store big.gdb --topology resident,paged
  gdb bench sample --store big.gdb --topology paged --block-cache 32MiB \
      --neighbor-cache 24MiB`,
		func(ctx context.Context) (r *bench.Report, err error) {
			if opt.CacheBytes, err = mem.ParseSize(cache); err != nil {
				return nil, cli.Usage(fmt.Errorf("--block-cache: %w", err))
			}
			if opt.NeighborBytes, err = mem.ParseSize(neighbors); err != nil {
				return nil, cli.Usage(fmt.Errorf("--neighbor-cache: %w", err))
			}
			switch {
			case opt.NeighborBytes > opt.CacheBytes:
				return nil, cli.Usage(fmt.Errorf("--neighbor-cache %s is part of --block-cache %s",
					neighbors, cache))
			case !slices.Contains(CompressWords, compress):
				return nil, cli.Usage(fmt.Errorf("--compress %q: want %s", compress,
					message.OneOf(CompressWords)))
			}
			opt.RawNeighbors = compress == "off"
			if opt.Edges, err = wholeNumber("edges", edges); err != nil {
				return nil, err
			}
			opt.Fanout, opt.Seed, opt.Memory = fanout, a.Seed, a.Memory
			opt.Topology, opt.Strategy = strings.Split(topology, ","), strings.Split(draws, ",")
			if opt.Threads, err = parseInts("--threads-list", threads); err != nil {
				return nil, err
			}
			if opt.Device, err = blockdev.Open(blockdev.Options{}); err != nil {
				return nil, err
			}
			defer func() { err = cli.FirstError(err, opt.Device.Close()) }()
			return bench.Sample(ctx, opt)
		})
	f := cmd.Flags()
	f.StringVar(&opt.Store, "store", "", "store to sample from (default: an R-MAT graph in memory)")
	f.IntVar(&opt.Scale, "scale", 22, "log2 of the nodes of the graph in memory")
	f.Float64Var(&edges, "edges", 64e6, "its edges")
	f.Var(setting.Fanout(&fanout), "fanout", "neighbors per hop")
	f.IntVar(&opt.Batch, "batch", 1000, cli.HelpOf("batch"))
	f.IntVar(&opt.Batches, "batches", 200, "batches of each thread")
	f.StringVar(&threads, "threads-list", "1,2", "numbers of threads to measure with")
	f.StringVar(&topology, "topology", "resident",
		"where neighbor lists are read from, with commas: "+
			message.OneOf(bench.Topologies))
	f.StringVar(&draws, "sample", "uniform", "draws, with commas: "+message.OneOf(bench.Draws))
	cli.Alias(f, "strategy", "sample")
	f.StringVar(&cache, "block-cache", "64MiB",
		"memory of the paged reader for blocks and lists")
	cli.Alias(f, "cache", "block-cache")
	f.StringVar(&neighbors, "neighbor-cache", "0",
		"size of the cache of neighbor lists, a part of "+
			"--block-cache")
	f.StringVar(&compress, "compress", "on",
		"whether these lists are compressed: "+message.OneOf(CompressWords))
	return cmd
}

func parseInts(flag, s string) ([]int, error) {
	var out []int
	for _, p := range strings.Split(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(p))
		if err != nil || n < 1 {
			return nil, cli.Usage(fmt.Errorf("%s %q: want positive numbers, such as 1,2", flag, s))
		}
		out = append(out, n)
	}
	return out, nil
}

func (a commands) ingest() *cobra.Command {
	opt := bench.IngestOptions{}
	var edges float64
	var formats string
	cmd := a.command("ingest", "Ingest of arrays, and of text with integer and string ids",
		"  gdb bench ingest --scale 22 --edges 64e6 --dim 128 --memory 512MiB",
		func(ctx context.Context) (r *bench.Report, err error) {
			p := a.Progress()
			defer p.Finish()
			opt.FS, opt.Memory, opt.Seed = a.FS, a.Memory, a.Seed
			if opt.Edges, err = wholeNumber("edges", edges); err != nil {
				return nil, err
			}
			opt.Formats, opt.Progress = strings.Split(formats, ","), p.Update
			return bench.Ingest(ctx, opt)
		})
	f := cmd.Flags()
	f.StringVar(&opt.Source, "source", "", "directory of arrays (default: an R-MAT graph is made)")
	f.StringVar(&opt.Dir, "out", ".", "directory for files and stores; what is made is removed")
	f.IntVar(&opt.Scale, "scale", 22, "log2 of the nodes of the made graph")
	f.Float64Var(&edges, "edges", 64e6, "its edges")
	f.IntVar(&opt.Dim, "dim", 128, "its feature values per node")
	f.StringVar(&formats, "formats", strings.Join(bench.IngestFormats, ","),
		"what is measured")
	return cmd
}

func (a commands) gemm() *cobra.Command {
	opt := bench.GEMMOptions{}
	cmd := a.command("gemm", "Matrix products; beside OpenBLAS if built with -tags openblas",
		"  gdb bench gemm --precision bf16",
		func(ctx context.Context) (*bench.Report, error) { return bench.GEMM(ctx, opt) })
	cmd.Flags().IntVar(&opt.Rounds, "rounds", 7, "measurements of each; the best counts")
	cmd.Flags().StringVar(&opt.Precision, "precision", bench.Precisions[0],
		cli.HelpOf("precision"))
	return cmd
}

func (a commands) device() *cobra.Command {
	return a.command("device", "A GPU: its memory, copies to it, matrix products",
		"  gdb bench device --json", bench.Devices)
}
