package link

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/train/runs"
)

const (
	// checkpointPause is the longest time between checkpoints while a run trains.
	checkpointPause = 30 * time.Second
	// checkpointShare has a checkpoint wait for so many times what the last one took.
	checkpointShare = 10
	// checkpointLeast is the least time between those at the end of epochs.
	checkpointLeast = time.Second
	// positionBytesMax bounds the position, in which the test has a line for each relation.
	positionBytesMax = 16 << 20
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
	for i := range parts { // a vfs.File may change what is written to it
		parts[i] = slices.Clone(parts[i])
	}
	return t.dir.WriteState(nil, parts...)
}

// isDue says whether the last checkpoint is so long ago that there should be another.
func (t *trainer) isDue(pause time.Duration) bool {
	return !t.cfg.FewCheckpoints && time.Since(t.saved) > max(pause, checkpointShare*t.saving)
}

// load restores the current checkpoint. A run that was killed before its first begins again.
func (t *trainer) load() error {
	values := len(t.model.entities.Values) + len(t.model.relations.Values)
	arrays, note, err := readState(t.dir, &t.pos, values*(2+len(t.model.entities.State))+
		len(t.best.entities.Values)+
		encoderValues(&t.cfg, t.store.Meta()))
	if errors.Is(err, runs.ErrNoCheckpoint) {
		return nil
	}
	if err != nil {
		return err
	}
	t.note, t.stepper.opt.steps = note, t.pos.Steps
	for _, a := range t.arrays() {
		from, err := runs.FindArray(arrays, a.Name, len(a.Values))
		if err != nil {
			return err
		}
		copy(a.Values, from)
	}
	if t.stepper.enc != nil {
		return t.stepper.enc.encoder.Restore(arrays)
	}
	return nil
}

// encoderValues bounds the values that a checkpoint has of an encoder.
func encoderValues(c *Config, m *kv.Meta) int {
	if !c.Encodes() {
		return 0
	}
	spec, err := c.EncoderSpec(m)
	if err != nil {
		return 0 // it was checked
	}
	const padding = 1 << 12 // of each array
	return 3 * (spec.Params() + padding)
}

// readState reads the current checkpoint, of at most so many values.
func readState(dir runs.Dir, pos *position, values int) (arrays []runs.Array, note string,
	err error) {
	b, file, note, err := dir.ReadState(codec.HeaderBytes + positionBytesMax + 4*int64(values))
	if err != nil {
		return nil, "", err
	}
	if arrays, err = runs.DecodeState(dir.UUID(), b, pos); err != nil {
		return nil, "", fmt.Errorf("train: run %s: %w", dir.Name(), dir.Corrupt(file, err.Error()))
	}
	return arrays, note, nil
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
