package main

import (
	"fmt"
	"strconv"
	"strings"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
	"gdb/train"
	"gdb/train/model"
	"gdb/train/runs"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// trainFlags are the flags of gdb train and gdb plan. The configuration is bound to them, so that
// what was given on the command line wins over --from, and --from over the defaults.
type trainFlags struct {
	cfg          train.Config
	fanout       fanoutFlag
	featureCache string
	from         string
	tensorboard  string
	json         bool
}

func (t *trainFlags) bind(f *pflag.FlagSet) {
	t.cfg = runs.Default()
	c := &t.cfg
	t.fanout = c.Fanout
	f.StringVar(&c.Run, "run", c.Run, "name of the run (default: next free r0001)")
	f.StringVar(&c.Model, "model", c.Model, strings.Join(model.Names(), ", "))
	f.Var(&t.fanout, "fanout", "neighbors per hop, the first next to the seeds; all for every one")
	f.IntVar(&c.Hidden, "hidden", c.Hidden, "width of the hidden layers")
	f.IntVar(&c.Batch, "batch", c.Batch, "seeds in a mini-batch")
	f.Var((*autoFlag)(&c.Epochs), "epochs", "epochs; auto: until val does not improve any more")
	f.Float64Var(&c.LR, "lr", c.LR, "learning rate")
	f.Float64Var(&c.WeightDecay, "weight-decay", c.WeightDecay, "weight decay")
	f.Float64Var(&c.Dropout, "dropout", c.Dropout, "share of values dropped before each layer")
	f.StringVar(&c.Normalize, "normalize", c.Normalize,
		"scale features as they are read: none, row (sum 1), or auto: row for counts")
	f.StringVar(&c.Optimizer, "optimizer", c.Optimizer, "adam, adamw, sgd or adagrad")
	f.StringVar(&c.Loss, "loss", c.Loss, "auto, softmax or bce")
	f.StringVar(&c.Metric, "metric", c.Metric, "auto, accuracy, micro-f1, macro-f1 or roc-auc")
	f.IntVar(&c.Patience, "patience", c.Patience,
		"stop after so many evaluations without a better one; 0: never, but for --epochs auto")
	f.IntVar(&c.EvalEvery, "eval-every", c.EvalEvery, "epochs between evaluations")
	f.StringVar(&c.EvalMode, "eval-mode", c.EvalMode,
		"exact (whole lists, layer by layer) or sampled (with --fanout; faster, noisy)")
	f.StringVar(&c.Split, "split", c.Split, "K: use train@K, val@K and test@K")
	f.StringVar(&c.Cache, "cache", c.Cache,
		"feature cache: "+strings.Join(runs.CacheNames(), ", "))
	f.StringVar(&t.featureCache, "feature-cache", "", "its size (default: what --memory leaves)")
	f.Var((*autoFlag)(&c.Superbatch), "superbatch",
		"batches that --cache belady samples ahead; auto: up to the next evaluation")
	f.Var((*neighborFlag)(&c.NeighborCache), "neighbor-cache", "keep lists of neighbors in so "+
		"much memory, where the topology is paged; auto: as the plan finds best, 0: none")
	f.StringVar(&c.Topology, "topology", c.Topology, "auto, resident or paged")
	f.StringVar(&c.IO, "io", c.IO, "auto, uring, pread, buffered or mmap")
	f.StringVar(&c.Backend, "backend", c.Backend, "where it computes: cpu")
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
	c := t.cfg
	c.Fanout = t.fanout
	c.Seed, c.Threads, c.Memory, c.Version = a.seed, a.threads, a.memory, "gdb "+version
	if t.featureCache != "" {
		n, err := mem.ParseSize(t.featureCache)
		if err != nil {
			return c, usage(fmt.Errorf("train: --feature-cache: %w", err))
		}
		c.FeatureCache = n
	}
	if err := c.Validate(); err != nil {
		return c, usage(err)
	}
	return c, nil
}

// fanoutFlag is --fanout: numbers and all, with commas.
type fanoutFlag []int

// String is the flag's value.
func (f *fanoutFlag) String() string { return sample.FormatFanout(*f) }

// Set parses 10,5 or all,all.
func (f *fanoutFlag) Set(s string) error {
	fanout, err := sample.ParseFanout(s)
	if err == nil {
		*f = fanout
	}
	return err
}

// Type names the value in help.
func (f *fanoutFlag) Type() string { return "fanout" }

// neighborFlag is --neighbor-cache: auto or a size.
type neighborFlag int64

// String is the flag's value.
func (n *neighborFlag) String() string {
	if *n == runs.NeighborAuto {
		return "auto"
	}
	return strconv.FormatInt(int64(*n), 10)
}

// Set parses auto or a size.
func (n *neighborFlag) Set(text string) error {
	if text == "auto" {
		*n = runs.NeighborAuto
		return nil
	}
	size, err := mem.ParseSize(text)
	if err != nil {
		return fmt.Errorf("want auto, or a size: %w", err)
	}
	*n = neighborFlag(size)
	return nil
}

// Type names the value in help.
func (n *neighborFlag) Type() string { return "auto|SIZE" }

// autoFlag is a number of something that gdb chooses itself for auto, which is 0.
type autoFlag int

// String is the flag's value.
func (s *autoFlag) String() string {
	if *s == 0 {
		return "auto"
	}
	return strconv.Itoa(int(*s))
}

// Set parses auto or a number.
func (s *autoFlag) Set(text string) error {
	if text == "auto" {
		*s = 0
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return fmt.Errorf("%q: want auto, or a positive number", text)
	}
	*s = autoFlag(n)
	return nil
}

// Type names the value in help.
func (s *autoFlag) Type() string { return "auto|N" }

// openForRun opens the store and the device of a training.
func (a *app) openForRun(cmd *cobra.Command, dir, io string) (*layout.Store, blockdev.Device,
	error) {
	st, err := layout.Open(cmd.Context(), a.fs, dir)
	if err != nil {
		return nil, nil, err
	}
	dev, err := openDevice(io)
	return st, dev, err
}

func openDevice(io string) (blockdev.Device, error) {
	switch b := blockdev.Backend(io); b {
	case blockdev.Auto, blockdev.URing, blockdev.Pread, blockdev.Buffered, blockdev.MMap:
		return blockdev.Open(blockdev.Options{Backend: b})
	}
	return nil, usage(fmt.Errorf("--io %q: want auto, uring, pread, buffered or mmap", io))
}
