package train

import (
	"context"
	"fmt"

	"gdb/compute/backend"
	"gdb/compute/backend/cuda"
	"gdb/sample/loader"
	"gdb/train/devicecache"
	"gdb/train/exact"
	"gdb/train/model"
	"gdb/train/plan"
	"gdb/train/setting"
)

// rowsAfter is the number of steps that show how much of a device's memory steps take, before
// feature rows are kept there.
const rowsAfter = 8

// bus counts what goes to a device with memory of its own.
type bus struct {
	sent int64  // bytes sent so far
	hits uint64 // rows that the device kept
}

// deviceFacts returns what is known of the device that a run computes on, or is planned for.
func (t *trainer) deviceFacts() (f plan.DeviceFacts, err error) {
	c := &t.cfg
	if c.Backend != backend.CUDA {
		return f, nil
	}
	f.Name = fmt.Sprintf("device %d", c.Device)
	f.Cacheable = t.features > 0 && t.learned == nil
	f.Model = (2 +
		int64(len(stateNames(c.Optimizer)))) * 4 * int64(model.Of(c).Spec(t.dims).Params())
	if c.EvalMode != setting.EvalSampled && !t.alone {
		f.Eval = exact.Bytes + exact.HeapBytes
	}
	if c.DeviceMemory > 0 {
		f.Memory, f.Free = c.DeviceMemory, max(0, c.DeviceMemory-driverBytes)
		return f, nil
	}
	if on := t.be.Device(); on != nil {
		f.Free, f.Memory, err = on.DeviceMemory()
	}
	return f, err
}

// driverBytes is what driver, kernels and cuBLAS are assumed to take of a device that is
// only planned for.
const driverBytes = 512 << 20

// DeviceBytes returns the memory of a step on a device: see probe.Model.
func (s *stepper) DeviceBytes() (step, given int64) { return s.deviceStep, s.deviceGiven }

// sizeDevice records the device memory of a step that asks for floats values and is sent copied
// values. Arenas take an eighth more than they need. input is the size of the input of a step that
// assembles its rows on the device, for which more may be sent.
func (s *stepper) sizeDevice(floats, copied, input int64) {
	s.deviceStep = 4 * (floats + input) * 9 / 8
	s.deviceGiven = cuda.StepsStaged * (4*copied*9/8 + devicecache.MoreSent(4*input))
}

// openRows sets features up to be read into memory from which the device copies or reads them, and
// the device to keep some of them later, if the plan says so.
func (t *trainer) openRows(ctx context.Context) error {
	direct := t.plan.OnDevice.Cached() > 0 || t.plan.Superbatch == nil
	if t.be.Device() == nil || !direct || t.features == 0 || t.learned != nil {
		return nil
	}
	t.rows = devicecache.New(t.in.Features, t.in.Located, t.be, t.in.Budget)
	t.shared = devicecache.Share(t.rows)
	t.CloseLater(t.rows, t.shared)
	return t.rows.Choose(ctx, t.plan, t.in.Meta.Nodes, plan.CopyThreads(t.cfg.Threads))
}

// gathersMissed makes batches gather only the rows that are not on the device.
func (t *trainer) gathersMissed(c *loader.Config) {
	if t.rows != nil && t.plan.Superbatch == nil {
		c.Features = t.shared
	}
}

// fillRows copies rows to the device once steps have shown how much of it they take.
func (t *trainer) fillRows(ctx context.Context) error {
	if t.rows == nil || t.stepped >= rowsAfter {
		return nil
	}
	if t.stepped++; t.stepped < rowsAfter {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // the step that was done counts
	return t.shared.FillIn(ctx, t.plan.OnDevice, devicecache.Source{Rows: t.in.Rows,
		Hottest: t.in.Hottest, Nodes: t.in.Meta.Nodes, Share: t.plan.Superbatch == nil})
}

// addBus adds what went to the device since the last call.
func (t *trainer) addBus(s *epochSums) {
	on := t.be.Device()
	if on == nil {
		return
	}
	now := bus{sent: on.Sent()}
	if t.shared != nil {
		now.hits = t.shared.Used().Hits
	}
	s.Sent += uint64(now.sent - t.bus.sent)
	s.DeviceHits += now.hits - t.bus.hits
	t.bus = now
}
