package link

import (
	"gdb/compute/kernel"
	"gdb/internal/bug"
	"gdb/train/link/triples"
)

// drainEvery is after how many batches a pipeline is empty: where a run may be stopped, and
// checkpoints are written, so that these change no bit. The steps at its ends have little beside
// them.
const drainEvery = 64

// pipeline takes steps of which some are under way at once: bounded staleness (Mohoney and others,
// "Marius", section 3). With a staleness of n, a batch reads rows as they are after all updates but
// those of the n batches before it, be the others quicker or not, and updates are made in the order
// of the batches: so results are those of the seed. After it was empty, a batch reads what is
// newer. It is for one goroutine, which reads and updates rows; others compute.
type pipeline struct {
	opt   *optimizer // that takes all steps
	slots []*pipelineSlot
	// Batches begin and end in the order of their numbers: those from ended to begun are under way.
	begun, ended int
}

// pipelineSlot is where every so many-th batch is computed.
type pipelineSlot struct {
	stepper *stepper
	edges   int
	loss    float64
	done    chan error
}

// stepped is what a batch gave.
type stepped struct {
	loss  float64 // divided by edgesInMean
	edges int
}

// newPipeline makes a pipeline whose batches read rows before up to so many updates that they would
// have read if one came after the other. threads compute.
func newPipeline(t *trainer, staleness, threads int) *pipeline {
	p := &pipeline{opt: &t.stepper.opt}
	pool := kernel.NewPool(max(1, threads/(staleness+1)))
	for range staleness + 1 {
		s := newStepper(&t.cfg, t.model.dec, pool, t.model.relations, uint32(t.data.relations),
			t.data.trainIndex)
		s.batch, s.held = t.stepper.batch, &held{}
		p.slots = append(p.slots, &pipelineSlot{stepper: s, done: make(chan error, 1)})
	}
	return p
}

// use has the next batches train on a part; none is under way. s has the negatives of the part.
func (p *pipeline) use(s *stepper) {
	for _, slot := range p.slots {
		slot.stepper.part, slot.stepper.table, slot.stepper.neg = s.part, s.table, s.neg
	}
}

// step begins a batch. If there is no slot for it, the first batch under way is ended before, and
// returned.
func (p *pipeline) step(edges []triples.Triple, key uint64) (out stepped, err error) {
	if p.begun-p.ended == len(p.slots) {
		if out, err = p.end(); err != nil {
			return out, err
		}
	}
	slot := p.slots[p.begun%len(p.slots)]
	at, err := slot.stepper.gather(edges, key)
	if err != nil {
		return out, err
	}
	slot.edges = len(edges)
	p.begun++
	go func() {
		defer bug.Catch()
		loss, err := slot.stepper.compute(at, key)
		slot.loss = loss
		slot.done <- err
	}()
	return out, nil
}

// end waits for the first batch under way, and makes its update.
func (p *pipeline) end() (stepped, error) {
	slot := p.slots[p.ended%len(p.slots)]
	p.ended++
	if err := <-slot.done; err != nil {
		return stepped{}, err
	}
	return stepped{slot.loss, slot.edges}, slot.stepper.update(p.opt)
}

// empty says that no batch is under way.
func (p *pipeline) empty() bool { return p.begun == p.ended }

// Close waits for the batches that are under way, and forgets them.
func (p *pipeline) Close() error {
	for ; !p.empty(); p.ended++ {
		<-p.slots[p.ended%len(p.slots)].done
	}
	return nil
}
