package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"gdb/blockdev"
	"gdb/compute/backend"
	"gdb/compute/backend/cuda"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/topology"
	"gdb/sample/loader"
	"gdb/train/embedding"
	"gdb/train/model"
	"gdb/train/plan"
	"gdb/train/runs"
	"gdb/train/setting"
	"gdb/train/task"

	"github.com/RoaringBitmap/roaring/v2"
)

// trained is a run that was opened to predict: the weights of its best evaluation, and the graph.
type trained struct {
	cfg   Config
	dir   runs.Dir
	pos   position
	notes func(note string) // nil for none
	in    *inputs
	network
	ids     ids.Dictionary  // nil unless asked for
	set     *roaring.Bitmap // the nodes to predict; nil for all
	closers []io.Closer
	hidden  func(layer int, rows []float32) error // Inference.Hidden of each
}

// Limits bound what evaluation and prediction use, and say who is told of problems. Zero values
// take what the run took.
type Limits struct {
	// Memory bounds the process in bytes.
	Memory int64
	// Threads is the number of compute workers.
	Threads int
	// Precision is the precision of products and sums over lists: see setting.Node.
	Precision string
	// Where says where to compute.
	setting.Where
	// Notes is called with what the user should know but did no harm; nil for none.
	Notes func(note string)
}

// opening says what to open of a run: to predict a split, or all nodes if split is "", with the ids
// of nodes or without. mode says how it evaluates; "" is exact.
type opening struct {
	run, split, mode string
	limits           Limits
	withIDs          bool
	// labeledType leaves out nodes of other types than that of the labels, if split is "".
	labeledType bool
	nodes       *roaring.Bitmap // what to predict instead of a split; nil for a split
	// budget counts the memory of the run; nil for one of the process.
	budget *mem.Budget
	// explains opens the model as it is explained, and whole has neighbors be whole lists then.
	explains, whole bool
	// light leaves the graph and the features on disk.
	light bool
	// calibrated has probabilities be by the run's temperature, if it has one.
	calibrated bool
}

// openTrained opens a run of a store.
func openTrained(ctx context.Context, store *layout.Store, dev blockdev.Device,
	o opening) (*trained, error) {
	lim := &o.limits
	cfg, err := runs.Load(store, o.run)
	if err != nil {
		return nil, err
	}
	if cfg.Memory = mem.Available() / 2; lim.Memory > 0 {
		cfg.Memory = lim.Memory
	}
	if cfg.Threads = runtime.NumCPU(); lim.Threads > 0 {
		cfg.Threads = lim.Threads
	}
	cfg.EvalMode = cmp.Or(o.mode, "auto")
	model.Of(&cfg).ResolveEval()
	if lim.Precision != "" {
		cfg.Precision = lim.Precision
	}
	lim.Apply(&cfg.Computing)
	cfg.DeviceMemory = lim.DeviceMemory
	cfg.Backend = cuda.Chosen(cfg.Backend, cfg.Device)
	if o.explains {
		model.Of(&cfg).Explain(o.whole)
	}
	if cfg.Precision == setting.TF32 && cfg.Backend == backend.CPU && lim.Precision == "" {
		cfg.Precision = setting.Float32
	}
	if err := errors.Join(model.Of(&cfg).Validate(), cfg.CheckPrecision()); err != nil {
		return nil, err
	}
	if o.budget == nil {
		o.budget = mem.NewProcessBudget(cfg.Memory)
	}
	t := &trained{cfg: cfg, dir: runs.Open(store, o.run), notes: lim.Notes}
	if err := t.open(ctx, store, dev, &o); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *trained) open(ctx context.Context, store *layout.Store, dev blockdev.Device,
	o *opening) error {
	if labeled(store.Meta(), &t.cfg).Labels == nil {
		return checkTrainable(store.Meta(), &t.cfg)
	}
	store, err := withColumns(ctx, store, dev, &t.cfg, func(string) {})
	if err != nil {
		return err
	}
	if err := checkTrainable(labeled(store.Meta(), &t.cfg), &t.cfg); err != nil {
		return err
	}
	if err := removeDead(t.dir); err != nil {
		return err
	}
	store, err = withSums(ctx, store, dev, &t.cfg, func(string) {})
	if err != nil {
		return err
	}
	m := labeled(store.Meta(), &t.cfg)
	model.Of(&t.cfg).PlaceTypes(m)
	if model.Of(&t.cfg).FitRows(m); o.explains { // gradients are of all values
		t.cfg.SparseWords = 0
	}
	t.in = newInputsIn(store, dev, &t.cfg, o.budget)
	t.closers = append(t.closers, t.in)
	if err := t.in.checkLeast(&t.cfg, false); err != nil {
		return err
	}
	if err := t.in.openTimes(ctx, &t.cfg); err != nil {
		return err
	}
	if err := t.in.openEdgeColumns(ctx, &t.cfg); err != nil {
		return err
	}
	if err := t.chooseNodes(ctx, o, m); err != nil {
		return err
	}
	if _, err := t.in.openRows(ctx, &t.cfg); err != nil {
		return err
	}
	if err := t.in.openLabels(ctx, &t.cfg); err != nil {
		return err
	}
	spec := model.Of(&t.cfg).Spec(model.Of(&t.cfg).Dims(t.cfg.Inputs(m), t.in.task.Outputs()))
	if o.explains {
		if spec, err = spec.Explaining(); err != nil {
			return err
		}
	}
	if err := t.openModel(spec); err != nil {
		return err
	}
	if err := errors.Join(t.compareSplits(ctx, o), t.useTemperature(o.calibrated)); err != nil {
		return err
	}
	if o.withIDs {
		if err := t.openIDs(ctx); err != nil {
			return err
		}
	}
	if !o.light {
		return t.in.openWhole(ctx, &t.cfg, t.model, t.set)
	}
	return t.in.OpenGraph(ctx, topology.Options{CacheBytes: lightCache, Budget: t.in.Budget})
}

// chooseNodes sets the nodes to predict, as they were asked for.
func (t *trained) chooseNodes(ctx context.Context, o *opening, m *kv.Meta) (err error) {
	switch labels := m.Labels; {
	case o.nodes != nil:
		return t.onlyNodes(o.nodes, m)
	case o.split != "":
		t.set, err = t.nodes(ctx, o.split)
	case t.in.edges != nil:
		t.set = roaring.New()
		t.set.AddRange(0, uint64(t.in.edges.Len()))
	case o.labeledType && labels != nil && labels.OfType != "":
		t.set = nodesOfType(m, labels.OfType)
	case m.Deleted != "":
		t.set, err = nodesFrom(ctx, t.in.Store, 0)
	}
	return err
}

// lightCache is the memory for blocks of the graph where it stays on disk.
const lightCache = 4 << 20

// onlyNodes sets the nodes to predict, which have to be of the type that has labels.
func (t *trained) onlyNodes(nodes *roaring.Bitmap, m *kv.Meta) error {
	if t.in.edges != nil {
		return errors.New("the run predicts edges, and not nodes")
	}
	t.set = nodes
	if m.Labels == nil || m.Labels.OfType == "" {
		return nil
	}
	others := roaring.AndNot(nodes, nodesOfType(m, m.Labels.OfType))
	if !others.IsEmpty() {
		return fmt.Errorf("the run predicts nodes of type %s, and node #%d is none",
			m.Labels.OfType, others.Minimum())
	}
	return nil
}

// nodesOfType returns the nodes of a type of a typed store: one run of a bitmap.
func nodesOfType(m *kv.Meta, name string) *roaring.Bitmap {
	set := roaring.New()
	for _, t := range m.NodeTypes {
		if t.Name == name {
			set.AddRange(t.First, t.First+t.Nodes)
		}
	}
	return set
}

// compareSplits notes if the store has other splits than the run was trained on, unless nodes are
// predicted whatever their split.
func (t *trained) compareSplits(ctx context.Context, o *opening) error {
	if len(t.pos.Sets) == 0 || o.nodes != nil ||
		t.cfg.SplitTimes != nil { // times of nodes do not change
		return nil
	}
	now := runs.Sets{}
	for _, name := range runs.SetNames { // one at a time: it takes less memory
		set, held, err := loader.LoadSplit(ctx, t.in.Store, name, t.cfg.Split, t.in.Budget)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return err
		}
		now[name] = runs.SumOf(set)
		t.in.Budget.Release(held)
	}
	if what := t.pos.Sets.Replaced(now); what != "" {
		t.note(runs.OtherSetsNote(t.dir.Name(), what))
	}
	return nil
}

// openModel makes the model and loads the weights of the best evaluation.
func (t *trained) openModel(spec *model.Spec) (err error) {
	t.be, err = cuda.OpenNamed(t.cfg.Backend, backend.Options{Workers: t.cfg.Threads,
		Budget: t.in.Budget, Device: t.cfg.Device, DeviceMemory: t.cfg.DeviceMemory,
		TF32: t.cfg.Precision == setting.TF32})
	if err != nil {
		return err
	}
	t.closers = append(t.closers, t.be)
	if t.model, err = model.New(t.be, spec, false, t.in.Budget); err != nil {
		return err
	}
	_, note, err := useCheckpoint(t.dir, t.model.Params().Total, t.useWeights)
	if err != nil {
		return err
	}
	t.note(note)
	return nil
}

// note passes a note to whoever opened the run; "" is no note.
func (t *trained) note(text string) {
	if text != "" && t.notes != nil {
		t.notes(text)
	}
}

// useWeights loads the weights of the best evaluation from a checkpoint.
func (t *trained) useWeights(c *checkpoint) error {
	t.pos = c.pos
	if err := t.openVectors(c); err != nil {
		return err
	}
	w, err := c.predicting(t.model.Params().Total)
	if err != nil {
		return err
	}
	t.be.Write(t.model.Params().W, w)
	if n, ok := t.in.task.(*task.Numbers); ok {
		if c.pos.Scale == nil {
			return fmt.Errorf("train: run %s: the checkpoint has no scale of the labels: %w",
				t.dir.Name(), layout.ErrCorrupt)
		}
		n.Scale = *c.pos.Scale
	}
	return useThresholds(t.in.task, c.arrays)
}

// openVectors loads the learned vectors of nodes of the best evaluation, if the run has any.
func (t *trained) openVectors(c *checkpoint) (err error) {
	learned := learnedVectors(&t.cfg, t.in.Meta, false)
	if learned == nil {
		return nil
	}
	if t.vectors == nil { // there may be one of a checkpoint that turned out to be damaged
		if t.vectors, err = embedding.New(*learned, t.in.Budget); err != nil {
			return err
		}
		t.closers = append(t.closers, t.vectors)
	}
	return t.vectors.Load(t.dir, c.name, c.pos.Steps, c.pos.HasBest)
}

// openIDs opens the dictionary of ids, whose index is in memory.
func (t *trained) openIDs(ctx context.Context) error {
	dict, err := t.in.Files.IDs(ctx, 0)
	if err != nil {
		return fmt.Errorf("train: open ids: %w", err)
	}
	t.ids = dict
	if d, ok := dict.(ids.Stats); ok {
		if err := t.in.Budget.Reserve("index of the ids", d.IndexBytes()); err != nil {
			return fmt.Errorf("train: %w", err)
		}
	}
	return nil
}

// Close closes everything, in the reverse order of opening.
func (t *trained) Close() error {
	var err error
	for i := len(t.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, t.closers[i].Close())
	}
	return err
}

// EvalConfig says what to evaluate.
type EvalConfig struct {
	Limits
	// Run is the run whose best weights are evaluated.
	Run string
	// Split is train, val, test, or a stored set by its whole name. The default is test.
	Split string
	// Mode is exact, sampled or auto, which "" is too.
	Mode string
	// Metric is the metric to compute; "" is the run's.
	Metric string
}

// Evaluate returns the metrics of a run on a split.
func Evaluate(ctx context.Context, store *layout.Store, dev blockdev.Device,
	c EvalConfig) (res *EvalResult, err error) {
	if c.Split == "" {
		c.Split = "test"
	}
	t, err := openTrained(ctx, store, dev, opening{run: c.Run, split: c.Split, mode: c.Mode,
		limits: c.Limits, calibrated: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if c.Metric != "" {
		t.cfg.Metric = c.Metric
	}
	if err := errors.Join(t.cfg.Validate(), resolve(&t.cfg, t.in.Meta)); err != nil {
		return nil, err
	}
	e := t.evaluator(evalJob)
	e.draw = true
	n, err := e.counts(ctx, t.set)
	if err != nil {
		return nil, fmt.Errorf("train: evaluate run %s: %w", c.Run, err)
	}
	if res, err = newEvalResult(n, t.cfg.Metric); err != nil {
		return nil, fmt.Errorf("train: evaluate run %s on %s: %w", c.Run, c.Split, err)
	}
	res.Run, res.Split, res.Epoch = c.Run, c.Split, t.pos.BestEpoch
	return res, nil
}

// evaluator returns what predicts with the run, for one of its jobs.
func (t *trained) evaluator(job string) *evaluator {
	c := t.in.batches(&t.cfg,
		&plan.Plan{Ready: plan.ReadyLeast, Samplers: plan.Samplers(t.cfg.Threads)})
	c.Prepare = t.network.preparing(t.in.Budget, 0)
	return &evaluator{network: &t.network, in: t.in, cfg: &t.cfg,
		scratch: newScratch(t.in, t.dir, job), batches: c}
}

// nodes loads train, val or test of the run's column, or a set by its whole name.
func (t *trained) nodes(ctx context.Context, split string) (*roaring.Bitmap, error) {
	base, column := split, t.cfg.Split
	if !slices.Contains([]string{"train", "val", "test"}, split) {
		base, column, _ = strings.Cut(split, "@")
	}
	all, err := t.in.loadSets(ctx, &t.cfg, []string{base}, column)
	if err != nil {
		return nil, err
	}
	return all[0].Set, all[0].Err
}
