package train

import (
	"context"

	"gdb/compute/backend"
	"gdb/train/devicecache"
	"gdb/train/plan"
	"gdb/train/run"
)

// openDeviceRows opens the rows of a training on its device. It returns nil where the model has no
// device, or the host puts its rows together.
func openDeviceRows(ctx context.Context, l *run.Loop, in *inputs, s *stepper,
	p *plan.Plan) (*devicecache.Rows, error) {
	if s.be.Device() == nil || s.features == 0 || s.learned != nil {
		return nil, nil
	}
	c := devicecache.New(in.Features, in.Located, s.be, in.Budget)
	l.CloseLater(c)
	r, err := devicecache.Open(ctx, c, p, devicecache.Source{Rows: in.Rows, Hottest: in.Hottest,
		Nodes: in.Meta.Nodes}, plan.CopyThreads(s.cfg.Threads))
	l.CloseLater(r)
	return r, err
}

// bus counts what went to a device with memory of its own.
type bus struct {
	sent int64  // bytes so far
	hits uint64 // rows that the device kept
}

// addTo adds what went to a device since the last call to the sums of an epoch; nil drops it.
func (b *bus) addTo(s *epochSums, be backend.Backend, rows *devicecache.Rows) {
	on := be.Device()
	if on == nil {
		return
	}
	now := bus{on.Sent(), rows.Hits()}
	if s != nil {
		s.Sent += uint64(now.sent - b.sent)
		s.DeviceHits += now.hits - b.hits
	}
	*b = now
}
