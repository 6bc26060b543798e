package link

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gdb/internal/mem"
	"gdb/train/link/paged"
	"gdb/train/runs"
)

const (
	// checkpointPause is the longest time between checkpoints while a run trains.
	checkpointPause = 30 * time.Second
	// checkpointShare has a checkpoint wait for so many times what the last one took.
	checkpointShare = 10
	// checkpointLeast is the least time between those at the end of epochs.
	checkpointLeast = time.Second
)

// bestRows are the rows of the best evaluation.
type bestRows struct{ entities, relations *Table }

// newBestRows takes the memory of a copy of a model in which so many entities are scored.
func newBestRows(m *model, scored int, budget *mem.Budget) (*bestRows, error) {
	entities, err := newTable("best vectors", scored, m.entities.Dim, 0, budget)
	if err != nil {
		return nil, err
	}
	relations, err := newTable("best vectors", m.relations.Rows, m.relations.Dim, 0, budget)
	if err != nil {
		return nil, errors.Join(err, entities.Close())
	}
	return &bestRows{entities, relations}, nil
}

// keep copies the rows that are scored.
func (b *bestRows) keep(entities []float32, relations *Table) {
	copy(b.entities.Values, entities)
	copy(b.relations.Values, relations.Values)
}

// swap exchanges them with those of a model.
func (b *bestRows) swap(m *model) {
	m.entities.Values, b.entities.Values = b.entities.Values, m.entities.Values
	m.relations.Values, b.relations.Values = b.relations.Values, m.relations.Values
}

// Close frees the memory.
func (b *bestRows) Close() error { return errors.Join(b.entities.Close(), b.relations.Close()) }

// arrays are the parts of a checkpoint.
func (t *trainer) arrays() (all []runs.Array) {
	add := func(name string, table *Table) {
		all = append(all, runs.Array{Name: name, Values: table.Values})
		for i, state := range table.State {
			all = append(all, runs.Array{Name: name + " " + runs.LinkState(t.cfg.Optimizer)[i],
				Values: state})
		}
	}
	add(runs.EntitiesName, t.model.entities)
	add(runs.RelationsName, t.model.relations)
	if t.pos.HasBest {
		add(runs.BestEntitiesName, t.best.entities)
		add(runs.BestRelationsName, t.best.relations)
	}
	return all
}

// checkpoint writes where the run stands.
func (t *trainer) checkpoint() error {
	if err := t.metrics.Sync(); err != nil { // a checkpoint's epochs have their records
		return err
	}
	begun := time.Now()
	err := t.commit(t.writeState)
	t.saved = time.Now()
	t.saving = t.saved.Sub(begun)
	return err
}

// writeState writes the state of a checkpoint.
func (t *trainer) writeState() error {
	t.pos.Steps = t.stepper.opt.steps
	arrays := t.arrays()
	if t.stepper.enc != nil {
		arrays = append(arrays, t.stepper.enc.encoder.Arrays()...)
	}
	parts, err := runs.EncodeState(t.dir.UUID(), &t.pos, arrays)
	if err != nil {
		return err
	}
	return t.dir.WriteState(nil, parts...)
}

// isDue says whether the last checkpoint is so long ago that there should be another.
func (t *trainer) isDue(pause time.Duration) bool {
	return !t.cfg.FewCheckpoints && time.Since(t.saved) > max(pause, checkpointShare*t.saving)
}

// load restores the current checkpoint, or the newest that is whole. A run that was killed before
// its first begins again.
func (t *trainer) load() error {
	name, note, err := t.dir.Whole(t.goOn)
	if errors.Is(err, runs.ErrNoCheckpoint) {
		return nil
	}
	if err != nil {
		return err
	}
	if t.note = note; note != "" {
		return t.dir.GoOn(name)
	}
	return nil
}

// goOn takes all that a run goes on with from a checkpoint.
func (t *trainer) goOn(checkpoint string) error {
	var pos position
	state, err := t.dir.OpenState(checkpoint, &pos)
	if err != nil {
		return err
	}
	sets := runs.EdgeSets(t.store.Meta())
	if what := pos.Sets.Replaced(sets); what != "" {
		return errors.Join(runs.OtherSets(t.dir.Name(), what), state.Close())
	}
	pos.Sets = sets
	t.pos, t.stepper.opt.steps = pos, pos.Steps
	for _, a := range t.arrays() {
		err = errors.Join(err, state.Load(a.Name, a.Values))
	}
	if t.stepper.enc != nil {
		err = errors.Join(err, t.stepper.enc.encoder.Restore(state.Load))
	}
	if err == nil && t.plan != nil {
		err = paged.Check(t.diskConfig(), pos.Record, pos.BestRecord)
	}
	return errors.Join(err, state.Close())
}

// writeRun writes run.json.
func (t *trainer) writeRun() (err error) {
	f := runs.File{GDB: t.cfg.Version, Store: t.dir.UUID().String(), Created: t.created,
		Link: &t.cfg}
	if t.pos.Test != nil {
		if f.Test, err = json.Marshal(t.pos.Test); err != nil {
			return fmt.Errorf("train: encode the test: %w", err)
		}
	}
	return t.dir.WriteFile(f)
}
