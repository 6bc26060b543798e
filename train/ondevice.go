package train

import (
	"context"

	"gdb/compute/backend"
	"gdb/sample"
	"gdb/train/devicecache"
	"gdb/train/plan"
	"gdb/train/run"
)

// rowsAfter is the number of steps that show how much of a device's memory steps take, before
// feature rows are kept there.
const rowsAfter = 8

// deviceRows has the device read feature rows in the memory of the host, or keep some of them. nil
// does neither.
type deviceRows struct {
	cache  *devicecache.Cache
	shared *devicecache.Shared // in front of cache, for macro-batches
	from   devicecache.Source
	plan   *plan.DevicePlan
	steps  int // of this process, at most rowsAfter
}

// rowsOf returns what puts the rows of a batch together on a device. It returns nil where the batch
// has them.
type rowsOf func(b *sample.Batch) (backend.Assemble, error)

// of returns where batches have their rows; nil for nil.
func (r *deviceRows) of() rowsOf {
	if r == nil {
		return nil
	}
	return r.shared.Input
}

// openDeviceRows sets features up to be read into memory from which the device copies or reads
// them, and the device to keep some of them later, if the plan says so. It returns nil where the
// model has no device, or batches come with their rows.
func openDeviceRows(ctx context.Context, l *run.Loop, in *inputs, s *stepper,
	p *plan.Plan) (*deviceRows, error) {
	direct := p.OnDevice.Cached() > 0 || p.Superbatch == nil
	if s.be.Device() == nil || !direct || s.features == 0 || s.learned != nil {
		return nil, nil
	}
	r := &deviceRows{cache: devicecache.New(in.Features, in.Located, s.be, in.Budget),
		plan: p.OnDevice, from: devicecache.Source{Rows: in.Rows, Hottest: in.Hottest,
			Nodes: in.Meta.Nodes, Share: p.Superbatch == nil}}
	r.shared = devicecache.Share(r.cache)
	l.CloseLater(r.cache, r.shared)
	return r, r.cache.Choose(ctx, p, in.Meta.Nodes, plan.CopyThreads(s.cfg.Threads))
}

// rest gives back the memory in which rows went to the device, while an evaluation needs it.
func (r *deviceRows) rest() error {
	if r == nil {
		return nil
	}
	return r.cache.Rest()
}

// fill copies rows to the device once steps have shown how much of it they take. It is called after
// each step.
func (r *deviceRows) fill(ctx context.Context) error {
	if r == nil || r.steps >= rowsAfter {
		return nil
	}
	if r.steps++; r.steps < rowsAfter {
		return nil
	}
	// The step that was done counts, whatever ctx says.
	return r.shared.FillIn(context.WithoutCancel(ctx), r.plan, r.from)
}

// bus counts what went to a device with memory of its own.
type bus struct {
	sent int64  // bytes so far
	hits uint64 // rows that the device kept
}

// addTo adds what went to a device since the last call to the sums of an epoch.
func (b *bus) addTo(s *epochSums, be backend.Backend, rows *deviceRows) {
	on := be.Device()
	if on == nil {
		return
	}
	now := bus{sent: on.Sent()}
	if rows != nil {
		now.hits = rows.shared.Used().Hits
	}
	s.Sent += uint64(now.sent - b.sent)
	s.DeviceHits += now.hits - b.hits
	*b = now
}
