//go:build cuda && cgo && linux

package cuda_test

import (
	"errors"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"gdb/internal/cuda"
	"gdb/internal/cuda/cudatest"
	"gdb/internal/mem"
)

func TestAllocFails(t *testing.T) {
	m := start(t)
	_, total, err := m.MemInfo()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Alloc(total + 1); !errors.Is(err, cuda.ErrOutOfMemory) {
		t.Errorf("more than there is: %v", err)
	}
	m.Set(t, "fail_alloc", 2)
	p := m.alloc(t, 1)
	if _, err := m.Alloc(1); !errors.Is(err, cuda.ErrOutOfMemory) ||
		!strings.Contains(err.Error(), "cuda: allocate 1 bytes: CUDA_ERROR_OUT_OF_MEMORY") {
		t.Errorf("a failed allocation: %v", err)
	}
	if q := m.alloc(t, 1); p == q || p%256 != 0 || q%256 != 0 {
		t.Errorf("allocations at %v and %v", p, q)
	}
}

// TestRegister copies from memory of an arena, and lets a kernel read it in place.
func TestRegister(t *testing.T) {
	m := start(t)
	const n = 1024
	arena, err := mem.NewArena(nil, "rows", 4*n)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = arena.Free() }()
	x := mem.View[float32](arena.Bytes())
	for i := range x {
		x[i] = float32(i)
	}
	y := m.alloc(t, 4*n)
	if err := m.stream.CopyToDevice(y, arena.Bytes()); err == nil && m.Emulated() {
		t.Error("a copy from memory that is not locked")
	}
	address, err := m.Register(arena.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		m.stream.CopyToDevice(y, arena.Bytes()),
		m.stream.Launch(m.function(t, "axpy"), n/256, 256, 0, cuda.Pointer(y),
			cuda.Pointer(address), cuda.Float(2), cuda.Int(n)),
		m.stream.CopyToHost(m.host.Bytes[:4*n], y),
		m.stream.Synchronize(),
		m.Unregister(arena.Bytes()),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range m.floats(0, n) {
		if v != 3*float32(i) {
			t.Fatalf("value %d is %g", i, v)
		}
	}
	if err := m.Unregister(arena.Bytes()); err == nil {
		t.Error("memory was unregistered twice")
	}
	if m.Count("locked") > 1 {
		t.Errorf("%d pieces of memory are locked", m.Count("locked"))
	}
}

// TestHostMayNotTouch reads device memory on the host.
func TestHostMayNotTouch(t *testing.T) {
	m := start(t)
	if !m.Emulated() || cudatest.Sanitized() {
		t.Skip("a device's memory is not mapped at all, and the sanitizer ends the process")
	}
	p := m.alloc(t, 8)
	if err := errors.Join(m.stream.Zero(p, 8), m.stream.Synchronize()); err != nil {
		t.Fatal(err)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() == nil {
			t.Error("the host read the device's memory")
		}
	}()
	t.Log(**(**byte)(unsafe.Pointer(&p)))
}

// TestOutOfBounds writes past the end of an allocation, by a page and by a value.
func TestOutOfBounds(t *testing.T) {
	for _, n := range []int{2048, 257} {
		m := start(t)
		if !m.Emulated() || cudatest.Sanitized() {
			t.Skip("a device that is lost stays lost, and the sanitizer ends the process")
		}
		x, err := m.Alloc(4 * 4096)
		if err != nil {
			t.Fatal(err)
		}
		y, err := m.Alloc(4 * 256)
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(m.stream.Zero(x, 4*4096),
			m.stream.Launch(m.function(t, "axpy"), 16, 256, 0, cuda.Pointer(y), cuda.Pointer(x),
				cuda.Float(1), cuda.Int(n)))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.stream.Synchronize(); !errors.Is(err, cuda.ErrLost) ||
			!strings.Contains(err.Error(), "CUDA_ERROR_ILLEGAL_ADDRESS") {
			t.Errorf("%d values in memory for 256: %v", n, err)
		}
		if _, err := m.Alloc(1); !errors.Is(err, cuda.ErrLost) {
			t.Errorf("a lost device: %v", err)
		}
		m.end(t)
	}
}

// TestSlack writes one value past the end of an allocation that ends before its guard page, which
// is found when it is freed.
func TestSlack(t *testing.T) {
	m := start(t)
	if !m.Emulated() {
		t.Skip("a device does not see this")
	}
	y, err := m.Alloc(4 * 250)
	if err != nil {
		t.Fatal(err)
	}
	x := m.alloc(t, 4*256)
	if err := errors.Join(m.stream.Fill(x, 0x3f800000, 256), m.stream.Zero(y, 4*250),
		m.stream.Launch(m.function(t, "axpy"), 1, 256, 0, cuda.Pointer(y), cuda.Pointer(x),
			cuda.Float(1), cuda.Int(251)), m.stream.Synchronize()); err != nil {
		t.Fatal(err)
	}
	if err := m.Free(y); !errors.Is(err, cuda.ErrLost) {
		t.Errorf("251 values in memory for 250: %v", err)
	}
}
