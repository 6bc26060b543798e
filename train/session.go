package train

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/sample/loader"
	"gdb/sample/superbatch"
	"gdb/train/devicesample"
	"gdb/train/model"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/task"
)

// session is a training under way: see checked. It may be used by one goroutine.
type session struct {
	*run.Loop
	*planned
	draws  *devicesample.Graph // nil where the host draws batches
	loader *loader.Loader      // nil until the run has a name: see epoch
	val    validation
	reads  []superbatch.Reading // how superbatches decided to read, in this epoch
	totals Totals               // over the epochs of this process

	pos  *position
	best []float32 // the weights of the best evaluation
	// thresholds are those that were chosen in the best evaluation; nil if nodes have one label.
	thresholds []float32
	// oneSided says that the best weights hardly distinguish classes; "" if they do. steep tells of
	// a loss far above that of guessing.
	oneSided, steep string
}

// openSession opens all that a planned training needs, as its memory allows. The position of the
// session is pos.
func openSession(ctx context.Context, p *planned, pos *position) (*session, error) {
	s := &session{Loop: p.loop, planned: p, pos: pos}
	s.CloseLater(&s.val)
	err := error(nil)
	if p.beside != nil {
		s.loader = p.beside.of.loader
	} else if err = p.openInputs(ctx, model.Of(&p.cfg).InPlaceResident(p.steps.dims)); err != nil {
		return nil, err
	}
	for i, r := range s.replicas.all {
		if p.beside != nil { // the batches that it shares have all rows
			break
		}
		if r.rows, err = openDeviceRows(ctx, p.loop, p.in, r.stepper, p.plan); err != nil {
			return nil, s.replicas.named(i, err)
		}
	}
	if s.draws, err = openDraws(ctx, p); err != nil {
		return nil, err
	}
	if pos.Scale, err = learnLabels(ctx, p.in, p.nodes, p.replicas); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	s.useScale()
	s.group()
	s.note()
	return s, s.fitsFromRun()
}

// openInputs opens the graph, and the features behind a cache. lend says that batches may refer to
// rows that are all in memory.
func (p *planned) openInputs(ctx context.Context, lend bool) error {
	if !p.in.InTurns {
		if err := p.in.ChangeGraph(ctx, p.in.Graph); err != nil {
			return err
		}
	}
	note, err := direction(ctx, p.checked, p.in, p.nodes.train)
	if err != nil {
		return err
	}
	p.loop.Note(note)
	return p.in.openFeatures(ctx, &p.cfg, lend, p.plan)
}

// note tells the user what to know when the run begins.
func (s *session) note() {
	if !s.in.Labels.Numbers() && task.Measured(s.in.Meta.Labels) {
		s.Note(fmt.Sprintf("the labels are %d classes that are whole numbers: if they are numbers "+
			"to predict, --loss mse", len(s.in.Meta.Labels.Classes)))
	}
	if unused := s.steps.model.Spec().Unused(); len(unused) > 0 {
		s.Note(fmt.Sprintf("--%s changes nothing in this %s", strings.Join(unused, ", --"),
			s.cfg.Model))
	}
	fanout, layers := model.Of(&s.cfg).Sampled()
	if s.cfg.Before != nil && len(fanout)+len(layers) > 0 && s.plan.BatchEdges == 0 {
		s.Note(fmt.Sprintf("no node of the batches looked at has an edge before %s: --before "+
			"takes the times that were ingested, or dates", s.cfg.Limit()))
	}
	s.Note(s.in.Neighbors().Note)
	s.Note(s.in.HotNote)
	if s.cfg.MacroBatch > 1 {
		s.Note(fmt.Sprintf("approximate: the neighbors of %d batches are drawn at once, and a "+
			"node that several of them reach has the same in all (--macro-batch)",
			s.cfg.MacroBatch))
	}
	s.Note(s.buffer.Note())
	s.Note(s.plan.OnDevice.Note())
}

// Begun returns the settings and the plan of the run.
func (s *session) Begun() run.Begun {
	return &Begun{Plan: s.plan, Config: s.cfg, Train: uint64(len(s.nodes.train)),
		Unused: model.Of(&s.cfg).Unused(s.in.Meta)}
}

// Begin removes what killed processes left, and sets the initial state of a training.
func (s *session) Begin(ctx context.Context) error {
	if err := superbatch.RemoveDead(s.Dir.FS(), s.in.Store.Path("prep")); err != nil {
		return err
	}
	if err := s.Dir.FS().RemoveAll(s.Dir.Path(hiddenDir)); err != nil { // of a killed process
		return fmt.Errorf("train: remove hidden states: %w", err)
	}
	if err := removeDead(s.Dir); err != nil {
		return err
	}
	s.replicas.begin()
	s.cfg.Run = s.Dir.Name()
	s.pos.Seed, s.pos.Sets = s.cfg.Seed, s.nodes.sets
	if s.cfg.FromRun != "" && !s.Dir.HasCheckpoint() {
		return s.takeWeights(ctx)
	}
	return nil
}

// Restored does nothing, because everything is open already.
func (s *session) Restored(context.Context) error { return nil }

// WriteRun writes run.json, with what epochs cost, if there were any.
func (s *session) WriteRun() error {
	planned, err := json.Marshal(s.plan)
	if err != nil {
		return fmt.Errorf("train: encode the plan: %w", err)
	}
	f := runs.File{GDB: s.cfg.Version, Store: s.Dir.UUID().String(), Created: s.Created,
		Config: s.cfg, Dims: s.steps.dims, Plan: s.plan.String(), Planned: planned, Test: s.tested}
	if s.steps.features > 0 {
		f.Features = s.in.Meta.Features[0].Name
	}
	if s.totals.Epochs > 0 {
		if f.Actual, err = json.Marshal(&s.totals); err != nil {
			return fmt.Errorf("train: encode what epochs cost: %w", err)
		}
	}
	return s.Dir.WriteFile(f)
}

// WriteState writes the state of a checkpoint.
func (s *session) WriteState() error {
	state := s.steps.opt.State
	s.pos.Steps = s.steps.opt.Steps
	weights, err := s.steps.weights()
	if err != nil {
		return err
	}
	arrays := []array{{Name: "weights", Values: weights}}
	for i, name := range s.steps.opt.StateNames {
		values := make([]float32, len(weights))
		s.steps.be.Read(values, state[i])
		arrays = append(arrays, array{Name: name, Values: values})
	}
	if err := s.steps.be.Err(); err != nil {
		return fmt.Errorf("train: read the optimizer's state: %w", err)
	}
	if s.pos.HasBest { // a copy: a vfs.File may change what is written to it
		best := array{Name: "best weights", Values: slices.Clone(s.best)}
		arrays = append(arrays, best)
	}
	if s.thresholds != nil {
		chosen := array{Name: thresholdsName, Values: slices.Clone(s.thresholds)}
		arrays = append(arrays, chosen)
	}
	var vectors func(dir string) error
	if v := s.steps.vectors; v != nil {
		vectors = func(dir string) error { return v.Write(s.Dir, dir, s.pos.Steps, s.pos.HasBest) }
	}
	if h := s.steps.history; h != nil {
		vectors = func(dir string) error { return h.Write(s.Dir, dir, s.pos.Steps) }
	}
	return s.Dir.WriteState(s.pos, arrays, vectors)
}

// Restore reads all that a run needs to go on from a checkpoint.
func (s *session) Restore(name string) error {
	c, err := readCheckpoint(s.Dir, name, s.steps.model.Params().Total)
	if err != nil {
		return err
	}
	return s.goOn(&c)
}

// goOn takes over the content of a checkpoint.
func (s *session) goOn(c *checkpoint) error {
	p, arrays := c.pos, c.arrays
	if what := p.Sets.Replaced(s.nodes.sets); what != "" {
		return runs.OtherSets(s.Dir.Name(), what)
	}
	p.Sets = s.nodes.sets
	if p.Scale == nil {
		p.Scale = s.pos.Scale
	}
	*s.pos = p
	s.useScale()
	err := s.replicas.goOn(p.Steps, arrays)
	if err != nil {
		return err
	}
	if p.HasBest {
		s.best, err = runs.FindArray(arrays, "best weights", s.steps.model.Params().Total)
	}
	if err == nil {
		s.thresholds, err = thresholdsOf(s.in.task, arrays)
	}
	if err == nil && s.steps.vectors != nil {
		err = s.steps.vectors.Restore(s.Dir, c.name, p.Steps, p.HasBest)
	}
	if h := s.steps.history; err == nil && h != nil {
		err = h.Restore(s.Dir, c.name, p.Steps)
	}
	return err
}

// useScale sets the scale with which the task standardizes labels, if they are numbers.
func (s *session) useScale() {
	if n, ok := s.in.task.(*task.Numbers); ok && s.pos.Scale != nil {
		n.Scale = *s.pos.Scale
	}
}

// Tell fills in what the catalog says of the run.
func (s *session) Tell(r *kv.RunMeta) {
	r.Model, r.Metric = s.cfg.Model, s.cfg.Metric
	if r.Validated, r.Tested = s.pos.HasBest, s.pos.Test != nil; r.Tested {
		r.Test = *s.pos.Test
	}
}

func (s *session) result() *Result {
	r := &Result{Run: s.Dir.Name(), Metric: s.cfg.Metric, Test: s.pos.Test, Best: s.pos.Best,
		BestEpoch: s.pos.BestEpoch, Epochs: int(s.pos.Epoch), Stopped: s.Exhausted(),
		Extends:  s.cfg.Extends(),
		OneSided: s.oneSided, Steep: s.steep}
	if s.plan.Forecast != nil && s.totals.Epochs > 0 {
		r.Planned, r.Actual = s.plan.Forecast, &s.totals
	}
	return r
}
