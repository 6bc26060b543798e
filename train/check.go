package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	"gdb/blockdev"
	"gdb/compute/backend"
	"gdb/compute/backend/cuda"
	"gdb/compute/kernel/bf16"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/sample"
	"gdb/train/model"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
	"gdb/train/task"
)

// Config holds the settings of a training.
type Config = setting.Node

// checked is a training whose settings fit its store. It is the first of four phases, each made of
// the one before: checked, data, planned and session. What a phase opens is closed with the loop.
type checked struct {
	loop   *run.Loop
	store  *layout.Store
	dev    blockdev.Device
	cfg    Config
	alone  bool // nothing is evaluated: see Training
	shares bool // several trainings share what it opens
	// beside is its part in trainings that share what is open; nil where it has that for itself.
	beside *Beside

	// These are of a run that goes on: when it was made, and its evaluation on the test split.
	created time.Time
	tested  json.RawMessage
}

// check checks settings against a store and, if a run goes on, against those of the run.
func check(ctx context.Context, loop *run.Loop, store *layout.Store, dev blockdev.Device,
	cfg Config) (*checked, error) {
	c := &checked{loop: loop, store: store, dev: dev, cfg: cfg}
	m := labeled(store.Meta(), &c.cfg)
	if m.Labels == nil && c.cfg.Resume == "" {
		return nil, checkTrainable(m, &c.cfg)
	}
	model.Of(&c.cfg).ResolveEval()
	if c.cfg.Resume != "" {
		if err := c.goOn(ctx); err != nil {
			return nil, err
		}
	} else if err := c.begin(ctx); err != nil {
		return nil, err
	}
	m = labeled(c.store.Meta(), &c.cfg)
	c.cfg.Resume = ""
	if c.cfg.Threads == 0 {
		c.cfg.Threads = runtime.NumCPU()
	}
	if c.cfg.Memory == 0 {
		c.cfg.Memory = mem.Available() / 2
	}
	if err := model.Of(&c.cfg).Validate(); err != nil {
		return nil, err
	}
	if err := checkTrainable(m, &c.cfg); err != nil {
		return nil, err
	}
	return c, resolve(&c.cfg, m)
}

// begin completes the settings of a new run.
func (c *checked) begin(ctx context.Context) error {
	if c.cfg.FromRun != "" {
		if err := c.takeSettings(); err != nil {
			return err
		}
	}
	return c.encode(ctx)
}

// encode has the store's features be those that the settings name.
func (c *checked) encode(ctx context.Context) (err error) {
	c.store, err = withColumns(ctx, c.store, c.dev, &c.cfg, c.loop.Note)
	return err
}

// goOn reads the settings of the run that goes on, and checks that the given ones go with them.
func (c *checked) goOn(ctx context.Context) error {
	name := c.cfg.Resume
	old, err := runs.Load(c.store, name)
	if err != nil {
		return err
	}
	file, err := runs.Open(c.store, name).ReadFile()
	if err != nil {
		return err
	}
	c.tested, c.created = file.Test, file.Created
	version := c.cfg.Version
	if c.cfg.AsBefore {
		c.cfg = old
	}
	c.cfg.Run, c.cfg.Version = name, version
	if c.cfg.Threads == 0 {
		c.cfg.Threads = old.Threads
	}
	if c.cfg.Features == "auto" || c.cfg.Features == old.Features {
		c.cfg.Features, c.cfg.Encoders = old.Features, old.Encoders
	}
	if c.cfg.SplitTimes == nil {
		c.cfg.SplitTimes = old.SplitTimes
	}
	if err := c.encode(ctx); err != nil {
		return err
	}
	if err := resolve(&c.cfg, labeled(c.store.Meta(), &c.cfg)); err != nil {
		return err
	}
	if c.cfg.Normalize == "auto" || c.cfg.Normalize == old.Normalize {
		c.cfg.Normalize, c.cfg.Scale = old.Normalize, old.Scale
	}
	c.cfg.EdgeScale = old.EdgeScale
	c.cfg.Tune, c.cfg.Order, c.cfg.Grouped = old.Tune, old.Order, old.Grouped
	c.loop.Note(c.cfg.Moved(&old))
	if was := file.Config.Cache; was != old.Cache && c.cfg.Cache == old.Cache {
		c.loop.Note(fmt.Sprintf("the run began with cache %s and goes on with %s, which changes "+
			"what is read and no result", was, old.Cache))
	}
	c.cfg.Resolved(&old.PartitionSettings)
	return c.cfg.SameResult(&old)
}

// labeled returns what is known of a store whose labels are what a run of edges predicts of them.
func labeled(m *kv.Meta, c *Config) *kv.Meta {
	if !c.OfEdges() {
		return m
	}
	edges := *m
	edges.Labels = &kv.LabelsMeta{Kind: task.KindTarget}
	if c.EdgeOutputs() > 1 {
		edges.Labels = &kv.LabelsMeta{Kind: task.KindClass, Classes: []string{"no", "yes"}}
	}
	edges.Splits = []kv.SplitMeta{{Name: "train", Count: m.Edges}}
	edges.SplitColumn = -1
	return &edges
}

// checkTrainable returns an error that says what a store lacks for predicting labels.
func checkTrainable(m *kv.Meta, c *Config) error {
	switch {
	case m.Nodes == 0:
		return errors.New("train: the store has no nodes")
	case len(m.Features) == 0 && c.NodeEmbedding == 0 && m.Labels == nil && len(m.EdgeSplits) > 0:
		return errors.New("train: the store has neither features nor labels, but splits of its " +
			"edges: --task link learns vectors that score them")
	case len(m.Features) == 0 && c.NodeEmbedding == 0 && m.Labels == nil:
		return errors.New("train: the store has neither labels to predict nor features: ingest " +
			"again with --nodes FILE --label-col COLUMN, or learn vectors that score edges " +
			"(ingest --edge-split random=85/5/10, then train --task link)")
	case len(m.Features) == 0 && c.NodeEmbedding == 0:
		return errors.New("train: the store has no features, and a model needs an input vector " +
			"for every node: learn one for each (train --node-embedding 64), or ingest again " +
			"with features (--features FILE or --feature-cols; --features degree makes them)")
	case len(m.Features) == 0 && c.OfEdges():
		return errors.New("train: --task edge: the store has no features, by which reads are " +
			"measured: ingest again with some (--nodes FILE --feature-cols; a column of ones " +
			"will do beside --node-embedding)")
	case m.Labels == nil:
		return errors.New("train: the store has no labels: ingest again with labels " +
			"(--labels FILE or --label-col)")
	case m.Labels.Kind == task.KindTarget:
		return nil
	case len(m.Labels.Classes) < 2:
		return fmt.Errorf("train: the labels have %d class: nothing to tell apart",
			len(m.Labels.Classes))
	}
	return nil
}

// ScheduleOf returns how long a run of a store trains.
func ScheduleOf(c Config, m *kv.Meta) setting.Schedule {
	c.Resolve(m, task.KindOf(m.Labels, c.Loss))
	return c.Schedule
}

// resolve replaces auto by what it means for the labels of a store.
func resolve(c *Config, m *kv.Meta) error {
	if err := checkFeatureFlags(c, m); err != nil {
		return err
	}
	if _, err := sample.RelationFanouts(c.FanoutBy, m); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if c.Buffered() && m.Typed() {
		return fmt.Errorf("train: batches from partitions in memory (%s) have one list a node, "+
			"and nodes of a typed store have one for each relation: leave it out", c.Means())
	}
	c.Resolve(m, task.KindOf(m.Labels, c.Loss))
	if c.OneByOne() && c.Backend == backend.Auto {
		c.Backend = backend.CPU
	}
	if c.Backend = cuda.Chosen(c.Backend, c.Devices()...); c.Backend == backend.CPU {
		c.MoreDevices = nil
	}
	if c.Backend == backend.CUDA && m.Labels.Unknown > 0 {
		return fmt.Errorf("train: %d labels are unknown, and --backend cuda cannot leave them out "+
			"of the loss: use --backend cpu", m.Labels.Unknown)
	}
	if err := c.CheckPrecision(); err != nil {
		return err
	}
	c.ResolveProducts(bf16.Level() == bf16.AMX)
	if err := model.Of(c).FitEdges(m); err != nil {
		return err
	}
	kind := task.KindOf(m.Labels, c.Loss)
	if c.Metric == task.Auto && kind == task.KindClass && setting.Skewed(m.Labels.ClassCounts) {
		c.Metric = task.ROCAUC
	}
	if kind == task.KindTarget && c.ClassWeights == setting.WeightsBalanced {
		return errors.New("train: --class-weights is for classes, and the labels are numbers: " +
			"leave it out")
	}
	if c.AtPrecision > 0 && kind != task.KindMulti && len(m.Labels.Classes) != 2 {
		return errors.New("train: --at-precision is for two classes, and the labels are others: " +
			"leave it out")
	}
	if err := task.Fit(kind, &c.Loss, &c.Metric); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// checkFeatureFlags returns an error for settings that make no sense for a store without features.
func checkFeatureFlags(c *Config, m *kv.Meta) error {
	if len(m.Features) > 0 {
		return nil
	}
	for _, f := range []struct {
		set  bool
		flag string
		what string
	}{{c.Cache != "auto" && c.Cache != "none", "--cache " + c.Cache, "cache"},
		{c.FeatureCache > 0, "--feature-cache", "cache"},
		{c.Superbatch > 0, "--superbatch", "cache"},
		{c.Normalize == setting.NormalizeRow, "--normalize row", "scale"}} {
		if f.set {
			return fmt.Errorf("train: the store has no features, so there is nothing to %s: leave "+
				"%s out", f.what, f.flag)
		}
	}
	return nil
}
