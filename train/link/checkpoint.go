package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gdb/train/runs"
)

// arrays lists the arrays that a checkpoint holds.
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

// WriteState writes the state of a checkpoint: first the vectors on disk, then the state that
// refers to them.
func (t *trainer) WriteState() (err error) {
	if err := errors.Join(t.settle(), t.download()); err != nil {
		return err
	}
	t.pos.Record, t.pos.BestRecord, err = t.source.Prepare(context.Background())
	if err != nil {
		return fmt.Errorf("write the vectors of a checkpoint: %w", err)
	}
	if err := t.writeState(); err != nil {
		return err
	}
	return t.source.Committed()
}

// writeState writes everything but vectors on disk.
func (t *trainer) writeState() error {
	t.pos.Steps = t.stepper.opt.steps
	arrays := t.arrays()
	if t.stepper.enc != nil {
		arrays = append(arrays, t.stepper.enc.encoder.Arrays()...)
	}
	return t.Dir.WriteState(&t.pos, arrays, nil)
}

// Restore reads all that a run needs to go on from a checkpoint.
func (t *trainer) Restore(checkpoint string) error {
	var pos position
	state, err := t.Dir.OpenState(checkpoint, &pos)
	if err != nil {
		return err
	}
	sets := runs.EdgeSets(t.store.Meta())
	if what := pos.Sets.Replaced(sets); what != "" {
		return errors.Join(runs.OtherSets(t.Dir.Name(), what), state.Close())
	}
	pos.Sets = sets
	t.pos, t.stepper.opt.steps = pos, pos.Steps
	for _, a := range t.arrays() {
		err = errors.Join(err, state.Load(a.Name, a.Values))
	}
	if t.stepper.enc != nil {
		err = errors.Join(err, t.stepper.enc.encoder.Restore(state.Load))
	}
	if err == nil {
		err = t.source.check(pos.Record, pos.BestRecord)
	}
	return errors.Join(err, state.Close())
}

// WriteRun writes run.json.
func (t *trainer) WriteRun() (err error) {
	f := runs.File{GDB: t.cfg.Version, Store: t.Dir.UUID().String(), Created: t.Created,
		Link: &t.cfg}
	if t.pos.Test != nil {
		if f.Test, err = json.Marshal(t.pos.Test); err != nil {
			return fmt.Errorf("train: encode the test: %w", err)
		}
	}
	return t.Dir.WriteFile(f)
}
