package train

import (
	"context"
	"fmt"

	"gdb/blockdev"
	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/exact"
	"gdb/train/model"
	"gdb/train/plan"
	"gdb/train/probe"
	"gdb/train/setting"
	"gdb/train/task"

	"github.com/RoaringBitmap/roaring/v2"
)

// inputs is what a model reads of a store.
type inputs struct {
	*loader.Source
	task  task.Task         // of the labels; nil until they are open
	times timedSeeds        // seeds that have times; nil where there are none
	edges *loader.EdgeSeeds // these, where edges are seeds

	byRelation [][]int // fanouts of each hop by number of relation: see sample.Config
}

// timedSeeds are seeds that have times, by which they are split.
type timedSeeds interface {
	sample.Seeding
	Splits(bases []string, times []int64, budget *mem.Budget) ([]loader.Split, error)
}

// newInputs returns the inputs from a store, with nothing opened yet. They bound the process.
func newInputs(store *layout.Store, dev blockdev.Device, c *Config) *inputs {
	return newInputsIn(store, dev, c, mem.NewProcessBudget(c.Memory))
}

// newInputsIn returns the inputs from a store, counted in budget.
func newInputsIn(store *layout.Store, dev blockdev.Device, c *Config, budget *mem.Budget) *inputs {
	src := loader.NewSource(store, dev, budget)
	src.Meta = labeled(src.Meta, c)
	src.NormalizeRows = c.Normalize == setting.NormalizeRow && !c.Precompute
	src.Extras = model.Of(c).Spec(model.Of(c).Dims(c.Inputs(store.Meta()), 1)).Extras()
	src.Draw, src.Before = c.Draw(), c.Before
	_, src.LayerSize = model.Of(c).Sampled()
	in := &inputs{Source: src}
	in.byRelation, _ = sample.RelationFanouts(c.FanoutBy, store.Meta()) // resolve reports errors
	return in
}

// openTimes reads the times of seeds, if the run goes by them.
func (in *inputs) openTimes(ctx context.Context, c *Config) error {
	switch {
	case !c.Timed():
		return nil
	case c.OfEdges():
		return in.openEdges(ctx, c)
	}
	of := ""
	if l := in.Meta.Labels; l != nil {
		of = l.OfType
	}
	times, err := loader.LoadTimes(ctx, in.Source, of, c.Time)
	if err != nil {
		return fmt.Errorf("train: --time %s: %w", c.Time, err)
	}
	in.times, in.Seeding, in.Window = times, times, c.Window
	return nil
}

// openEdgeColumns opens the columns of edges that the model reads. What scales them is measured
// once, on edges before the first seed that is not trained on.
func (in *inputs) openEdgeColumns(ctx context.Context, c *Config) error {
	if len(c.EdgeFeatures) == 0 {
		return nil
	}
	columns, err := in.OpenEdgeColumns(ctx, c.EdgeFeatures)
	if err == nil && c.EdgeScale == nil {
		before := c.Before
		if c.SplitTimes != nil {
			before = &c.SplitTimes[0]
		}
		c.EdgeScale, err = columns.Measure(ctx, before)
	}
	if err != nil {
		return fmt.Errorf("train: --edge-features: %w", err)
	}
	columns.Scale(c.EdgeScale)
	return nil
}

// usualTrain and usualVal are the shares of the edges that train, and that train or validate, where
// no times say so: the earliest.
const usualTrain, usualVal = 0.8, 0.9

// openEdges reads the edges that are seeds.
func (in *inputs) openEdges(ctx context.Context, c *Config) error {
	target, err := c.EdgeTarget()
	if err != nil {
		return err
	}
	if in.edges, err = loader.LoadEdges(ctx, in.Source, target.Relations); err != nil {
		return fmt.Errorf("train: --target %s: %w", c.Target, err)
	}
	if in.edges.Len() == 0 {
		return fmt.Errorf("train: --target %s: there are no such edges", c.Target)
	}
	if c.SplitTimes == nil {
		c.SplitTimes = []int64{in.edges.At(usualTrain), in.edges.At(usualVal)}
	}
	in.times, in.Seeding, in.Window = in.edges, in.edges, c.Window
	return nil
}

// openTargets makes the weights of edges the labels of seeds.
func (in *inputs) openTargets(c *Config) error {
	target, err := c.EdgeTarget()
	if err != nil {
		return err
	}
	values := in.edges.Targets()
	if target.Compare != 0 {
		classes := make([]float32, len(values))
		for i, v := range values {
			if v < float32(target.Than) && target.Compare == '<' ||
				v > float32(target.Than) && target.Compare == '>' {
				classes[i] = 1
			}
		}
		values = classes
	}
	if in.Labels, err = sample.HeldLabels(len(in.Meta.Labels.Classes), values,
		in.Budget); err != nil {
		return err
	}
	in.CloseLater(in.Labels)
	in.task = task.New(in.Meta.Labels, c.Loss)
	return nil
}

// openRows opens the features. If the settings leave the scaling of columns open, it measures them
// on rows spread evenly over all nodes. note says what was chosen; "" for nothing.
func (in *inputs) openRows(ctx context.Context, c *Config) (note string, err error) {
	if err := in.OpenRows(ctx); err != nil {
		return "", err
	}
	note, err = in.scaleColumns(ctx, c)
	switch {
	case err != nil || in.Rows == nil:
	case c.PacksFeatures():
		in.Rows.Pack()
	case c.SparseWords > 0:
		in.Rows.KeepSparse()
	}
	return note, err
}

// splitRows has a training keep its features in pieces, where that takes less: devices and
// partitions read whole rows. So does exact evaluation, from memory or else from their file: whole
// rows are kept for it where they could all be in memory. Batches keep pieces too if the model
// reads them in place.
func (in *inputs) splitRows(c *Config) {
	sampled := c.EvalMode == setting.EvalSampled
	if !sampled && (in.Rows == nil || in.wholeBytes() <= c.Memory) {
		return
	}
	if c.Backend == backend.CPU && !c.Timed() && !c.Precompute && !c.Buffered() &&
		c.Together() <= 1 {
		m := model.Of(c)
		in.Cut = m.InPlaceCut(m.Dims(c.Inputs(in.Meta), 1))
		in.SplitRows()
	}
}

// wholeBytes returns what whole rows of all nodes take.
func (in *inputs) wholeBytes() int64 {
	return 4 * int64(in.Rows.Meta().Dim) * int64(in.Meta.Nodes)
}

// scaleColumns scales the columns of the features, if they are to be scaled.
func (in *inputs) scaleColumns(ctx context.Context, c *Config) (note string, err error) {
	if c.Precompute { // rows were scaled before they were summed up
		return "", nil
	}
	if in.Rows == nil { // there are none to scale
		c.Normalize = "none"
	}
	if c.Normalize != "auto" && c.Normalize != setting.NormalizeColumns {
		return "", nil
	}
	auto := c.Normalize == "auto"
	if auto && c.SparseWords > 0 {
		c.Normalize = "none"
		return "", nil
	}
	if c.Scale == nil {
		scale, err := probe.Scale(ctx, in.Source, auto)
		if err != nil {
			return "", fmt.Errorf("train: %w", err)
		}
		if c.Normalize = "none"; scale == nil {
			return "", nil
		}
		c.Normalize, c.Scale = setting.NormalizeColumns, scale
	}
	in.Rows.ScaleColumns(c.Scale)
	if auto {
		note = "features have very different or large ranges: they are scaled to mean 0 and " +
			"deviation 1 as they are read (--normalize none does not)"
	}
	return note, nil
}

// openLabels opens the labels and sets the task.
func (in *inputs) openLabels(ctx context.Context, c *Config) error {
	if c.OfEdges() {
		return in.openTargets(c)
	}
	if err := in.OpenLabels(ctx); err != nil {
		return err
	}
	if task.KindOf(in.Meta.Labels, c.Loss) == task.KindTarget && !in.Labels.Numbers() {
		in.Labels.UseNumbers(task.ClassNumbers(in.Meta.Labels.Classes))
	}
	in.task = task.New(in.Meta.Labels, c.Loss)
	return nil
}

// openFeatures puts the plan's cache before the features. Superbatches have a cache of their own;
// what is sampled to evaluate has its rows read ahead then, if it is drawn in passes. Batches refer
// to rows that are all in memory if lend is set.
func (in *inputs) openFeatures(ctx context.Context, c *Config, lend bool, p *plan.Plan) error {
	policy, staged := p.Cache, p.Staged()
	if policy == setting.CacheBelady {
		policy, staged = "none", c.EvalMode == setting.EvalSampled && p.PassBytes() > 0
	}
	return in.OpenFeatures(ctx, loader.Cache{Policy: policy, Bytes: p.Features,
		Threads: plan.CopyThreads(c.Threads), Staged: staged,
		Lend: lend})
}

// checkLeast returns an error if the memory is too small whatever the batches are.
func (in *inputs) checkLeast(c *Config, training bool) error {
	extra := mem.HeapCost(exact.HeapBytes) + exact.Bytes
	learned := learnedVectors(c, in.Meta, training)
	if learned != nil {
		extra += learned.Bytes()
	}
	err := probe.CheckLeast(in.Source, c.Memory, extra)
	if err != nil {
		err = fmt.Errorf("train: %w", explained(err, learned))
	}
	return err
}

// openWhole opens the graph and the features to compute a model for a set, or for all nodes if set
// is nil, in memory as far as they fit: the topology first. What the caller reserved before keeps
// its place.
func (in *inputs) openWhole(ctx context.Context, c *Config, m *model.Model,
	set *roaring.Bitmap) error {
	eval := mem.HeapCost(exact.HeapBytes) + 2*exact.Bytes + task.ScoreBytes
	switch {
	case set == nil:
	case c.EvalMode == setting.EvalSampled:
		eval += mem.HeapCost(evalListBytes(int64(set.GetCardinality())))
	default:
		eval += exact.SetsBytes(m.Spec(), in.Meta.Nodes, c.Memory)
	}
	f := &plan.Facts{Memory: c.Memory, Program: in.ProgramBytes(),
		Settings: plan.SettingsOf(c)}
	f.Store = probe.StoreFacts(in.Source)
	f.Dim = c.RowDim(in.Meta)
	f.EvalSampled = c.EvalMode == setting.EvalSampled
	p, err := plan.Evaluating(f, eval)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	graph := p.TopologyOptions()
	graph.Budget = in.Budget
	if err := in.OpenGraph(ctx, graph); err != nil {
		return err
	}
	return in.openFeatures(ctx, c, model.Of(c).InPlaceResident(m.Dims()), p)
}
