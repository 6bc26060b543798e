package link

import (
	"context"
	"errors"
	"fmt"

	"gdb/compute/decoder"
	"gdb/layout"
	"gdb/train/runs"
)

// checkFromRun returns an error if a run cannot begin with the vectors of the one that its settings
// name.
func (t *trainer) checkFromRun() error {
	if t.cfg.FromRun == "" {
		return nil
	}
	from := runs.Open(t.store, t.cfg.FromRun)
	f, err := from.ReadLink()
	if err == nil {
		err = from.BeginsOthers()
	}
	if err != nil {
		return fmt.Errorf("--from-run: %w", err)
	}
	if f.Link.OnDisk() {
		return fmt.Errorf("train: --from-run %s: the vectors of that run are on disk by "+
			"partition, and a run begins with those of one in memory: leave the flag out",
			t.cfg.FromRun)
	}
	if err := from.HasNodes(); err != nil {
		return fmt.Errorf("--from-run %s: %w", t.cfg.FromRun, err)
	}
	return t.cfg.SameModel(f.Link)
}

// takeVectors begins a run with the vectors of entities and relations, and the encoder, that
// another learned: those of the best evaluation, or with an encoder the last. What that run did not
// know keeps what the seed drew. The optimizer begins anew.
func (t *trainer) takeVectors(ctx context.Context) error {
	from := runs.Open(t.store, t.cfg.FromRun)
	shifts, err := from.Shifts(ctx, t.store)
	if err != nil {
		return fmt.Errorf("--from-run %s: %w", t.cfg.FromRun, err)
	}
	var at position
	_, note, err := from.Whole(func(checkpoint string) error {
		at = position{}
		state, err := from.OpenState(checkpoint, &at)
		if err != nil {
			return err
		}
		return errors.Join(t.takeState(state, &at, shifts), state.Close())
	})
	if err != nil {
		return fmt.Errorf("--from-run %s: %w", t.cfg.FromRun, err)
	}
	t.Note(note)
	text := fmt.Sprintf("begins with the vectors of run %s", t.cfg.FromRun)
	if at.HasBest && t.stepper.enc == nil {
		text += fmt.Sprintf(", of epoch %d, val MRR %s", at.BestEpoch, runs.Figure(at.Best, 4))
	}
	t.Note(text)
	return nil
}

// takeState takes the arrays of a checkpoint, of nodes that are where shifts say.
func (t *trainer) takeState(state *runs.StateFile, at *position, shifts []layout.Shift) error {
	entities, relations := runs.EntitiesName, runs.RelationsName
	if at.HasBest && t.stepper.enc == nil {
		entities, relations = runs.BestEntitiesName, runs.BestRelationsName
	}
	known, err := t.knownRows(state, entities, t.cfg.Dim, t.model.entities.Rows)
	if err != nil {
		return err
	}
	if err := state.Load(entities, t.model.entities.Values[:known*t.cfg.Dim]); err != nil {
		return err
	}
	runs.Spread(t.model.entities.Values, t.cfg.Dim, shifts, func(row []float32, node uint64) {
		decoder.InitialEntity(row, t.cfg.Seed, node, t.cfg.Init)
	})
	if err := t.takeRelations(state, relations); err != nil || t.stepper.enc == nil {
		return err
	}
	return t.stepper.enc.encoder.Begin(state.Load)
}

// takeRelations takes the vectors of relations; the reciprocal ones stand behind the others.
func (t *trainer) takeRelations(state *runs.StateFile, name string) error {
	width := t.model.dec.RelationDim(t.cfg.Dim)
	if width == 0 {
		return nil
	}
	known, err := t.knownRows(state, name, width, t.model.relations.Rows)
	if err != nil {
		return err
	}
	learned := make([]float32, known*width)
	if err := state.Load(name, learned); err != nil {
		return err
	}
	forward := known
	if t.cfg.Reciprocal {
		forward /= 2
	}
	to := t.model.relations.Values
	copy(to, learned[:forward*width])
	copy(to[t.model.count*width:], learned[forward*width:])
	return nil
}

// knownRows returns how many rows of a table an array of a checkpoint has.
func (t *trainer) knownRows(state *runs.StateFile, name string, width, most int) (int, error) {
	values, _, err := state.Sum(name)
	if err != nil {
		return 0, err
	}
	if values%uint64(width) != 0 || values > uint64(most*width) {
		return 0, fmt.Errorf("train: --from-run %s: the run has %d values of %s, and the store "+
			"has %d of them with %d each: read a snapshot that is not older than the run's",
			t.cfg.FromRun, values, name, most, width)
	}
	return int(values / uint64(width)), nil
}
