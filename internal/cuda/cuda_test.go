//go:build cuda && cgo && linux

package cuda_test

import (
	_ "embed"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"unsafe"

	"gdb/internal/cuda"
	"gdb/internal/cuda/cudatest"
)

//go:generate ./testdata/ptx.sh

//go:embed testdata/kernels.ptx
var ptx string

func TestMain(m *testing.M) { os.Exit(cudatest.Main(m)) }

// machine is an open device with a stream, some locked memory and the test's kernels.
type machine struct {
	*cudatest.Emulator
	*cuda.Device
	stream *cuda.Stream
	host   *cuda.Pinned
	module *cuda.Module
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
	t.Cleanup(func() {
		ends := errors.Join(m.module.Close(), m.FreePinned(m.host), m.stream.Close())
		if ends != nil && !errors.Is(ends, cuda.ErrLost) {
			t.Error(ends)
		}
		if n := m.Count("allocations"); n != 0 && ends == nil {
			t.Errorf("%d allocations were not freed", n)
		}
		unbind()
		if err := m.Device.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// floats are the first n values of the locked memory, from a byte on.
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

func TestDevice(t *testing.T) {
	m := start(t)
	free, total, err := m.MemInfo()
	if err != nil || free <= 0 || total < free || m.MemoryBytes < free || m.Name == "" ||
		m.Major < 7 || m.Multiprocessors < 1 || m.DriverVersion < 11000 {
		t.Errorf("%+v, %d of %d bytes free, %v", m.Device, free, total, err)
	}
	if _, err := cuda.Open(1000); err == nil || !strings.Contains(err.Error(), "no device 1000") {
		t.Errorf("device 1000: %v", err)
	}
}

func TestKernel(t *testing.T) {
	m := start(t)
	const n = 1000
	x, y := m.alloc(t, 4*n), m.alloc(t, 4*n)
	in, out := m.floats(0, n), m.floats(4*n, n)
	for i := range in {
		in[i] = float32(i)
	}
	for _, err := range []error{
		m.stream.CopyToDevice(x, m.host.Bytes[:4*n]),
		m.stream.Fill(y, math.Float32bits(1), n),
		m.stream.Launch(m.function(t, "axpy"), 4, 256, 0, cuda.Pointer(y), cuda.Pointer(x),
			cuda.Float(0.5), cuda.Int(n)),
		m.stream.CopyToHost(m.host.Bytes[4*n:8*n], y),
		m.stream.Synchronize(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range out {
		if want := 1 + 0.5*float32(i); v != want {
			t.Fatalf("value %d is %g, want %g", i, v, want)
		}
	}
}
