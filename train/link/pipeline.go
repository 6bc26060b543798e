package link

import (
	"errors"

	"gdb/compute/kernel"
	"gdb/internal/bug"
	"gdb/train/link/triples"
)

// drainEvery is the number of batches after which a pipeline is emptied. Only then a run may be
// stopped and a checkpoint written, so that these do not change results. Steps just before and
// after it overlap less.
const drainEvery = 64

// pipeline takes several steps at once, with bounded staleness (Mohoney and others, "Marius",
// section 3). With a staleness of n a batch reads rows as they are after all updates but those of
// the n batches before it, however fast others are, and updates are made in the order of the
// batches. So results depend on the seed alone. After the pipeline was empty the first batches
// read newer rows. It may be used by one goroutine, which reads and updates rows; other
// goroutines compute.
type pipeline struct {
	opt   *optimizer // that takes all steps
	slots []*pipelineSlot
	// Batches begin and end in order. Those with numbers from ended up to begun are under way.
	begun, ended int
}

// pipelineSlot computes one batch at a time. Batches take turns on the slots.
type pipelineSlot struct {
	stepper *stepper
	edges   int
	loss    float64
	done    chan error
}

// stepped is the result of a batch.
type stepped struct {
	loss  float64 // sum, divided by edgesInMean
	edges int
}

// newPipeline returns a pipeline of steps as those of s, whose batches read rows that lack up to
// staleness updates. threads is how many threads compute.
func newPipeline(s *stepper, staleness, threads int) *pipeline {
	p := &pipeline{opt: &s.opt}
	pool := kernel.NewPool(max(1, threads/(staleness+1)))
	for range staleness + 1 {
		own := newStepper(s.cfg, s.dec, pool, s.relations, s.joins, s.known)
		own.batch, own.held = s.batch, &held{}
		p.slots = append(p.slots, &pipelineSlot{stepper: own, done: make(chan error, 1)})
	}
	return p
}

// use makes the next batches train on a part. None may be under way. s has the
// negatives of the part.
func (p *pipeline) use(s *stepper) {
	for _, slot := range p.slots {
		slot.stepper.learned, slot.stepper.table, slot.stepper.neg = s.learned, s.table, s.neg
	}
}

// step begins a batch. If there is no free slot, the first batch under way is ended before and its
// result returned.
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

// end waits for the first batch under way, makes its update, and returns its result.
func (p *pipeline) end() (stepped, error) {
	slot := p.slots[p.ended%len(p.slots)]
	p.ended++
	if err := <-slot.done; err != nil {
		return stepped{}, err
	}
	return stepped{slot.loss, slot.edges}, slot.stepper.how.update(p.opt)
}

// empty reports whether no batch is under way.
func (p *pipeline) empty() bool { return p.begun == p.ended }

// Close waits for the batches under way and drops their updates.
func (p *pipeline) Close() (err error) {
	for ; !p.empty(); p.ended++ {
		<-p.slots[p.ended%len(p.slots)].done
	}
	for _, slot := range p.slots {
		err = errors.Join(err, slot.stepper.be.Close())
	}
	return err
}
