//go:build cuda && cgo && linux

package cuda

/*
#include <cuda.h>
*/
import "C"

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"
)

// DevicePtr is an address in the device's memory, or in page-locked memory as the device sees it.
// The host must not dereference it. Zero is no address.
type DevicePtr = cu.DevicePtr

// Alloc allocates bytes of the device's memory, aligned to 256. Its contents are undefined.
func (d *Device) Alloc(bytes int64) (DevicePtr, error) {
	p, err := cu.MemAlloc(bytes)
	return p, sized("allocate %d bytes", bytes, err)
}

// Free frees what Alloc allocated. It waits for the work that is queued.
func (d *Device) Free(p DevicePtr) error { return failed("free memory", cu.MemFree(p)) }

// Register locks the pages of memory outside the Go heap, so that streams copy from and to it
// while the host goes on, and the device can read and write it in place by the address that is
// returned. It must stay mapped until Unregister.
func (d *Device) Register(memory []byte) (DevicePtr, error) {
	p := unsafe.Pointer(unsafe.SliceData(memory))
	flags := C.uint(C.CU_MEMHOSTREGISTER_PORTABLE | C.CU_MEMHOSTREGISTER_DEVICEMAP)
	if err := check(fmt.Sprintf("lock %d bytes of memory", len(memory)),
		C.cuMemHostRegister(p, C.size_t(len(memory)), flags)); err != nil {
		return 0, err
	}
	address, err := hostAddress(p)
	if err != nil {
		_ = check("", C.cuMemHostUnregister(p)) // the first error tells more
	}
	return address, err
}

// Registered returns the address of memory that Register locked on another device, or of a part of
// it.
func (d *Device) Registered(memory []byte) (DevicePtr, error) {
	return hostAddress(unsafe.Pointer(unsafe.SliceData(memory)))
}

// Unregister undoes Register of the same memory.
func (d *Device) Unregister(memory []byte) error {
	return check("unlock memory",
		C.cuMemHostUnregister(unsafe.Pointer(unsafe.SliceData(memory))))
}

// Pinned is page-locked memory that the driver allocated.
type Pinned struct {
	Bytes []byte
	// Device is its address as the device sees it.
	Device DevicePtr
}

// AllocPinned allocates page-locked memory of a positive size.
func (d *Device) AllocPinned(bytes int64) (*Pinned, error) {
	var p unsafe.Pointer
	flags := C.uint(C.CU_MEMHOSTALLOC_PORTABLE | C.CU_MEMHOSTALLOC_DEVICEMAP)
	if err := check(fmt.Sprintf("allocate %d bytes of locked memory", bytes),
		C.cuMemHostAlloc(&p, C.size_t(bytes), flags)); err != nil {
		return nil, err
	}
	address, err := hostAddress(p)
	if err != nil {
		_ = cu.MemFreeHost(p) // the first error tells more
		return nil, err
	}
	return &Pinned{Bytes: unsafe.Slice((*byte)(p), bytes), Device: address}, nil
}

// FreePinned frees what AllocPinned allocated.
func (d *Device) FreePinned(p *Pinned) error {
	err := cu.MemFreeHost(unsafe.Pointer(unsafe.SliceData(p.Bytes)))
	*p = Pinned{}
	return failed("free locked memory", err)
}

// hostAddress returns the address by which the device sees locked memory.
func hostAddress(p unsafe.Pointer) (DevicePtr, error) {
	var address C.CUdeviceptr
	err := check("address of locked memory", C.cuMemHostGetDevicePointer(&address, p, 0))
	return DevicePtr(address), err
}
