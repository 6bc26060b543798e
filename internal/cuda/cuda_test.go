//go:build cuda && cgo && linux

package cuda_test

import (
	_ "embed"
	"errors"
	"testing"
	"unsafe"

	"gdb/internal/cuda"
	"gdb/internal/cuda/cudatest"
)

//go:generate ./testdata/ptx.sh

//go:embed testdata/kernels.ptx
var ptx string

// machine is an open device with a stream, some locked memory and the test's kernels.
type machine struct {
	*cudatest.Emulator
	*cuda.Device
	stream *cuda.Stream
	host   *cuda.Pinned
	module *cuda.Module
	unbind func()
}

// start opens the device for a test. When the test ends all must have been given back.
func start(t *testing.T) *machine {
	t.Helper()
	m := &machine{Emulator: cudatest.Start(t, "testdata/kernels.cu")}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	m.Device, err = cuda.Open(0)
	must(err)
	unbind, err := m.Bind()
	must(err)
	m.stream, err = m.NewStream()
	must(err)
	m.host, err = m.AllocPinned(1 << 20)
	must(err)
	m.module, err = m.Load(ptx)
	must(err)
	m.unbind = unbind
	t.Cleanup(func() { m.end(t) })
	return m
}

// end gives everything back, once.
func (m *machine) end(t *testing.T) {
	t.Helper()
	if m.unbind == nil {
		return
	}
	err := errors.Join(m.module.Close(), m.FreePinned(m.host), m.stream.Close())
	if err != nil && !errors.Is(err, cuda.ErrLost) {
		t.Error(err)
	}
	m.unbind()
	m.unbind = nil
	if err := m.Device.Close(); err != nil {
		t.Error(err)
	}
}

// floats returns the first n values of the locked memory, from a byte on.
func (m *machine) floats(from, n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&m.host.Bytes[from])), n)
}

// function finds a kernel.
func (m *machine) function(t *testing.T, name string) cuda.Function {
	t.Helper()
	f, err := m.module.Function(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// alloc allocates device memory until the test ends.
func (m *machine) alloc(t *testing.T, bytes int64) cuda.DevicePtr {
	t.Helper()
	p, err := m.Alloc(bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Free(p); err != nil && !errors.Is(err, cuda.ErrLost) {
			t.Error(err)
		}
	})
	return p
}
