package link

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"gdb/blockdev"
	"gdb/compute/backend"
	"gdb/compute/backend/cuda"
	"gdb/compute/decoder"
	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/train/link/encode"
	"gdb/train/link/paged"
	"gdb/train/link/rank"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// Config holds the settings of a training.
type Config = setting.Link

// Begun describes a run of links that begins or goes on.
type Begun struct {
	Config              Config
	Entities, Relations int
	Edges               int
	Disk                string // where vectors are, if not in memory
}

// Lines says what is trained.
func (b *Begun) Lines(bool) []string {
	c := &b.Config
	lines := []string{c.Text(), fmt.Sprintf("on %d edges between %d entities; at most %d epochs, "+
		"%s at rate %g", b.Edges, b.Entities, c.Epochs, c.Optimizer, c.LR)}
	if c.Candidates > 0 {
		lines = append(lines, fmt.Sprintf("note: ranks are those among %d entities: they are not "+
			"those among all", c.Candidates))
	}
	if b.Disk != "" {
		lines = append(lines, "note: "+b.Disk)
	}
	return lines
}

// Result describes the end of a run.
type Result struct {
	Run       string
	Best      float64 // MRR on the validation edges; 0 if there are none
	BestEpoch int
	Epochs    int
	// Test says how the best weights rank the test edges; nil if there are none.
	Test    *rank.Result
	Stopped bool // before the last epoch, for lack of improvement
}

// position says how far a run has come: all that a checkpoint holds besides arrays. Batch counts
// the batches of Part, from 0.
type position struct {
	run.Position
	Part int `json:"part"`

	// These count the epoch so far.
	Loss    float64 `json:"loss"` // summed over Edges
	Edges   uint64  `json:"edges"`
	Batches int     `json:"batches"`
	Scores  uint64  `json:"scores"`
	Time    float64 `json:"time"`
	Wait    float64 `json:"wait"` // seconds waiting for the next parts
	// Launches counts what a device was given.
	Launches backend.Launches `json:"launches,omitzero"`

	// Record and BestRecord say in which files the vectors are, if they are on disk.
	Record     []byte `json:"record,omitempty"`
	BestRecord []byte `json:"best_record,omitempty"`

	Test *rank.Result `json:"test,omitempty"`
}

// trainer is one run under way. It may be used by one goroutine.
type trainer struct {
	*run.Loop
	cfg     Config
	store   *layout.Store
	dev     blockdev.Device
	budget  *mem.Budget
	pool    *kernel.Pool
	data    *data
	model   *model
	best    *bestRows
	source  vectorSource
	plan    *paged.Plan // nil if vectors are in memory
	stepper *stepper
	pipe    *pipeline // nil without staleness
	pos     position
}

// Run trains a model on the train edges of a store until the last epoch, or until validation has
// not improved for cfg.Patience evaluations, and tests the weights of the best evaluation. obs is
// called from the training goroutine; nil for none.
//
// When ctx is cancelled the step under way is finished, a checkpoint written, and an error that
// wraps context.Canceled and names the run returned; a run resumed from there gives the weights of
// one that was never stopped.
func Run(ctx context.Context, store *layout.Store, dev blockdev.Device, cfg Config,
	obs func(run.Event)) (*Result, error) {
	t := &trainer{Loop: run.New(store, cfg.Resume, obs), cfg: cfg, store: store, dev: dev}
	if err := t.Run(ctx, t.check); err != nil {
		return nil, err
	}
	return t.result(), nil
}

// Begun returns the settings of the run and what it is trained on.
func (t *trainer) Begun() run.Begun {
	return &Begun{Config: t.cfg, Entities: t.data.entities, Relations: t.data.relations,
		Edges: t.data.edges, Disk: plannedFor(t.plan, &t.cfg, t.stepper.batch)}
}

// Validate returns an error for the first setting that makes no sense, also for the
// decoder and the loss.
func Validate(c *Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if _, err := decoder.New(c.Decoder, c.Dim, decoder.Options{Norm: c.Norm}); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	loss := decoder.Loss{Name: c.Loss}
	if err := loss.Validate(c.Negatives == setting.NegativesAll); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// check checks the settings and, if a run is resumed, compares them with those of the run.
func (t *trainer) check() (spec run.Spec, err error) {
	if name := t.cfg.Resume; name != "" {
		f, err := t.Dir.ReadLink()
		if err != nil {
			return spec, err
		}
		spec.Created = f.Created
		if t.cfg.Run, f.Link.Run = name, name; t.cfg.AsBefore {
			t.cfg = *f.Link
		}
		if c := &t.cfg; c.Order == setting.OrderAuto { // it was chosen when the run began
			c.Order, c.PartitionCounts = f.Link.Order, f.Link.PartitionCounts
		}
		if err := t.cfg.SameResult(f.Link); err != nil {
			return spec, err
		}
		t.cfg.Resume = ""
	} else if err := t.checkFromRun(); err != nil {
		return spec, err
	}
	if t.cfg.Threads == 0 {
		t.cfg.Threads = runtime.NumCPU()
	}
	if t.cfg.Memory == 0 {
		t.cfg.Memory = mem.Available() / 2
	}
	t.cfg.Backend = t.backend()
	if t.cfg.LRSchedule == setting.SchedulePlateau {
		spec.PlateauWait = setting.PlateauWaitLink
	}
	spec.Name, spec.Schedule, spec.ByBest = t.cfg.Run, t.cfg.Schedule, t.cfg.FewCheckpoints
	spec.Better, spec.At = better, &t.pos.Position
	spec.Open = func(ctx context.Context) (run.Session, error) { return t, t.open(ctx) }
	return spec, Validate(&t.cfg)
}

// backend returns where the run computes: on the CPU what a device does not, unless one is asked
// for.
func (t *trainer) backend() string {
	if t.cfg.Backend == "" { // of a run before there was a choice
		return backend.CPU
	}
	on := t.cfg
	on.Backend = backend.CUDA
	if t.cfg.Backend == backend.Auto && on.Validate() != nil {
		return backend.CPU
	}
	return cuda.Chosen(t.cfg.Backend, t.cfg.Device)
}

// open reads the edges, and takes the memory of the model.
func (t *trainer) open(ctx context.Context) (err error) {
	t.budget = mem.NewProcessBudget(t.cfg.Memory)
	t.pool = kernel.NewPool(t.cfg.Threads)
	if err := checkDecoder(&t.cfg, t.store.Meta()); err != nil {
		return err
	}
	if t.plan, err = MakePlan(&t.cfg, t.store.Meta()); err != nil {
		return err
	}
	if t.plan != nil && t.cfg.FromRun != "" {
		return fmt.Errorf("train: --from-run %s: vectors are kept on disk by partition with these "+
			"settings, and a run begins with those of another in memory alone: raise --memory, "+
			"and leave --order out", t.cfg.FromRun)
	}
	read, rows := readData, int(t.store.Meta().Nodes)
	scored := rows
	if t.plan != nil {
		rows = 0
	}
	if t.cfg.ScoredOnDisk() {
		read, scored = readEvaluated, 0
	}
	if t.data, err = read(ctx, t.store, t.dev, &t.cfg, t.budget); err != nil {
		return err
	}
	t.model, err = newModel(&t.cfg, rows, t.data.relations, t.budget)
	if err != nil {
		return err
	}
	t.CloseLater(t.model)
	if t.best, err = newBestRows(t.model, scored, t.budget); err != nil {
		return err
	}
	t.CloseLater(t.best)
	j := newJoins(t.store.Meta())
	if err := t.budget.Reserve("a step", stepBytes(&t.cfg, rows, j.pairs)); err != nil {
		return fmt.Errorf("train: %w; a smaller --batch, or fewer --negatives, take less", err)
	}
	t.stepper = newStepper(&t.cfg, t.model.dec, t.pool, t.model.relations, j, t.data.trainIndex)
	if err := t.openDevice(); err != nil {
		return err
	}
	if t.cfg.Backend != backend.CUDA {
		t.CloseLater(t.stepper.be)
	}
	if t.plan == nil {
		t.source = newInMemory(t.data.train, t.model.entities, t.data.known)
	} else {
		t.source = &onDisk{t: t}
		t.stepper.batch = batchOf(&t.cfg, t.plan, t.data.entities)
	}
	if t.cfg.Staleness > 0 {
		t.pipe = newPipeline(t.stepper, t.cfg.Staleness, t.cfg.Threads)
		t.CloseLater(t.pipe)
	}
	if !t.cfg.Encodes() {
		return nil
	}
	return t.openEncoder(ctx)
}

// openEncoder opens the encoder. With vectors on disk it takes memory for those of all entities.
func (t *trainer) openEncoder(ctx context.Context) (err error) {
	learned := t.model.entities
	if t.plan != nil {
		learned, err = newTable("vectors to encode", t.data.entities, t.cfg.Dim, 0, t.budget)
		if err != nil {
			return err
		}
		t.CloseLater(learned)
	}
	t.stepper.enc, err = newEncoding(ctx, t.store, t.dev, encode.Inputs{Settings: &t.cfg,
		Budget: t.budget, Pool: t.pool}, learned)
	if err == nil {
		t.CloseLater(t.stepper.enc)
	}
	return err
}

// better reports whether a mean reciprocal rank is better than another.
func better(mrr, than float64) bool { return mrr > than }

// stepBytes returns about what steps and evaluations take. With staleness several steps are under
// way, each with copies of the rows that it reads. pairs is how many pairs of types edges join.
func stepBytes(c *Config, entities, pairs int) int64 {
	step := stepOnce(c, entities, pairs)
	if c.Staleness > 0 {
		step += int64(c.Staleness+1) * (step + 4*int64(c.Dim)*stepRows(c, pairs))
	}
	return step + rank.Bytes(c.Dim)
}

// stepRows returns how many rows of entities a step with drawn negatives reads.
func stepRows(c *Config, pairs int) int64 {
	if c.NegativeSampling == setting.NegativesBatch {
		return 4 * int64(c.Batch)
	}
	return 2 * (int64(c.Batch) + stepDraws(c, pairs))
}

// stepDraws returns how many negatives a step draws for each side at most: each further pair of
// types has one more by rounding.
func stepDraws(c *Config, pairs int) int64 {
	n := int64(c.Negatives)
	switch c.NegativeSampling {
	case setting.NegativesChunked:
		n *= chunksOfBatch
	case setting.NegativesEdge:
		return n * int64(c.Batch)
	}
	return n + int64(pairs-1)
}

// stepOnce returns about what one step takes.
func stepOnce(c *Config, entities, pairs int) int64 {
	batch, dim, candidates := int64(c.Batch), int64(c.Dim), int64(c.Negatives)
	rows := 8*batch + 4*candidates
	draws := stepDraws(c, pairs)
	switch {
	case c.Negatives == setting.NegativesAll:
		candidates = int64(entities)
		rows = 4*batch + 2*candidates
	case c.NegativeSampling == setting.NegativesBatch:
		candidates = batch
	case draws > candidates:
		rows += 3 * draws
	}
	return 4 * (2*batch*candidates + 2*rows*dim)
}

// Begin sets the initial state of a training.
func (t *trainer) Begin(ctx context.Context) error {
	t.cfg.Run = t.Dir.Name()
	t.pos.Seed, t.pos.Sets = t.cfg.Seed, runs.EdgeSets(t.store.Meta())
	t.model.init(t.cfg.Seed, t.pool)
	if t.cfg.FromRun != "" && !t.Dir.HasCheckpoint() {
		return t.takeVectors(ctx)
	}
	return nil
}

// Restored opens the vectors as the last checkpoint has them.
func (t *trainer) Restored(ctx context.Context) error {
	note, err := t.source.open(ctx, t.pos.Record, t.pos.BestRecord)
	t.Note(note)
	return errors.Join(err, t.upload())
}

// Tell fills in what the catalog says of the run.
func (t *trainer) Tell(r *kv.RunMeta) {
	r.Model, r.Metric = t.cfg.Decoder, runs.LinkMetric
	r.Validated = t.pos.HasBest && len(t.data.val) > 0
	if r.Tested = t.pos.Test != nil; r.Tested {
		r.Test = t.pos.Test.MRR
	}
}

func (t *trainer) result() *Result {
	return &Result{Run: t.Dir.Name(), Best: t.pos.Best, BestEpoch: t.pos.BestEpoch,
		Epochs: int(t.pos.Epoch), Test: t.pos.Test, Stopped: t.Exhausted()}
}
