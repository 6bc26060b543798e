package benches

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gdb/bench/gen"
	"gdb/cmd/gdb/cli"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Kron is the graph that is made of another.
const Kron = "kron"

// kronFlags and madeFlags are flags of some kinds of graphs: of kron, and of the others.
var (
	kronFlags = []string{"in", "factor", "edge-factor", "noise"}
	madeFlags = []string{"scale", "nodes", "edges", "classes", "train-frac"}
)

// benchGenLong says what the graphs are.
const benchGenLong = `Write a directory of arrays that gdb ingest takes: edges.npy, features.npy,
labels.npy and train_idx.npy, val_idx.npy, test_idx.npy; of typed, tables. The
same flags give the same bytes. The directory is there once it is whole; one
that has files is not written into.

  rmat  2^scale nodes, exactly --edges edges of a recursive matrix (.57, .19,
        .19, .05), nodes renamed at random: degrees of a power law, some 40 %
        of the nodes without in-edges. Features are noise and labels random;
        splits are nodes with in-edges.
  sbm   a block model: 42 % of a node's in-edges come from its own class, and
        features are its class's mean with noise, so that training has
        something to learn. In-degrees are lognormal, at least 1: --edges is
        met to a few percent.
  typed tables of a shop as Parquet: users (a quarter of the nodes), items,
        tags and orders (half of the nodes), and the edges views (user, item,
        time, rating) and tagged (item, tag). An order has a user, an item and
        a time. Columns are numbers, words, dates, gaps and vectors: --dim
        values an item, a quarter a user, a sixteenth a tag. The label is
        user.kind, one of --classes: neighbors tell it. What a user looks at
        after its time "asked" tells it nearly surely: it must not be seen.
  kron  a store, or a source that gdb ingest takes, times a small random
        matrix (Kronecker): nodes times --factor, edges times --edge-factor.
        Labels and splits are repeated, features too, with noise. Give the
        other flags of its size to what it is made from.

Memory: 1 bit a node (rmat), 8 bytes a member of a split, and buffers.`

func (a commands) gen() *cobra.Command {
	var opt gen.Options
	var of gen.KronOptions
	var scale int
	var edges, nodes float64
	cmd := &cobra.Command{
		Use: "gen rmat|sbm|typed|kron --out DIR", Args: cli.ExactArgs(1), Long: benchGenLong,
		Short: "Write a generated or an expanded graph as arrays or tables",
		Example: `  gdb bench gen rmat --scale 22 --edges 64e6 --dim 128 --classes 47 --out rmat22
  gdb bench gen sbm --nodes 200000 --edges 4e6 --dim 64 --classes 16 --out sbm
  gdb bench gen typed --scale 20 --edges 16e6 --dim 256 --classes 16 --out shop
  gdb bench gen kron --in cora.gdb --factor 64 --dim 128 --out cora64`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := flagsOfKind(cmd.Flags(), args[0]); err != nil {
				return err
			}
			if args[0] == Kron {
				if cmd.Flags().Changed("dim") {
					of.Dim = opt.Dim
				}
				of.Out = opt.Out
				return a.genKron(cmd.Context(), of)
			}
			opt.Kind, opt.Seed, opt.FS = args[0], a.Seed, a.FS
			if opt.Edges, err = wholeNumber("edges", edges); err != nil {
				return err
			}
			if opt.Nodes, err = wholeNumber("nodes", nodes); err != nil {
				return err
			}
			if !cmd.Flags().Changed("nodes") {
				if scale < 1 || scale > 32 {
					return cli.Usage(fmt.Errorf("--scale %d: want 1 to 32", scale))
				}
				opt.Nodes = 1 << scale
			}
			return a.genGraph(cmd.Context(), opt)
		},
	}
	f := cmd.Flags()
	f.IntVar(&scale, "scale", 20, "log2 of the number of nodes")
	f.Float64Var(&nodes, "nodes", 0, "number of nodes, instead of --scale")
	f.Float64Var(&edges, "edges", 16e6, "number of edges; sbm: about so many")
	f.IntVar(&opt.Dim, "dim", 128, "feature values per node (Kron: default as they are)")
	f.IntVar(&opt.Classes, "classes", 47, "classes")
	f.Float64Var(&opt.TrainFrac, "train-frac", 0.1, "share of nodes in train, twice val and test")
	f.StringVar(&opt.Out, "out", "", "directory to write")
	f.StringVar(&of.In, "in", "", "Kron: the store or source to expand")
	f.IntVar(&of.Factor, "factor", 4, "Kron: copies of each node")
	f.IntVar(&of.EdgeFactor, "edge-factor", 0, "Kron: edges that each edge becomes, one more if "+
		"it is odd and --factor even or the reverse (default: twice --factor)")
	f.Float64Var(&of.Noise, "noise", 0.1, "Kron: noise of the copies' features, as a share")
	return cmd
}

// flagsOfKind refuses flags that say nothing about a kind of graph.
func flagsOfKind(flags *pflag.FlagSet, kind string) (err error) {
	others := kronFlags
	if kind == Kron {
		others = madeFlags
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed && slices.Contains(others, f.Name) {
			err = cli.Usage(fmt.Errorf("bench gen %s has no flag --%s", kind, f.Name))
		}
	})
	return err
}

// wholeNumber returns a count that may be given as 64e6.
func wholeNumber(flag string, f float64) (uint64, error) {
	if !(f >= 0 && f <= 1<<53) || f != math.Trunc(f) {
		return 0, cli.Usage(fmt.Errorf("--%s %g: want a whole number, such as 64e6", flag, f))
	}
	return uint64(f), nil
}

// genGraph generates a graph.
func (a commands) genGraph(ctx context.Context, opt gen.Options) error {
	if err := opt.Validate(); err != nil {
		return cli.Usage(err)
	}
	p := a.Progress()
	opt.Progress = p.Update
	made, err := gen.Make(ctx, opt)
	p.Finish()
	return cli.FirstError(err, a.printMade(opt.Out, made, err))
}

// genKron expands a graph.
func (a commands) genKron(ctx context.Context, opt gen.KronOptions) error {
	p := a.Progress()
	opt.Seed, opt.Memory, opt.FS, opt.Progress = a.Seed, a.Memory, a.FS, p.Update
	if err := opt.Validate(); err != nil {
		return cli.Usage(err)
	}
	made, err := gen.Kron(ctx, opt)
	p.Finish()
	return cli.FirstError(err, a.printMade(opt.Out, made, err))
}

// printMade says what was written.
func (a commands) printMade(out string, made gen.Made, failed error) error {
	if failed != nil {
		return nil
	}
	_, err := fmt.Fprintf(a.Out, "%s: %s nodes, %s edges\n", out,
		humanize.Comma(int64(made.Nodes)), humanize.Comma(int64(made.Edges)))
	return err
}
