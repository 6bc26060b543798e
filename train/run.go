package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/sample/superbatch"
	"gdb/train/model"
	"gdb/train/plan"
	"gdb/train/probe"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
	"gdb/train/task"

	"github.com/RoaringBitmap/roaring/v2"
)

// trainer is one run under way. It may be used by one goroutine.
type trainer struct {
	*stepper
	run.Loop
	cfg    Config
	store  *layout.Store
	dev    blockdev.Device
	in     *inputs
	plan   *plan.Plan
	loader *loader.Loader       // nil until the run has a name: see epoch
	buffer *nodePartitions      // nil where batches are drawn from the whole graph
	device *plan.Profile        // for superbatches; nil with other caches
	reads  []superbatch.Reading // how superbatches decided to read, in this epoch
	alone  bool                 // nothing is evaluated: see Training
	totals Totals               // over the epochs of this process

	train     []sample.NodeID
	val, test *roaring.Bitmap // test is nil if the store has none
	sets      runs.Sets       // sums of the store's splits
	evalMost  int64           // number of nodes of the larger of val and test

	pos  position
	best []float32 // the weights of the best evaluation
	// thresholds are those that were chosen in the best evaluation; nil if nodes have one label.
	thresholds []float32
	valNote    string          // tells of validation nodes that were taken from train
	direction  string          // tells of a graph whose edges go one way
	moved      string          // tells of a run that began on another backend
	renewed    string          // tells of a run that began with a cache that no longer exists
	inputNotes []string        // tell how features are scaled and summed
	tested     json.RawMessage // the evaluation of the best weights on the test split; nil for none
	// oneSided says that the best weights hardly distinguish classes; "" if they do. steep tells of
	// a loss far above that of guessing.
	oneSided, steep string

	bus     bus // counts when they were last added to the sums
	stepped int // steps of this process, at most rowsAfter
}

// newTrainer returns a trainer that has opened nothing.
func newTrainer(store *layout.Store, dev blockdev.Device, cfg Config,
	obs func(run.Event)) *trainer {
	t := &trainer{cfg: cfg, store: store, dev: dev}
	t.Loop = run.Loop{Store: store, Identity: &t.cfg.Identity, Schedule: &t.cfg.Schedule,
		At: &t.pos.Position, Observer: obs, Better: func(a, b float64) bool {
			return setting.Better(t.cfg.Metric, a, b)
		}}
	return t
}

// Run trains a model on a store until the last epoch, or until validation has not improved for
// cfg.Patience evaluations, and tests the weights of the best evaluation. obs is called from the
// training goroutine; nil for none.
//
// When ctx is cancelled the step under way is finished, a checkpoint written, and an error that
// wraps context.Canceled and names the run returned; a run resumed from there gives the weights of
// one that was never stopped. An error that wraps layout.ErrCorrupt means damaged data.
func Run(ctx context.Context, store *layout.Store, dev blockdev.Device, cfg Config,
	obs func(run.Event)) (*Result, error) {
	t := newTrainer(store, dev, cfg, obs)
	if err := t.Run(ctx, t); err != nil {
		return nil, err
	}
	return t.result(), nil
}

// Started returns the settings and the plan of the run, and what the user is told.
func (t *trainer) Started() (job any, note string) {
	return &Begun{Plan: t.plan, Config: t.cfg, Train: uint64(len(t.train)),
		Unused: model.Of(&t.cfg).Unused(t.in.Meta)}, t.notes()
}

// notes returns what the user should know when a run begins.
func (t *trainer) notes() string {
	var all []string
	if !t.in.Labels.Numbers() && task.Measured(t.in.Meta.Labels) {
		all = append(all, fmt.Sprintf("the labels are %d classes that are whole numbers: if they "+
			"are numbers to predict, --loss mse", len(t.in.Meta.Labels.Classes)))
	}
	if unused := model.Of(&t.cfg).Spec(t.dims).Unused(); len(unused) > 0 {
		all = append(all, fmt.Sprintf("--%s changes nothing in this %s",
			strings.Join(unused, ", --"), t.cfg.Model))
	}
	fanout, layers := model.Of(&t.cfg).Sampled()
	if t.cfg.Before != nil && len(fanout)+len(layers) > 0 && t.plan.BatchEdges == 0 {
		all = append(all, fmt.Sprintf("no node of the batches looked at has an edge before %s: "+
			"--before takes the times that were ingested, or dates", t.cfg.Limit()))
	}
	for _, note := range append([]string{t.Notes(), t.moved, t.renewed, t.valNote, t.direction,
		t.in.Neighbors().Note,
		t.in.HotNote, t.macroNote(), t.buffer.Note(), t.plan.OnDevice.Note()}, t.inputNotes...) {
		if note != "" {
			all = append(all, note)
		}
	}
	return strings.Join(all, "; ")
}

// Prepare checks the settings against the store, and finds the run that is resumed.
func (t *trainer) Prepare(context.Context) error {
	m := t.store.Meta()
	if m.Labels == nil {
		return checkTrainable(m, &t.cfg)
	}
	if t.cfg.Resume != "" {
		if err := t.loadRun(); err != nil {
			return err
		}
	}
	t.cfg.Resume = ""
	if t.cfg.Threads == 0 {
		t.cfg.Threads = runtime.NumCPU()
	}
	if t.cfg.Memory == 0 {
		t.cfg.Memory = mem.Available() / 2
	}
	if err := model.Of(&t.cfg).Validate(); err != nil {
		return err
	}
	if err := checkTrainable(m, &t.cfg); err != nil {
		return err
	}
	if err := resolve(&t.cfg, m); err != nil {
		return err
	}
	if t.cfg.LRSchedule == setting.SchedulePlateau {
		t.PlateauWait = t.cfg.PlateauWait()
	}
	return nil
}

// loadRun finds the run to resume, and checks that the settings go with those of the run.
func (t *trainer) loadRun() error {
	store, name := t.store, t.cfg.Resume
	old, err := runs.Load(store, name)
	if err != nil {
		return err
	}
	file, err := runs.Open(store, name).ReadFile()
	if err != nil {
		return err
	}
	t.tested = file.Test
	version := t.cfg.Version
	if t.cfg.AsBefore {
		t.cfg = old
	}
	t.cfg.Run, t.cfg.Version, t.Resumed = name, version, true
	if t.cfg.Threads == 0 {
		t.cfg.Threads = old.Threads
	}
	if err := resolve(&t.cfg, store.Meta()); err != nil {
		return err
	}
	if t.cfg.Normalize == "auto" || t.cfg.Normalize == old.Normalize {
		t.cfg.Normalize, t.cfg.Scale = old.Normalize, old.Scale
	}
	t.cfg.Tune, t.cfg.Order = old.Tune, old.Order
	if was := file.Config.Cache; was != old.Cache && t.cfg.Cache == old.Cache {
		t.renewed = fmt.Sprintf("the run began with cache %s and goes on with %s, which changes "+
			"what is read and no result", was, old.Cache)
	}
	t.moved = t.cfg.Moved(&old)
	t.cfg.Resolved(&old.PartitionCounts)
	t.Dir = runs.Open(store, name)
	return t.cfg.SameResult(&old)
}

// plans opens what is read, and splits the memory.
func (t *trainer) plans(ctx context.Context) error {
	store, notes, err := withSums(ctx, t.store, t.dev, &t.cfg)
	if err != nil {
		return err
	}
	t.in = newInputs(store, t.dev, &t.cfg)
	t.CloseLater(t.in)
	if err := t.in.checkLeast(&t.cfg, true); err != nil {
		return err
	}
	if err := t.loadSplits(ctx, store); err != nil {
		return err
	}
	t.in.Budget.CollectHeap() // what loading took beyond what is kept
	note, err := t.in.openRows(ctx, &t.cfg)
	if err != nil {
		return err
	}
	t.inputNotes = append(notes, note)
	if err := t.in.openLabels(ctx, &t.cfg); err != nil {
		return err
	}
	if t.stepper, err = newStepper(&t.cfg, t.in.Meta, t.in.task, t.in.Budget); err != nil {
		return err
	}
	t.CloseLater(t.stepper)
	if err := t.openBuffer(); err != nil {
		return err
	}
	probed := t.probed()
	if probed.Device, err = t.deviceFacts(); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	p, err := probe.New(t.in.Source, probed, t.stepper)
	if err != nil {
		return err
	}
	return t.choose(ctx, p)
}

// choose splits the memory as it was split before for the same settings, or else
// chooses a new split.
func (t *trainer) choose(ctx context.Context, p *probe.Probe) error {
	tunes := t.cfg.Tune && t.cfg.Order == nil // on batches that a new plan samples
	best, err := p.Kept(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("train: %w", err)
	case best != nil && !tunes:
		err = t.openModel()
	default:
		best, err = t.chooseAnew(ctx, p, tunes)
	}
	if err != nil {
		return err
	}
	t.in.OnDevice = int(best.OnDevice.Cached())
	if t.plan = best; t.plan.Superbatch != nil {
		t.device, err = p.Profile(ctx)
	}
	if t.buffer != nil {
		t.buffer.Describe(t.plan)
	}
	return err
}

// chooseAnew chooses a split of the memory. It opens the model before anything is timed.
func (t *trainer) chooseAnew(ctx context.Context, p *probe.Probe, tunes bool) (*plan.Plan,
	error) {
	splits, err := p.Plans(ctx)
	if err != nil {
		return nil, fmt.Errorf("train: %w", explained(err, t.learned))
	}
	if err := t.openModel(); err != nil {
		return nil, err
	}
	if tunes {
		if err := t.tune(ctx); err != nil {
			return nil, err
		}
	}
	return p.Choose(ctx, splits)
}

// Open opens all that the run needs, as its memory allows.
func (t *trainer) Open(ctx context.Context) error {
	if err := t.plans(ctx); err != nil {
		return err
	}
	if !t.in.InTurns {
		if err := t.in.ChangeGraph(ctx, t.in.Graph); err != nil {
			return err
		}
	}
	if err := t.lookAtDirection(ctx); err != nil {
		return err
	}
	if err := t.in.openFeatures(ctx, &t.cfg, t.dims, t.plan); err != nil {
		return err
	}
	if err := t.openRows(ctx); err != nil {
		return err
	}
	if err := t.learnLabels(ctx); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// openModel takes the memory of the model.
func (t *trainer) openModel() error {
	if err := t.stepper.openModel(); err != nil {
		return err
	}
	t.in.vectors = t.vectors
	// The best weights, and the copies of a checkpoint.
	copies := (3 + int64(len(stateNames(t.cfg.Optimizer)))) * 4 * int64(t.model.Params().Total)
	return t.in.Budget.Reserve("checkpoint", copies)
}

// loadSplits loads the nodes to train, validate and test on.
func (t *trainer) loadSplits(ctx context.Context, store *layout.Store) error {
	splits, err := loader.LoadSplits(ctx, store, runs.SetNames, t.cfg.Split, t.in.Budget)
	if err != nil {
		return err
	}
	t.sets = setsOf(splits)
	train, val, test := &splits[0], &splits[1], &splits[2]
	if t.train, err = train.Nodes("train", t.in.Budget); err != nil {
		return err
	}
	train.Set = nil // its nodes are listed
	t.val, err = val.Set, val.Err
	switch {
	case isMissing(err) && t.alone:
		t.val, err = roaring.New(), nil
	case errors.Is(err, loader.ErrNoSplit):
		err = t.takeVal("the store has no val")
	case errors.Is(err, loader.ErrEmptySplit):
		err = t.takeVal("the store's val has no labeled node")
	}
	if err != nil {
		return err
	}
	t.evalMost = int64(t.val.GetCardinality())
	if t.test = test.Set; isMissing(test.Err) {
		return nil // the result says that there is no test
	}
	if test.Err == nil {
		t.evalMost = max(t.evalMost, int64(t.test.GetCardinality()))
	}
	return test.Err
}

// setsOf returns sums of the splits of runs.SetNames. Splits that the store lacks are left out.
func setsOf(splits []loader.Split) runs.Sets {
	sets := runs.Sets{}
	for i, s := range splits {
		if s.Err == nil {
			sets[runs.SetNames[i]] = runs.SumOf(s.Set)
		}
	}
	return sets
}

// isMissing reports whether err says that a split does not exist, or has no nodes.
func isMissing(err error) bool {
	return errors.Is(err, loader.ErrNoSplit) || errors.Is(err, loader.ErrEmptySplit)
}

// Begin removes what killed processes left, and sets the initial state of a training.
func (t *trainer) Begin(context.Context) error {
	if err := superbatch.RemoveDead(t.Dir.FS(), t.in.Store.Path("prep")); err != nil {
		return err
	}
	if err := t.Dir.FS().RemoveAll(t.Dir.Path(hiddenDir)); err != nil { // of a killed process
		return fmt.Errorf("train: remove hidden states: %w", err)
	}
	if err := removeDead(t.Dir); err != nil {
		return err
	}
	t.begin()
	t.pos.Seed, t.pos.Sets = t.cfg.Seed, t.sets
	return nil
}

// Restored does nothing, because everything is open already.
func (t *trainer) Restored(context.Context) error { return nil }

// WriteRun writes run.json, with what epochs cost, if there were any.
func (t *trainer) WriteRun() error {
	planned, err := json.Marshal(t.plan)
	if err != nil {
		return fmt.Errorf("train: encode the plan: %w", err)
	}
	f := runs.File{GDB: t.cfg.Version, Store: t.Dir.UUID().String(), Created: t.Created,
		Config: t.cfg, Dims: t.dims, Plan: t.plan.String(), Planned: planned, Test: t.tested}
	if t.features > 0 {
		f.Features = t.in.Meta.Features[0].Name
	}
	if t.totals.Epochs > 0 {
		if f.Actual, err = json.Marshal(&t.totals); err != nil {
			return fmt.Errorf("train: encode what epochs cost: %w", err)
		}
	}
	return t.Dir.WriteFile(f)
}

// WriteState writes the state of a checkpoint.
func (t *trainer) WriteState() error {
	t.pos.Steps = t.opt.steps
	weights, err := t.weights()
	if err != nil {
		return err
	}
	arrays := []array{{Name: "weights", Values: weights}}
	for i, name := range t.opt.stateNames {
		values := make([]float32, t.model.Params().Total)
		t.be.Read(values, t.opt.state[i])
		arrays = append(arrays, array{Name: name, Values: values})
	}
	if err := t.be.Err(); err != nil {
		return fmt.Errorf("train: read the optimizer's state: %w", err)
	}
	if t.pos.HasBest { // a copy: a vfs.File may change what is written to it
		best := array{Name: "best weights", Values: slices.Clone(t.best)}
		arrays = append(arrays, best)
	}
	if t.thresholds != nil {
		chosen := array{Name: thresholdsName, Values: slices.Clone(t.thresholds)}
		arrays = append(arrays, chosen)
	}
	return writeCheckpoint(t.Dir, t.pos, arrays, t.writeVectors())
}

// weights returns a copy of the weights.
func (t *trainer) weights() ([]float32, error) {
	w := make([]float32, t.model.Params().Total)
	t.be.Read(w, t.model.Params().W)
	if err := t.be.Err(); err != nil {
		return nil, fmt.Errorf("train: read the weights: %w", err)
	}
	return w, nil
}

// Tell fills in what the catalog says of the run.
func (t *trainer) Tell(r *kv.RunMeta) {
	r.Model, r.Metric = t.cfg.Model, t.cfg.Metric
	if r.Validated, r.Tested = t.pos.HasBest, t.pos.Test != nil; r.Tested {
		r.Test = *t.pos.Test
	}
}

func (t *trainer) result() *Result {
	r := &Result{Run: t.Dir.Name(), Metric: t.cfg.Metric, Test: t.pos.Test, Best: t.pos.Best,
		BestEpoch: t.pos.BestEpoch, Epochs: int(t.pos.Epoch), Stopped: t.Exhausted(),
		Extends:  t.cfg.Extends(),
		OneSided: t.oneSided, Steep: t.steep}
	if t.plan.Forecast != nil && t.totals.Epochs > 0 {
		r.Planned, r.Actual = t.plan.Forecast, &t.totals
	}
	return r
}
