package plan

import (
	"fmt"

	"gdb/internal/mem"
)

// DeviceFacts are what is known of a device with memory of its own, such as a GPU. Memory is 0
// where the process's own threads compute. Sizes are bytes.
type DeviceFacts struct {
	Name         string
	Memory, Free int64 // all of it, and what is free before the run takes any
	// Model is what weights, gradients and the optimizer's state take. Step is what a step on the
	// largest batch takes to compute. Given is what the inputs (rows and lists) of all steps
	// under way take.
	Model, Step, Given int64
	// Eval is the memory that an evaluation may take, instead of a step's.
	Eval int64
	// Cacheable says that there are feature rows which the device may keep.
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
	// Eval is what evaluation takes beyond the memory of steps.
	Eval int64 `json:"evaluation_bytes"`
	// Cache is the memory of Rows feature rows that the device keeps.
	Cache int64 `json:"cache_bytes"`
	Rows  int64 `json:"cache_rows"`
	// Bus is how the other rows come to the device; nil until a run began.
	Bus *BusWay `json:"bus,omitempty"`
	// Shared is the memory of SharedRows rows that the batches of a macro-batch share.
	Shared     int64 `json:"shared_bytes,omitempty"`
	SharedRows int64 `json:"shared_rows,omitempty"`
}

// BusWay is how rows that the device does not keep come to it, and what both ways took when they
// were tried with Bytes of rows.
type BusWay struct {
	// InPlace says that the device reads rows in the host's memory. Otherwise copies are sent.
	InPlace bool  `json:"in_place"`
	Bytes   int64 `json:"bytes,omitempty"`
	// Copy is the time the host takes to copy rows out of its cache, Send to send the copies, and
	// Read the time the device takes to read rows in place, in seconds.
	Copy float64 `json:"copy_s,omitempty"`
	Send float64 `json:"send_s,omitempty"`
	Read float64 `json:"read_s,omitempty"`
	// Why says what went wrong when the device tried to read rows in place; "" if nothing did.
	Why string `json:"why,omitempty"`
}

// String returns one line for people.
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

// BusWays says how rows that the device does not keep will come to it; "" where there are none.
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

// deviceReserve leaves one part in 16 of a device's memory free: for batches larger than any that
// was sampled, and for what arenas take while they grow.
const deviceReserve = 16

// DeviceTooSmallError says that a run does not fit in the memory of its device.
type DeviceTooSmallError struct{ Plan *DevicePlan }

// Error says how much memory the run needs, for what, and which settings lower it.
func (e *DeviceTooSmallError) Error() string {
	p := e.Plan
	size := mem.FormatSize
	return fmt.Sprintf("the memory of %s, %s, is too small: this run needs at least %s of it "+
		"(%s have the driver and others, model %s, step %s, what two steps are given %s, "+
		"evaluation %s): lower --batch, --fanout or --hidden, or --backend cpu", p.Name,
		size(p.Memory), sizeUp(p.taken()), size(p.Other), size(p.Model), size(p.Step),
		size(p.Given), size(p.Eval))
}

// taken returns the bytes that a run needs with no feature rows kept.
func (p *DevicePlan) taken() int64 { return p.Other + p.Model + p.Step + p.Given + p.Eval }

// planDevice splits the memory of the device; it returns nil if there is none.
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

// planShared reserves up to half of the room, in rows, for rows that the batches of a macro-batch
// share. It reserves none if all rows are kept anyway.
func (f *Facts) planShared(p *DevicePlan, room int64) {
	if f.MacroBatch <= 1 || p.Rows == int64(f.Nodes) {
		return
	}
	want := min(int64(f.MacroBatch)*f.BatchNodes, int64(f.Nodes))
	if n := min(want, room/2-1); n > 0 { // one more has zeros
		p.SharedRows, p.Rows = n, min(p.Rows, room-n-1)
	}
}

// fits returns a DeviceTooSmallError if the run does not fit on the device.
func (p *DevicePlan) fits() error {
	if p != nil && p.taken() > p.Memory {
		return &DeviceTooSmallError{Plan: p}
	}
	return nil
}

// Cached returns how many feature rows the device keeps; 0 without a device.
func (p *DevicePlan) Cached() int64 {
	if p == nil {
		return 0
	}
	return p.Rows
}

// Note tells the user why the device cannot read rows in the host's memory; "" if it can.
func (p *DevicePlan) Note() string {
	if p == nil || p.Bus == nil || p.Bus.Why == "" {
		return ""
	}
	return "rows are copied and sent to the device, which does not read them in the host's " +
		"memory: " + p.Bus.Why
}

// InPlace reports whether the device reads rows in the host's memory.
func (p *DevicePlan) InPlace() bool { return p != nil && p.Bus != nil && p.Bus.InPlace }

// Room returns how many rows of dim values the device keeps if free bytes are left once steps have
// taken their memory: no more than planned.
func (p *DevicePlan) Room(free int64, dim int) int64 {
	return max(0, min(p.Rows, (free-p.Eval-p.Memory/deviceReserve-p.Shared)/(4*int64(dim))))
}

// RoomShared returns how many rows that the batches of a macro-batch share fit in free bytes, once
// the other rows are kept: no more than planned.
func (p *DevicePlan) RoomShared(free int64, dim int) int64 {
	return max(0, min(p.SharedRows, (free-p.Eval-p.Memory/deviceReserve)/(4*int64(dim))-1))
}

// DeviceRows returns how many rows the device keeps. It is the same for every split of the
// host's memory.
func (f *Facts) DeviceRows() int64 { return f.planDevice().Cached() }

// pool returns the device's memory as a Pool, with the share of each part of the run.
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
