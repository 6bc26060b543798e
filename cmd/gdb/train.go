package main

import (
	"fmt"
	"slices"
	"strings"

	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/flagvalue"
	"gdb/cmd/gdb/linkcmd"
	"gdb/internal/mem"
	"gdb/train"
	"gdb/train/model"
	"gdb/train/setting"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// trainFlags are the flags of gdb train and gdb plan. The configuration is bound to them, so that
// what was given on the command line wins over --from, and --from over the defaults.
type trainFlags struct {
	cfg          train.Config
	featureCache string
	from         string
	tensorboard  string
	strategy     string
	json         bool
	ops          bool   // of plan: the operations of a step
	deviceMemory string // of plan
	task         string
}

func (t *trainFlags) bind(f *pflag.FlagSet) {
	t.cfg = setting.Default()
	c := &t.cfg
	f.StringVar(&c.Run, "run", c.Run, "name of the run (default: next free r0001)")
	f.StringVar(&c.Model, "model", c.Model, "architecture: "+cli.OneOf(model.Names()))
	flagvalue.BindSampling(f, c)
	f.Var(&flagvalue.Hidden{To: c}, "hidden", "width of the hidden layers, or of each: 256,128")
	bindModel(f, &c.Options)
	f.BoolVar(&c.Tune, "tune", false,
		"measure which order of sums and products is faster, and keep it in the run")
	flagvalue.BindEdges(f, c)
	f.IntVar(&c.Batch, "batch", c.Batch, cli.BatchHelp)
	f.Var((*flagvalue.CountOrAuto)(&c.Epochs), "epochs",
		"epochs to train; auto: until val does not improve any more")
	f.Float64Var(&c.LR, "lr", c.LR, "learning rate")
	f.StringVar(&c.LRSchedule, "lr-schedule", c.LRSchedule, "constant; cosine: to 0 in --epochs "+
		"(of auto: the most it may come to); step: a tenth after half of them, a hundredth after "+
		"three quarters; plateau: halved when val is no better")
	f.IntVar(&c.Warmup, "warmup", c.Warmup, "steps in which the rate grows to its own")
	f.Float64Var(&c.Clip, "clip", c.Clip,
		"most that the norm of all gradients may be: scaled down to it; 0: any")
	f.Float64Var(&c.WeightDecay, "weight-decay", c.WeightDecay, "weight decay")
	f.Var((*flagvalue.Dropout)(&c.Dropout), "dropout",
		"share of values dropped before each layer; auto: 0.5 of classes, 0 of numbers")
	f.StringVar(&c.Normalize, "normalize", c.Normalize,
		"scale features as they are read: none, row (sum 1), zscore (columns) or auto "+
			"(row for counts, zscore for very different or large ranges)")
	f.StringVar(&c.Optimizer, "optimizer", c.Optimizer, cli.OneOf(setting.Choices("optimizer")))
	f.StringVar(&c.Loss, "loss", c.Loss, cli.OneOf(setting.Choices("loss")))
	f.StringVar(&c.ClassWeights, "class-weights", c.ClassWeights,
		"none, or balanced: rare classes count more in the loss, so that all count the same")
	f.StringVar(&c.Metric, "metric", c.Metric,
		"what val and test are judged by: "+cli.OneOf(setting.Choices("metric")))
	f.IntVar(&c.Patience, "patience", c.Patience,
		"stop after so many evaluations without a better one; 0: never, but for --epochs auto")
	f.IntVar(&c.EvalEvery, "eval-every", c.EvalEvery, "epochs between evaluations")
	f.StringVar(&c.EvalMode, "eval-mode", c.EvalMode, cli.EvalModeHelp)
	cli.SplitColumn(f, &c.Split)
	f.StringVar(&c.Cache, "cache", c.Cache,
		"policy of the cache of features: "+cli.OneOf(setting.Choices("cache")))
	f.StringVar(&t.featureCache, "feature-cache", "",
		"size of the cache of features (default: what --memory leaves)")
	f.Var((*flagvalue.CountOrAuto)(&c.Superbatch), "superbatch",
		"batches that --cache belady samples ahead; auto: up to the next evaluation")
	f.IntVar(&c.MacroBatch, "macro-batch", c.MacroBatch,
		"draw the neighbors of so many batches at once, and use draws again within them")
	f.Var((*flagvalue.SizeOrAuto)(&c.NeighborCache), "neighbor-cache", "size of the cache of "+
		"neighbor lists, where the topology is paged; auto: as the plan finds best, 0: none")
	f.StringVar(&c.Topology, "topology", c.Topology,
		"where neighbor lists are read from: "+cli.OneOf(setting.Choices("topology")))
	f.StringVar(&c.IO, "io", c.IO, cli.IOHelp())
	f.StringVar(&t.strategy, "strategy", strategies[0], "how batches are made: "+
		cli.OneOf(strategies)+" (gdb help strategies)")
	flagvalue.BindBackend(f, c)
	f.IntVar(&c.CheckpointEvery, "checkpoint-every", c.CheckpointEvery,
		"batches between checkpoints; one is written every 30 s and each epoch too")
	f.StringVar(&c.Resume, "resume", "", "go on with this run")
	f.StringVar(&t.tensorboard, "tensorboard", "", "directory for event files of TensorBoard")
	f.StringVar(&t.from, "from", "", "run.json to take the settings from")
	f.BoolVar(&t.json, "json", false, "print one JSON object a line")
}

// config completes the configuration from the flags.
func (t *trainFlags) config(a *app, cmd *cobra.Command) (train.Config, error) {
	if err := t.takeFrom(a, cmd.Flags()); err != nil {
		return train.Config{}, err
	}
	if !slices.Contains(strategies, t.strategy) {
		return train.Config{}, cli.Usage(fmt.Errorf("train: unknown strategy %q: known are %s",
			t.strategy, strings.Join(strategies, ", ")))
	}
	c := t.cfg
	flagvalue.FitSampling(cmd.Flags(), &c)
	if c.Resume == "" { // else the run has some of them
		linkcmd.NodePartitions(cmd.Flags(), &c.PartitionSettings)
	}
	c.Seed, c.Threads, c.Memory, c.Version = a.Seed, a.Threads, a.Memory, "gdb "+version
	c.Profiles = cli.ProfilesDir()
	if t.featureCache != "" {
		n, err := mem.ParseSize(t.featureCache)
		if err != nil {
			return c, cli.Usage(fmt.Errorf("train: --feature-cache: %w", err))
		}
		c.FeatureCache = n
	}
	if err := model.Of(&c).Validate(); err != nil {
		return c, cli.Usage(err)
	}
	return c, nil
}
