//go:build cuda && cgo && linux

package cuda_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"gdb/internal/cuda"
)

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

// TestThreadWithoutContext makes a call from a goroutine that did not bind the device.
func TestThreadWithoutContext(t *testing.T) {
	m := start(t)
	failed := make(chan error)
	go func() {
		_, err := m.Alloc(1 << 10)
		failed <- err
	}()
	if err := <-failed; err == nil ||
		!strings.Contains(err.Error(), "CUDA_ERROR_INVALID_CONTEXT") {
		t.Errorf("a call without a context: %v", err)
	}
	go func() {
		unbind, err := m.Bind()
		if err == nil {
			var p cuda.DevicePtr
			if p, err = m.Alloc(1 << 10); err == nil {
				err = m.Free(p)
			}
			unbind()
		}
		failed <- err
	}()
	if err := <-failed; err != nil {
		t.Errorf("a goroutine that bound the device: %v", err)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		err          cuda.Error
		memory, lost bool
		text         string
	}{
		{err: cuda.Error{Operation: "allocate 8 bytes", Code: 2, Name: "CUDA_ERROR_OUT_OF_MEMORY",
			Text: "out of memory"}, memory: true,
			text: "cuda: allocate 8 bytes: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"},
		{err: cuda.Error{Operation: "wait for a stream", Code: 700, Name: "N", Text: "illegal"},
			lost: true, text: "cuda: wait for a stream: N (700): illegal; the device takes no " +
				"more work from this process: start it again"},
		{err: cuda.Error{Operation: "start cuBLAS", Code: 3, BLAS: true, Name: "N"}, memory: true,
			text: "cuda: start cuBLAS: N (3)"},
		{err: cuda.Error{Operation: "sgemm", Code: 2, BLAS: true, Name: "N"},
			text: "cuda: sgemm: N (2)"},
	} {
		if s := c.err.Error(); s != c.text {
			t.Errorf("%q, want %q", s, c.text)
		}
		if errors.Is(&c.err, cuda.ErrOutOfMemory) != c.memory ||
			errors.Is(&c.err, cuda.ErrLost) != c.lost {
			t.Errorf("%v is of another kind", &c.err)
		}
	}
}

// TestMachinesWithout runs this program as on machines that lack something: a process loads a
// driver once.
func TestMachinesWithout(t *testing.T) {
	if os.Getenv("GDB_TEST_AVAILABLE") != "" {
		t.Logf("available: %v", cuda.Available())
		return
	}
	m := start(t)
	if !m.Emulated() {
		t.Skip("only the emulated device does this")
	}
	library := os.Getenv("GDB_LIBCUDA")
	for _, c := range []struct{ driver, blas, emu, want string }{
		{library, library, "", "available: <nil>"},
		{"", library, "", "cuda: no CUDA driver: libcuda.so.1: "},
		{"/none/libcuda.so", library, "", "cuda: no CUDA driver: /none/libcuda.so: cannot open"},
		{library, "/none/libcublas.so", "", "cuda: no cuBLAS: /none/libcublas.so: cannot open"},
		{library, "", "", "cuda: no cuBLAS: neither libcublas.so.13, .12 nor .11 is found"},
		{library, library, "devices=0", "cuda: the CUDA driver does not start: " +
			"CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestMachinesWithout$", "-test.v")
		cmd.Env = append(os.Environ(), "GDB_TEST_AVAILABLE=1", "GDB_LIBCUDA="+c.driver,
			"GDB_LIBCUBLAS="+c.blas, "GDB_EMU="+c.emu)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("driver %q, cuBLAS %q, %q: want %q, got %v\n%s", c.driver, c.blas, c.emu,
				c.want, err, out)
		}
	}
}

// lostWork is a small piece of work, of which each call can fail.
func lostWork(m *machine) error {
	p, err := m.Alloc(4 << 10)
	if err != nil {
		return err
	}
	f, err := m.module.Function("axpy")
	if err != nil {
		return err
	}
	return errors.Join(m.stream.Zero(p, 4<<10), m.stream.CopyToDevice(p, m.host.Bytes[:2<<10]),
		m.stream.Launch(f, 1, 256, 0, cuda.Pointer(p), cuda.Pointer(p+(2<<10)), cuda.Float(1),
			cuda.Int(256)),
		m.stream.CopyToHost(m.host.Bytes[:2<<10], p), m.stream.Synchronize(), m.Free(p))
}

// TestLostDevice loses the device in each call of some work in turn. Whatever is called then fails
// with ErrLost, and the device can be given back.
func TestLostDevice(t *testing.T) {
	m := start(t)
	m.Set(t, "lost_after", 0)
	before := m.Count("calls")
	if err := lostWork(m); err != nil {
		t.Fatal(err)
	}
	calls := m.Count("calls") - before
	m.end(t)
	for n := int64(1); n <= calls; n++ {
		m := start(t)
		m.Set(t, "lost_after", n)
		if err := lostWork(m); !errors.Is(err, cuda.ErrLost) {
			t.Errorf("lost in call %d: %v", n, err)
		}
		if _, err := m.Alloc(8); !errors.Is(err, cuda.ErrLost) {
			t.Errorf("after a loss in call %d: %v", n, err)
		}
		m.end(t)
	}
	if calls < 8 {
		t.Errorf("%d calls", calls)
	}
}
