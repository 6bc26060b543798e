package devicecache

import (
	"context"
	"errors"

	"gdb/compute/backend"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/sample/rowcache"
	"gdb/train/plan"
)

// StepsBefore is the number of steps that show how much of a device's memory steps take, before
// feature rows are kept there.
const StepsBefore = 8

// Rows has a device read feature rows in the memory of the host, or keep some of them, in a
// training. A nil one does neither.
type Rows struct {
	Cache  *Cache
	shared *Shared // in front of Cache, for macro-batches
	from   Source
	plan   *plan.DevicePlan
	steps  int  // of this process, at most StepsBefore
	inX    bool // batches have all their rows in X, which is page-locked
}

// Input returns what puts the rows of a batch together on a device. It returns nil where the batch
// has them.
type Input func(b *sample.Batch) (backend.Assemble, error)

// Open opens the rows of a training behind an empty cache, which its owner closes after them, and
// sets features up to be read into memory from which the device copies or reads them. nodes is the
// number of nodes of the graph, and threads how many copy rows.
func Open(ctx context.Context, c *Cache, p *plan.Plan, from Source, threads int) (*Rows, error) {
	r := &Rows{Cache: c, shared: Share(c), plan: p.OnDevice, inX: p.Superbatch != nil}
	r.from = from
	r.from.Share = !r.inX
	if r.inX {
		return r, nil
	}
	return r, c.Choose(ctx, p, from.Nodes, threads)
}

// Close frees what macro-batches have.
func (r *Rows) Close() error { return r.shared.Close() }

// Input returns where batches of training have their rows; nil for nil.
func (r *Rows) Input() Input {
	if r == nil {
		return nil
	}
	return r.shared.Input
}

// Features returns the features of a batch of training that was prepared.
func (r *Rows) Features(b *sample.Batch) rowcache.Features { return r.shared.For(b) }

// InX reports whether batches have all their rows in X, which is page-locked, and Cache.Place.
func (r *Rows) InX() bool { return r != nil && r.inX }

// ToEvaluate has the batches of a sampled evaluation bring the rows that the device does not keep,
// as those of training do, and returns where they have their rows, nil for nowhere. No training
// goes on meanwhile.
func (r *Rows) ToEvaluate(c *loader.Config) Input {
	switch {
	case r == nil:
		return nil
	case c.Superbatch != nil:
		c.Pages, c.Finish = r.Cache.be.Device(), r.Cache.Place
	case r.Cache.host != nil:
		c.Features = r.Cache.For
	default:
		return nil
	}
	return r.Cache.Input
}

// AwaitSent waits until the rows of a batch of training were copied, so that it may be released.
func (r *Rows) AwaitSent() error {
	if !r.InX() {
		return nil
	}
	return r.Cache.be.Device().AwaitSent()
}

// Rest gives back the memory in which rows went to the device, while an evaluation needs it.
func (r *Rows) Rest() error {
	if r == nil {
		return nil
	}
	return r.Cache.Rest()
}

// Fill copies rows to the device once steps have shown how much of it they take. It is called after
// each step.
func (r *Rows) Fill(ctx context.Context) error {
	if r == nil || r.steps >= StepsBefore {
		return nil
	}
	if r.steps++; r.steps < StepsBefore {
		return nil
	}
	// The step that was done counts, whatever ctx says.
	return r.shared.FillIn(context.WithoutCancel(ctx), r.plan, r.from)
}

// Hits returns how many rows of batches the device had so far.
func (r *Rows) Hits() uint64 {
	if r == nil {
		return 0
	}
	return r.shared.Used().Hits
}

// Pages locks pages of memory for several devices.
type Pages []backend.Device

// Lock locks them for all devices, or for none.
func (p Pages) Lock(x []byte) error {
	for i, on := range p {
		if err := on.Lock(x); err != nil {
			return errors.Join(err, p[:i].Unlock(x))
		}
	}
	return nil
}

// Unlock undoes Lock.
func (p Pages) Unlock(x []byte) (err error) {
	for _, on := range p {
		err = errors.Join(err, on.Unlock(x))
	}
	return err
}
