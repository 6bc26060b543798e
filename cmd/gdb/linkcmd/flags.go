// Package linkcmd is what the commands of gdb do for link prediction: training, evaluation and
// predictions of runs of --task link.
package linkcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"gdb/cmd/gdb/cli"
	"gdb/train/link"
	"gdb/train/link/decoder"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/spf13/pflag"
)

// Task is the value of --task for link prediction, and Tasks all of them.
const Task = "link"

// Tasks are the values of --task; the first is the default.
var Tasks = []string{"node", Task}

// flags are those of a training. They are bound to the configuration, so that what was given on the
// command line wins over the recipe of the decoder.
type flags struct {
	cfg  setting.Link
	json bool
	from string
}

// countOrAll is --negatives.
type countOrAll int

// String is the flag's value.
func (n *countOrAll) String() string {
	if *n == setting.NegativesAll {
		return "all"
	}
	return strconv.Itoa(int(*n))
}

// Set parses all or a number.
func (n *countOrAll) Set(text string) error {
	if text == "all" {
		*n = setting.NegativesAll
		return nil
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < 1 {
		return errors.New("want all, or a number from 1 on")
	}
	*n = countOrAll(v)
	return nil
}

// Type names the value in help.
func (n *countOrAll) Type() string { return "all|N" }

// bindOwn adds the flags that only link prediction has.
func (t *flags) bindOwn(f *pflag.FlagSet) {
	c := &t.cfg
	f.StringVar(&c.Decoder, "decoder", c.Decoder, "with --task link, what scores an edge: "+
		cli.OneOf(decoder.Names())+"; what else is not given is as its recipe says "+
		"(gdb help link)")
	f.IntVar(&c.Dim, "dim", c.Dim, "numbers that are learned for each entity")
	f.StringVar(&c.Encoder, "encoder", c.Encoder, "model over drawn neighbors that makes the "+
		"vectors that are scored: "+cli.OneOf(setting.Encoders()))
	f.StringVar(&c.EncoderInput, "encoder-input", c.EncoderInput, "what it reads of a node: "+
		"vectors, which are learned, features of the store, or both")
	f.Float64Var(&c.EncoderLR, "encoder-lr", c.EncoderLR, "rate of the encoder's weights, by Adam")
	f.IntVar(&c.Norm, "norm-order", c.Norm, "norm of transe and rotate: 1 or 2")
	f.BoolVar(&c.Reciprocal, "reciprocal", c.Reciprocal,
		"learn each relation a second time for questions for heads")
	f.Var((*countOrAll)(&c.Negatives), "negatives",
		"entities that each end of an edge is compared with; all: all there are")
	f.StringVar(&c.NegativeSampling, "negative-sampling", c.NegativeSampling,
		"how they are drawn: "+cli.OneOf(setting.NegativeSamplings()))
	f.Float64Var(&c.DegreePower, "degree-power", c.DegreePower,
		"power of the degree that --negative-sampling degree draws by")
	f.BoolVar(&c.FilterNegatives, "filter-negatives", c.FilterNegatives,
		"leave out drawn negatives that are edges of the train split")
	f.Float64Var(&c.Margin, "margin", c.Margin, "margin of --loss margin and adversarial")
	f.Float64Var(&c.Temperature, "temperature", c.Temperature,
		"how much --loss adversarial prefers negatives that score high")
	f.StringVar(&c.Regularizer, "regularizer", c.Regularizer,
		"what keeps numbers small: "+cli.OneOf(setting.Regularizers()))
	f.Float64Var(&c.RegularizerWeight, "regularizer-weight", c.RegularizerWeight,
		"weight of the regularizer")
	f.Float64Var(&c.Init, "init", c.Init, "deviation of the numbers that training begins with")
	f.IntVar(&c.Staleness, "staleness", c.Staleness, "updates of the batches before it that a "+
		"batch may be without, so that several are under way; 0 is exact")
	f.IntVar(&c.Candidates, "candidates", c.Candidates, cli.CandidatesHelp)
	f.StringVar(&c.Order, "order", c.Order, "in which order partitions of the graph come to "+
		"memory: "+cli.OneOf(orders())+". Of links, auto is memory if all vectors fit, else "+
		"tlbeta; of nodes it is memory, exact sampling, and dispersed and sequential draw "+
		"neighbors among the partitions there")
	f.IntVar(&c.Partitions, "partitions", c.Partitions,
		"partitions of the graph; 0 is by the rules of gdb plan")
	f.IntVar(&c.PartitionsInMemory, "partitions-in-memory", c.PartitionsInMemory,
		"how many of them are in memory at once")
	f.IntVar(&c.LogicalPartitions, "logical-partitions", c.LogicalPartitions,
		"how many groups they are put to, which go in and out of memory together")
}

// orders are the values of --order: of dispersed and sequential, which train nodes, links have a
// plan only.
func orders() []string { return append(setting.LinkOrders(), link.NodeOrders()...) }

// bind adds all flags.
func (t *flags) bind(f *pflag.FlagSet) {
	t.bindOwn(f)
	c := &t.cfg
	f.StringVar(&c.Run, "run", c.Run, "")
	f.StringVar(&c.Fanout, "fanout", c.Fanout, "")
	f.StringVar(&c.Loss, "loss", c.Loss, "")
	f.StringVar(&c.Optimizer, "optimizer", c.Optimizer, "")
	f.Float64Var(&c.LR, "lr", c.LR, "")
	f.StringVar(&c.LRSchedule, "lr-schedule", c.LRSchedule, "")
	f.Float64Var(&c.Dropout, "dropout", c.Dropout, "")
	f.IntVar(&c.Batch, "batch", c.Batch, "")
	f.IntVar(&c.Epochs, "epochs", c.Epochs, "")
	f.IntVar(&c.Patience, "patience", c.Patience, "")
	f.IntVar(&c.EvalEvery, "eval-every", c.EvalEvery, "")
	f.IntVar(&c.CheckpointEvery, "checkpoint-every", c.CheckpointEvery, "")
	f.StringVar(&c.Resume, "resume", "", "")
	f.StringVar(&t.from, "from", "", "")
	f.BoolVar(&t.json, "json", false, "")
}

// Bind adds the flags of gdb train that only --task link has; Train reads them.
func Bind(f *pflag.FlagSet) {
	t := &flags{cfg: setting.DefaultLink("distmult")}
	t.bindOwn(f)
}

// Words are the values of flags that have few.
func Words() map[string][]string {
	return map[string][]string{"task": Tasks, "decoder": decoder.Names(),
		"encoder": setting.Encoders(), "encoder-input": setting.EncoderInputs(),
		"negative-sampling": setting.NegativeSamplings(), "regularizer": setting.Regularizers(),
		"norm-order": {"1", "2"}, "order": orders(), "negatives": {"all"}}
}

// OnlyNode reports a flag that was given and needs --task link.
func OnlyNode(given *pflag.FlagSet) (err error) {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	Bind(own)
	own.VisitAll(func(f *pflag.Flag) {
		set := given.Lookup(f.Name)
		if set != nil && set.Changed && err == nil && !slices.Contains(partitionFlags, f.Name) {
			err = fmt.Errorf("train: --%s is of --task link, and this trains for nodes", f.Name)
		}
	})
	return err
}

// partitionFlags are those of links that nodes have too.
var partitionFlags = []string{"order", "partitions", "partitions-in-memory", "logical-partitions"}

// NodePartitions puts those that were given in the settings of a training of nodes.
func NodePartitions(given *pflag.FlagSet, c *setting.PartitionSettings) {
	number := func(to *int, name string) {
		if f := given.Lookup(name); f != nil && f.Changed {
			*to, _ = strconv.Atoi(f.Value.String()) // the flag holds a number
		}
	}
	if f := given.Lookup("order"); f != nil && f.Changed {
		if c.PartitionOrder = f.Value.String(); c.PartitionOrder == setting.OrderAuto {
			c.PartitionOrder = setting.OrderMemory
		}
	}
	number(&c.Partitions, "partitions")
	number(&c.PartitionsInMemory, "partitions-in-memory")
	number(&c.LogicalPartitions, "logical-partitions")
}

// Has says whether link prediction has a flag of gdb train.
func Has(name string) bool {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&flags{cfg: setting.DefaultLink("distmult")}).bind(own)
	return own.Lookup(name) != nil
}

// Settings are those of a training.
type Settings = setting.Link

// SettingsOf completes the settings of a training from the flags that were given; they are not
// checked.
func SettingsOf(e *Env, given *pflag.FlagSet) (c Settings, err error) {
	t, err := settings(e, given)
	if err != nil {
		return c, err
	}
	return t.cfg, nil
}

// global are the flags that all commands have, and those that say what is trained.
var global = []string{"memory", "threads", "seed", "quiet", "verbose", "log", "color", "task", "io",
	"backend"}

// parse reads the flags that were given on top of the recipe of their decoder, or of base.
func parse(given *pflag.FlagSet, base *setting.Link) (*flags, error) {
	t, set := &flags{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	if base != nil {
		t.cfg = *base
	} else {
		name := given.Lookup("decoder").Value.String()
		if !slices.Contains(decoder.Names(), name) {
			return nil, fmt.Errorf("train: --decoder %q: want %s", name,
				cli.OneOf(decoder.Names()))
		}
		t.cfg = setting.DefaultLink(name)
	}
	t.bind(set)
	var err error
	given.VisitAll(func(f *pflag.Flag) {
		switch {
		case !f.Changed || err != nil || slices.Contains(global, f.Name):
		case set.Lookup(f.Name) == nil:
			err = fmt.Errorf("train: --%s is not for --task link: leave it out", f.Name)
		default:
			if e := set.Set(f.Name, f.Value.String()); e != nil {
				err = fmt.Errorf("train: --task link: --%s: %w", f.Name, e)
			}
		}
	})
	return t, err
}

// config completes the configuration from what was given, and checks it.
func config(e *Env, given *pflag.FlagSet) (*flags, error) {
	t, err := settings(e, given)
	if err != nil {
		return nil, err
	}
	return t, link.Validate(&t.cfg)
}

// settings completes the configuration from what was given.
func settings(e *Env, given *pflag.FlagSet) (*flags, error) {
	t, err := parse(given, nil)
	if err != nil {
		return nil, err
	}
	if t.from != "" {
		base, err := settingsIn(t.from)
		if err != nil {
			return nil, err
		}
		if base.Run = ""; !given.Changed("seed") {
			e.Seed = base.Seed
		}
		if t, err = parse(given, base); err != nil {
			return nil, err
		}
	}
	c := &t.cfg
	c.Seed, c.Threads, c.Memory, c.Version = e.Seed, e.Threads, e.Memory, e.Version
	if b := given.Lookup("backend"); b != nil && b.Value.String() != "cpu" {
		return nil, fmt.Errorf("train: --backend %s: links are trained on cpu", b.Value)
	}
	return t, nil
}

// settingsIn reads the settings of a run.json.
func settingsIn(file string) (*setting.Link, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("train: --from: %w", err)
	}
	var f runs.File
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("train: --from %s: %w", file, err)
	}
	if f.Link == nil {
		return nil, fmt.Errorf("train: --from %s: the run predicts nodes: leave --task out", file)
	}
	return f.Link, nil
}
