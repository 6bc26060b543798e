package link

import (
	"testing"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/train/run"
	"gdb/train/setting"
)

// newTrainer returns a trainer that has opened nothing.
func newTrainer(store *layout.Store, dev blockdev.Device, cfg Config) *trainer {
	t := &trainer{Loop: run.New(store, cfg.Resume, nil), cfg: cfg, store: store, dev: dev}
	t.Spec = run.Spec{Schedule: cfg.Schedule, ByBest: cfg.FewCheckpoints, Better: better,
		At: &t.pos.Position}
	return t
}

// TestCompare goes through evaluations: only a better one is the best, so that of equal ones it is
// the first, and the learning rate is halved after setting.PlateauWaitLink others on end.
func TestCompare(t *testing.T) {
	tables := func(v float32) (entities, relations *Table) {
		return &Table{Values: []float32{v}}, &Table{Values: []float32{v}}
	}
	tr := newTrainer(nil, nil, Config{Schedule: setting.Schedule{Patience: 4},
		Learning: setting.Learning{LR: 0.5, LRSchedule: setting.SchedulePlateau}})
	tr.source, tr.PlateauWait = &inMemory{}, setting.PlateauWaitLink
	tr.model, tr.best = &model{}, &bestRows{}
	tr.model.entities, tr.model.relations = tables(0)
	tr.best.entities, tr.best.relations = tables(0)
	for i, c := range []struct {
		mrr       float64
		best      bool
		bestEpoch int
		rate      float64
		exhausted bool
	}{
		{0, true, 1, 0.5, false}, // the first, whatever it is
		{0.2, true, 2, 0.5, false},
		{0.2, false, 2, 0.5, false},
		{0.1, false, 2, 0.5, false},
		{0.3, true, 5, 0.5, false}, // after one less than a plateau
		{0.3, false, 5, 0.5, false},
		{0.2, false, 5, 0.5, false},
		{0.1, false, 5, 0.25, false}, // the third on end
		{0.1, false, 5, 0.25, true},
		{0.1, false, 5, 0.25, true},
		{0.1, false, 5, 0.125, true},
		{0.4, true, 12, 0.125, false},
	} {
		epoch := i + 1
		tr.model.relations.Values[0] = float32(epoch)
		best, err := tr.compare(t.Context(), c.mrr, epoch, []float32{float32(epoch)})
		if err != nil || best != c.best || tr.pos.BestEpoch != c.bestEpoch || tr.rate() != c.rate ||
			tr.Exhausted() != c.exhausted {
			t.Fatalf("epoch %d of MRR %v: best %v, the best is epoch %d, rate %v, exhausted %v, "+
				"want %+v (%v)", epoch, c.mrr, best, tr.pos.BestEpoch, tr.rate(), tr.Exhausted(),
				c, err)
		}
		if kept := float32(c.bestEpoch); tr.best.entities.Values[0] != kept ||
			tr.best.relations.Values[0] != kept {
			t.Fatalf("epoch %d: the rows of epoch %v are kept, want those of epoch %v", epoch,
				tr.best.entities.Values[0], kept)
		}
	}
}
