//go:build cuda && cgo && linux

package cuda

import (
	"fmt"
	"runtime"

	"gorgonia.org/cu"
)

// Device is a GPU whose primary context this process holds.
type Device struct {
	// Ordinal is the device's number among those that the driver shows, from 0.
	Ordinal int
	Name    string
	// MemoryBytes is the size of the device's memory.
	MemoryBytes int64
	// Major and Minor are its compute capability.
	Major, Minor int
	// Multiprocessors is the number of multiprocessors: at least this many blocks run at once.
	Multiprocessors int
	// DriverVersion is the version of CUDA that the driver supports: 1000 * major + 10 * minor.
	DriverVersion int

	device  cu.Device
	context cu.CUContext
}

// Count loads the driver, and returns how many devices it shows.
func Count() (int, error) {
	if err := loadDriver(); err != nil {
		return 0, err
	}
	n, err := cu.NumDevices()
	return n, failed("count devices", err)
}

// Open takes hold of a device by its number.
func Open(ordinal int) (*Device, error) {
	n, err := Count()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= n {
		return nil, fmt.Errorf("cuda: no device %d: the driver shows %d, numbered from 0", ordinal,
			n)
	}
	d := &Device{Ordinal: ordinal, DriverVersion: cu.Version()}
	if d.device, err = cu.GetDevice(ordinal); err != nil {
		return nil, failed("take the device", err)
	}
	if d.Name, err = d.device.Name(); err != nil {
		return nil, failed("name of the device", err)
	}
	if d.MemoryBytes, err = d.device.TotalMem(); err != nil {
		return nil, failed("memory of the device", err)
	}
	for _, a := range []struct {
		value     *int
		attribute cu.DeviceAttribute
	}{
		{&d.Major, cu.ComputeCapabilityMajor}, {&d.Minor, cu.ComputeCapabilityMinor},
		{&d.Multiprocessors, cu.MultiprocessorCount},
	} {
		if *a.value, err = d.device.Attribute(a.attribute); err != nil {
			return nil, failed("attributes of the device", err)
		}
	}
	if d.context, err = d.device.RetainPrimaryCtx(); err != nil {
		return nil, failed("retain the primary context", err)
	}
	return d, nil
}

// Bind locks the goroutine to its thread and makes the device that thread's current one, until
// unbind is called, by the same goroutine.
func (d *Device) Bind() (unbind func(), err error) {
	runtime.LockOSThread()
	if err := cu.SetCurrentContext(d.context); err != nil {
		runtime.UnlockOSThread()
		return nil, failed("make the context current", err)
	}
	return func() {
		// The thread goes back to others. That its context stays current on an error hurts nobody:
		// whoever uses a device binds it.
		_ = cu.SetCurrentContext(cu.CUContext{})
		runtime.UnlockOSThread()
	}, nil
}

// MemInfo returns how much of the device's memory is free, over all processes, and its total size.
func (d *Device) MemInfo() (free, total int64, err error) {
	free, total, err = cu.MemInfo()
	return free, total, failed("free memory", err)
}

// Synchronize waits for all streams of the device.
func (d *Device) Synchronize() error {
	return failed("wait for the device", cu.Synchronize())
}

// Close releases the device. Everything made from it must be closed before.
func (d *Device) Close() error {
	return failed("release the primary context", d.device.ReleasePrimaryCtx())
}
