package train

import (
	"context"
	"errors"
	"fmt"

	"gdb/compute/backend"
	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/sample/rowcache"
	"gdb/train/devicecache"
	"gdb/train/runs"
	"gdb/train/task"
)

// replicas are the same model on each of some devices (PaGraph, section 3.1). A batch comes in as
// many parts, one after the other; each device computes the gradients of its part, while the host
// goes on. Then their mean, by what the parts count in the loss of the batch, is added up in the
// memory of the host, in the order of the devices, and all take the optimizer's step with it: so
// their weights stay the same, to the bit, and what is learned is what one device learns from whole
// batches, but for rounding and for what dropout drops. One device takes the same steps with
// nothing to add up. It may be used by one goroutine.
type replicas struct {
	all    []*replica
	counts []float64  // of the parts of the batch so far
	losing []partLoss // losses that were not read, in the order of batches and parts
	begun  int        // those of earlier batches
	read   []backend.Loss
	// part and sum are gradients; nil for one device.
	part, sum []float32
}

// partLoss says which device computes the loss of a part, and what share it has in that of its
// batch.
type partLoss struct {
	device int
	share  float64
	first  bool // of its batch
}

// replica is the model on one device, and the rows of features that this device has.
type replica struct {
	*stepper
	rows *devicecache.Rows // nil for none
	bus  bus
}

// openReplicas opens the model on the devices behind the first, which shapes have.
func (p *planned) openReplicas(others []*shape) error {
	r := &replicas{all: []*replica{{stepper: p.steps}}}
	for i, s := range others {
		steps, err := newStepper(s)
		if err != nil {
			return fmt.Errorf("device %d: %w", p.cfg.MoreDevices[i], err)
		}
		p.loop.CloseLater(steps)
		r.all = append(r.all, &replica{stepper: steps})
	}
	p.replicas = r
	if len(others) == 0 {
		return nil
	}
	n := p.steps.model.Params().Total
	if err := p.in.Budget.Reserve("gradients of devices", sumBytes(&p.cfg, int64(n))); err != nil {
		return err
	}
	r.part, r.sum = make([]float32, n), make([]float32, n)
	return nil
}

// sumBytes returns the memory of the host in which the gradients of several devices are added up.
func sumBytes(c *Config, params int64) int64 {
	if c.Parts() == 1 {
		return 0
	}
	return mem.HeapCost(2 * 4 * params)
}

// begin draws the same initial values on all devices.
func (r *replicas) begin() {
	for _, s := range r.all {
		s.begin()
	}
}

// setRate sets the factor of the schedule.
func (r *replicas) setRate(factor float64) {
	for _, s := range r.all {
		s.opt.Factor = factor
	}
}

// step computes the gradients of the part of a batch that is next, and after the last one has all
// devices take the optimizer's step: done says so. A batch without a label changes nothing. The
// batch may be released then.
func (r *replicas) step(b *sample.Batch) (done bool, err error) {
	i := len(r.counts)
	bug.Check(int(b.Index%uint64(len(r.all))) == i, "batch %d comes as part %d", b.Index, i)
	s := r.all[i]
	counts, err := s.compute(b, s.rows.Input())
	if sent := s.rows.AwaitSent(); err == nil {
		err = sent
	}
	if err == nil && counts > 0 && len(r.all) > 1 {
		err = s.be.Err() // it begins to compute
	}
	if err != nil {
		return false, r.named(i, err)
	}
	if i == 0 {
		r.begun = len(r.losing)
	}
	if counts > 0 {
		r.losing = append(r.losing, partLoss{i, counts, len(r.losing) == r.begun})
	}
	if r.counts = append(r.counts, counts); len(r.counts) < len(r.all) {
		return false, nil
	}
	return true, r.update()
}

// update has all devices take a step with the mean of their gradients.
func (r *replicas) update() error {
	total := 0.0
	for _, c := range r.counts {
		total += c
	}
	defer func() { r.counts = r.counts[:0] }()
	for i := range r.losing[r.begun:] {
		r.losing[r.begun+i].share /= total
	}
	if total == 0 {
		return nil
	}
	if len(r.all) > 1 {
		if err := r.average(total); err != nil {
			return err
		}
	}
	for i, s := range r.all {
		if r.counts[i] == 0 {
			if err := s.be.Begin(); err != nil {
				return r.named(i, err)
			}
		}
		if err := s.update(); err != nil {
			return r.named(i, err)
		}
	}
	return nil
}

// average writes the mean of all gradients to all devices. It takes about a nanosecond for a
// parameter and device, and two copies of the parameters over the bus.
func (r *replicas) average(total float64) error {
	clear(r.sum)
	for i, s := range r.all {
		if r.counts[i] == 0 {
			continue
		}
		s.be.Read(r.part, s.model.Params().G)
		if err := s.be.Err(); err != nil {
			return r.named(i, err)
		}
		share := float32(r.counts[i] / total)
		for k, g := range r.part {
			r.sum[k] += share * g
		}
	}
	return r.write(r.sum, func(s *stepper) backend.Tensor { return s.model.Params().G })
}

// named says of which device an error is, if there are several.
func (r *replicas) named(i int, err error) error {
	if err == nil || len(r.all) == 1 {
		return err
	}
	return fmt.Errorf("device %d: %w", r.all[i].number, err)
}

// losses returns the losses of the batches since the last call, valid until the next. It is called
// between two batches.
func (r *replicas) losses() ([]backend.Loss, error) {
	each := make([][]backend.Loss, len(r.all))
	for i, s := range r.all {
		var err error
		if each[i], err = s.losses(); err != nil {
			return nil, r.named(i, err)
		}
	}
	r.read = r.read[:0]
	for _, p := range r.losing {
		loss := each[p.device][0]
		each[p.device] = each[p.device][1:]
		if loss.Mean *= p.share; p.first {
			r.read = append(r.read, loss)
			continue
		}
		of := &r.read[len(r.read)-1]
		of.Mean, of.Rows = of.Mean+loss.Mean, of.Rows+loss.Rows
		of.Hit, of.Wrong, of.Missed = of.Hit+loss.Hit, of.Wrong+loss.Wrong, of.Missed+loss.Missed
		of.Unknown += loss.Unknown
		of.Squared, of.Absolute = of.Squared+loss.Squared, of.Absolute+loss.Absolute
	}
	r.losing = r.losing[:0]
	return r.read, nil
}

// prepare prepares a batch for the device that computes it; nil where none does.
func (r *replicas) preparing() func(b *sample.Batch) error {
	if r.all[0].be.Device() == nil {
		return nil
	}
	return func(b *sample.Batch) error {
		i := int(b.Index % uint64(len(r.all)))
		return r.named(i, r.all[i].prepare(b))
	}
}

// finishBatches has batches come with their labels, and with only the rows that their device does
// not have. Superbatches gather all rows into page-locked memory, and drop the others then.
func (r *replicas) finishBatches(c *loader.Config) {
	if r.all[0].be.Device() == nil {
		return
	}
	of := func(b *sample.Batch) *replica { return r.all[b.Index%uint64(len(r.all))] }
	c.Finish = func(b *sample.Batch) error {
		of(b).finish(b)
		return nil
	}
	switch rows := r.all[0].rows; {
	case rows.InX():
		pages := devicecache.Pages{}
		for _, s := range r.all {
			pages = append(pages, s.be.Device())
		}
		c.Pages = pages
		c.Finish = func(b *sample.Batch) error {
			of(b).finish(b)
			return of(b).rows.Cache.Place(b)
		}
	case rows != nil:
		c.Features = func(b *sample.Batch) rowcache.Features { return of(b).rows.Features(b) }
	}
}

// fill copies rows to the devices: see devicecache.Rows.
func (r *replicas) fill(ctx context.Context) error {
	for i, s := range r.all {
		if err := s.rows.Fill(ctx); err != nil {
			return r.named(i, err)
		}
	}
	return nil
}

// rest gives back the memory of the host that steps have, while an evaluation needs it.
func (r *replicas) rest() (err error) {
	for i, s := range r.all {
		err = errors.Join(err, r.named(i, s.rows.Rest()))
		if i > 0 {
			err = errors.Join(err, r.named(i, s.be.Trim()))
		}
	}
	return err
}

// addTo adds what went to the devices since the last call to the sums of an epoch; nil drops it.
func (r *replicas) addTo(sums *epochSums) {
	for _, s := range r.all {
		s.bus.addTo(sums, s.be, s.rows)
	}
}

// launches counts what all devices were given. Busy is their mean.
func (r *replicas) launches() (sum backend.Launches) {
	for _, s := range r.all {
		sum = sum.Add(s.be.Launches())
	}
	sum.Busy /= float64(len(r.all))
	return sum
}

// write writes a vector of values, that of a part of the training's state, to all devices.
func (r *replicas) write(values []float32, to func(s *stepper) backend.Tensor) error {
	for i, s := range r.all {
		s.be.Write(to(s.stepper), values)
		if err := s.be.Err(); err != nil {
			return r.named(i, fmt.Errorf("train: write to the device: %w", err))
		}
	}
	return nil
}

// useWeights sets the weights of classes in the loss.
func (r *replicas) useWeights(w []float32) error {
	for _, s := range r.all {
		s.task.(*task.Classes).Counts = w
	}
	return r.write(w, func(s *stepper) backend.Tensor { return s.task.(*task.Classes).Weights })
}

// goOn takes over weights and the optimizer's state from a checkpoint after some steps.
func (r *replicas) goOn(steps int, arrays []array) error {
	first := r.all[0]
	w, err := runs.FindArray(arrays, "weights", first.model.Params().Total)
	if err == nil {
		err = r.write(w, func(s *stepper) backend.Tensor { return s.model.Params().W })
	}
	for i, name := range first.opt.StateNames {
		if err != nil {
			return err
		}
		if w, err = runs.FindArray(arrays, name, first.model.Params().Total); err == nil {
			err = r.write(w, func(s *stepper) backend.Tensor { return s.opt.State[i] })
		}
	}
	for _, s := range r.all {
		s.opt.Steps = steps
	}
	return err
}
