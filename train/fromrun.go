package train

import (
	"context"
	"fmt"
	"slices"

	"gdb/compute/backend"
	"gdb/layout"
	"gdb/train/embedding"
	"gdb/train/runs"
)

// takeSettings has a new run that begins with the weights of another read its input as that did:
// what was measured of columns and features then is part of what the weights mean.
func (c *checked) takeSettings() error {
	old, err := runs.Load(c.store, c.cfg.FromRun)
	from := runs.Open(c.store, c.cfg.FromRun)
	if err == nil {
		err = from.BeginsOthers()
	}
	if err == nil && old.NodeEmbedding > 0 {
		err = from.HasNodes()
	}
	if err != nil {
		return fmt.Errorf("--from-run: %w", err)
	}
	if c.cfg.Features == "auto" || c.cfg.Features == old.Features {
		c.cfg.Features, c.cfg.Encoders = old.Features, old.Encoders
	}
	if c.cfg.Normalize == "auto" || c.cfg.Normalize == old.Normalize {
		c.cfg.Normalize, c.cfg.Scale = old.Normalize, old.Scale
	}
	c.cfg.EdgeScale = old.EdgeScale
	return nil
}

// fitsFromRun returns an error if the weights of the run that a new one begins with do not fit its
// model.
func (s *session) fitsFromRun() error {
	if s.cfg.FromRun == "" || s.Resumed {
		return nil
	}
	file, err := runs.Open(s.in.Store, s.cfg.FromRun).ReadFile()
	if err != nil {
		return err
	}
	if err := s.cfg.SameModel(&file.Config); err != nil {
		return err
	}
	if s.cfg.Features != file.Config.Features || s.cfg.Normalize != file.Config.Normalize {
		return fmt.Errorf("train: --from-run %s: the run reads --features %s --normalize %s, "+
			"and this one %s and %s: leave the flags out", s.cfg.FromRun, file.Config.Features,
			file.Config.Normalize, s.cfg.Features, s.cfg.Normalize)
	}
	if !slices.Equal(file.Dims, s.steps.dims) {
		return fmt.Errorf("train: --from-run %s: its layers have the widths %v, and these %v, "+
			"from features to classes: its weights do not fit; leave --from-run out", s.cfg.FromRun,
			file.Dims, s.steps.dims)
	}
	return nil
}

// takeWeights begins a run with the weights, and the vectors of nodes, that another predicts with.
// The optimizer begins anew.
func (s *session) takeWeights(ctx context.Context) error {
	from := runs.Open(s.in.Store, s.cfg.FromRun)
	file, err := from.ReadFile()
	if err != nil {
		return err
	}
	var shifts []layout.Shift
	if s.steps.vectors != nil {
		if shifts, err = from.Shifts(ctx, s.in.Store); err != nil {
			return fmt.Errorf("--from-run %s: %w", s.cfg.FromRun, err)
		}
	}
	var taken position
	_, note, err := useCheckpoint(from, s.steps.model.Params().Total, func(c *checkpoint) error {
		taken = c.pos
		return s.takeCheckpoint(from, c, shifts)
	})
	if err != nil {
		return fmt.Errorf("--from-run %s: %w", s.cfg.FromRun, err)
	}
	s.Note(note)
	if taken.Scale != nil {
		s.pos.Scale = taken.Scale
		s.useScale()
	}
	s.Note(tookWeights(&file, &taken))
	return nil
}

// takeCheckpoint takes the weights from a checkpoint of a run, whose nodes are where shifts say.
func (s *session) takeCheckpoint(from runs.Dir, c *checkpoint, shifts []layout.Shift) error {
	w, err := c.predicting(s.steps.model.Params().Total)
	if err != nil {
		return err
	}
	err = s.replicas.write(w, func(s *stepper) backend.Tensor { return s.model.Params().W })
	if err == nil && s.steps.vectors != nil {
		err = s.steps.vectors.LoadKnown(from, c.name, c.pos.Steps, c.pos.HasBest,
			embedding.Known{Shifts: shifts, Seed: s.cfg.Seed})
	}
	return err
}

// tookWeights says what a run begins with.
func tookWeights(file *runs.File, at *position) string {
	text := "begins with the weights of run " + file.Config.Run
	if at.HasBest {
		text += fmt.Sprintf(", of epoch %d, val %s", at.BestEpoch, runs.Figure(at.Best, 4))
	}
	return fmt.Sprintf("%s, of snapshot %d", text, file.Snapshot)
}
