package plan

import (
	"fmt"

	"gdb/internal/mem"
)

// DeviceFacts are those of a device with memory of its own, which has none where the process's
// threads compute. Sizes are bytes.
type DeviceFacts struct {
	Name         string
	Memory, Free int64 // in all, and before the run takes any
	// Model are weights, gradients and the optimizer's state. Step is what a step on the largest
	// batch computes, and Given what so many as are under way are given: rows and lists.
	Model, Step, Given int64
	// Eval is what an evaluation may take in the place of a step.
	Eval int64
	// Cacheable says that there are rows of features that it may keep.
	Cacheable bool
}

// DevicePlan is how the memory of a device is split. Sizes are bytes.
type DevicePlan struct {
	Name   string `json:"name"`
	Memory int64  `json:"memory_bytes"`
	// Other is what the driver, kernels and other processes have.
	Other int64 `json:"other_bytes"`
	Model int64 `json:"model_bytes"` // weights, gradients, optimizer state
	Step  int64 `json:"step_bytes"`  // activations and gradients
	Given int64 `json:"given_bytes"` // rows and lists of the steps under way
	// Eval is what evaluation takes besides the memory of steps.
	Eval int64 `json:"evaluation_bytes"`
	// Cache has rows of features, so many.
	Cache int64 `json:"cache_bytes"`
	Rows  int64 `json:"cache_rows"`
	// Bus is how the other rows come to it, once a run began.
	Bus *BusWay `json:"bus,omitempty"`
	// Shared has those of the batches of a macro-batch, so many.
	Shared     int64 `json:"shared_bytes,omitempty"`
	SharedRows int64 `json:"shared_rows,omitempty"`
}

// BusWay is how rows that a device does not keep come to it, and what both ways took when they were
// tried with Bytes of rows.
type BusWay struct {
	// InPlace says that the device reads them where they lie in the host's memory; else copies are
	// sent.
	InPlace bool  `json:"in_place"`
	Bytes   int64 `json:"bytes,omitempty"`
	// Copy is what it takes the host to copy rows that it keeps, Send to send the copies, and Read
	// the device to read rows in place, in seconds.
	Copy float64 `json:"copy_s,omitempty"`
	Send float64 `json:"send_s,omitempty"`
	Read float64 `json:"read_s,omitempty"`
	// Why says what went wrong with the device reading them.
	Why string `json:"why,omitempty"`
}

// String is a line.
func (w *BusWay) String() string {
	way := "copies are sent"
	if w.InPlace {
		way = "the device reads them in the host's memory"
	}
	if w.Bytes > 0 {
		way += fmt.Sprintf(": %s took the host %.2f ms to copy, %.2f ms to send, and the device "+
			"%.2f ms to read", mem.FormatSize(w.Bytes), 1e3*w.Copy, 1e3*w.Send, 1e3*w.Read)
	}
	switch {
	case w.Why != "":
		way += ": " + w.Why
	case w.Bytes == 0:
		way += ", since they change places in the host's cache"
	}
	return way
}

// BusWays says how rows that the device does not keep come to it; "" where there are none.
func (p *Plan) BusWays() string {
	switch {
	case p.OnDevice == nil || p.Forecast == nil || p.Forecast.DeviceHit == 1:
		return ""
	case p.Superbatch == nil && (p.Cache == "all" || p.Cache == "none" || p.Cache == "static"):
		return "copies of rows are sent, or the device reads them in the host's memory: what is " +
			"faster when a run begins and tries both"
	}
	return "copies of rows are sent, since they change places in the host's cache"
}

// deviceReserve is the part of a device's memory that is left free: for batches that are larger
// than any that was seen, and for what arenas take while they grow.
const deviceReserve = 16

// DeviceTooSmallError says that a run has no place in the memory of its device.
type DeviceTooSmallError struct{ Plan *DevicePlan }

// Error says what would do.
func (e *DeviceTooSmallError) Error() string {
	p := e.Plan
	size := mem.FormatSize
	return fmt.Sprintf("the memory of %s, %s, is too small: this run needs at least %s of it "+
		"(%s have the driver and others, model %s, step %s, what two steps are given %s, "+
		"evaluation %s): lower --batch, --fanout or --hidden, or --backend cpu", p.Name,
		size(p.Memory), sizeUp(p.taken()), size(p.Other), size(p.Model), size(p.Step),
		size(p.Given), size(p.Eval))
}

// taken is what there must be.
func (p *DevicePlan) taken() int64 { return p.Other + p.Model + p.Step + p.Given + p.Eval }

// planDevice splits the memory of the device; nil if there is none.
func (f *Facts) planDevice() *DevicePlan {
	d := &f.Device
	if d.Memory == 0 {
		return nil
	}
	p := &DevicePlan{Name: d.Name, Memory: d.Memory, Other: d.Memory - d.Free, Model: d.Model,
		Step: d.Step, Given: d.Given, Eval: max(0, d.Eval-d.Step-d.Given)}
	row := 4 * int64(f.Dim)
	if row == 0 || !d.Cacheable {
		return p
	}
	room := max(0, d.Memory-p.taken()-d.Memory/deviceReserve) / row
	if f.DeviceCache < 0 {
		p.Rows = min(room, int64(f.Nodes))
	} else {
		p.Rows = min(room, f.DeviceCache/row, int64(f.Nodes))
	}
	f.planShared(p, room)
	p.Cache, p.Shared = p.Rows*row, p.SharedRows*row
	return p
}

// planShared gives rows that batches of a macro-batch share up to half of the room for rows, unless
// all rows are kept.
func (f *Facts) planShared(p *DevicePlan, room int64) {
	if f.MacroBatch <= 1 || p.Rows == int64(f.Nodes) {
		return
	}
	want := min(int64(f.MacroBatch)*f.BatchNodes, int64(f.Nodes))
	if n := min(want, room/2-1); n > 0 { // one more has zeros
		p.SharedRows, p.Rows = n, min(p.Rows, room-n-1)
	}
}

// fits says whether the run has a place on the device.
func (p *DevicePlan) fits() error {
	if p != nil && p.taken() > p.Memory {
		return &DeviceTooSmallError{Plan: p}
	}
	return nil
}

// Cached is how many rows of features the device keeps.
func (p *DevicePlan) Cached() int64 {
	if p == nil {
		return 0
	}
	return p.Rows
}

// Note tells the user that rows cannot come to the device in both ways; "" if they can.
func (p *DevicePlan) Note() string {
	if p == nil || p.Bus == nil || p.Bus.Why == "" {
		return ""
	}
	return "rows are copied and sent to the device, which does not read them in the host's " +
		"memory: " + p.Bus.Why
}

// InPlace says whether the device reads rows in the host's memory.
func (p *DevicePlan) InPlace() bool { return p != nil && p.Bus != nil && p.Bus.InPlace }

// Room is how many rows of so many values a device keeps that has so much free once steps have
// taken theirs: no more than planned.
func (p *DevicePlan) Room(free int64, dim int) int64 {
	return max(0, min(p.Rows, (free-p.Eval-p.Memory/deviceReserve-p.Shared)/(4*int64(dim))))
}

// RoomShared is the same of rows that the batches of a macro-batch share, once others are kept.
func (p *DevicePlan) RoomShared(free int64, dim int) int64 {
	return max(0, min(p.SharedRows, (free-p.Eval-p.Memory/deviceReserve)/(4*int64(dim))-1))
}

// DeviceRows is how many rows the device keeps with any split of the host's memory.
func (f *Facts) DeviceRows() int64 { return f.planDevice().Cached() }

// pool are the shares of the device's memory.
func (p *DevicePlan) pool() Pool {
	parts := []Part{{"other", "driver, kernels, other processes", p.Other},
		{"model", "", p.Model}, {"step", "", p.Step},
		{"given", "rows and lists of 2 steps", p.Given},
		{"evaluation", "besides the step's", p.Eval}}
	cache := Part{"features", "none", p.Cache}
	if p.Rows > 0 {
		cache.What = fmt.Sprintf("of the %d nodes used most", p.Rows)
	}
	parts = append(parts, cache)
	if p.SharedRows > 0 {
		parts = append(parts, Part{"macro-batch", fmt.Sprintf("%d rows that its batches share",
			p.SharedRows), p.Shared})
	}
	return Pool{Device: p.Name, Bytes: p.Memory, Parts: parts}
}
