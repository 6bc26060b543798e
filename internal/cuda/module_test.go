//go:build cuda && cgo && linux

package cuda_test

import (
	"errors"
	"strings"
	"testing"

	"gdb/internal/cuda"
)

func TestKernel(t *testing.T) {
	m := start(t)
	const n = 1000
	x, y := m.alloc(t, 4*n), m.alloc(t, 4*n)
	in, out := m.floats(0, n), m.floats(4*n, n)
	for i := range in {
		in[i] = float32(i)
	}
	if err := errors.Join(m.stream.CopyToDevice(x, m.host.Bytes[:4*n]),
		m.stream.Fill(y, 0x3f800000, n), // 1
		m.stream.Launch(m.function(t, "axpy"), 4, 256, 0, cuda.Pointer(y), cuda.Pointer(x),
			cuda.Float(0.5), cuda.Int(n)),
		m.stream.CopyToHost(m.host.Bytes[4*n:8*n], y), m.stream.Synchronize()); err != nil {
		t.Fatal(err)
	}
	for i, v := range out {
		if want := 1 + 0.5*float32(i); v != want {
			t.Fatalf("value %d is %g, want %g", i, v, want)
		}
	}
}

// TestBlocks sums by shuffles and shared memory, in many orders of threads and blocks.
func TestBlocks(t *testing.T) {
	m := start(t)
	const blocks = 5
	x, sums := m.alloc(t, 4*256*blocks), m.alloc(t, 4*blocks)
	for i := range m.floats(0, 256*blocks) {
		m.floats(0, 256*blocks)[i] = float32(i)
	}
	for seed := range int64(seeds) {
		if m.Emulated() {
			m.Set(t, "seed", seed)
		}
		if err := errors.Join(m.stream.CopyToDevice(x, m.host.Bytes[:4*256*blocks]),
			m.stream.Launch(m.function(t, "block_sums"), blocks, 256, 0, cuda.Pointer(sums),
				cuda.Pointer(x)),
			m.stream.CopyToHost(m.host.Bytes[8192:8192+4*blocks], sums),
			m.stream.Synchronize()); err != nil {
			t.Fatal(err)
		}
		for b, v := range m.floats(8192, blocks) {
			if want := float32(256*256*b + 255*128); v != want {
				t.Fatalf("seed %d, block %d: %g, want %g", seed, b, v, want)
			}
		}
	}
}

// TestBarriers holds that a barrier of a block does its work, and that the emulated device shows
// where one is missing.
func TestBarriers(t *testing.T) {
	m := start(t)
	x, y := m.alloc(t, 4*128), m.alloc(t, 4*128)
	for i := range m.floats(0, 128) {
		m.floats(0, 128)[i] = float32(i)
	}
	right := func(synced int) bool {
		if err := errors.Join(m.stream.CopyToDevice(x, m.host.Bytes[:512]),
			m.stream.Launch(m.function(t, "reverse"), 2, 64, 0, cuda.Pointer(y), cuda.Pointer(x),
				cuda.Int(synced)),
			m.stream.CopyToHost(m.host.Bytes[512:1024], y), m.stream.Synchronize()); err != nil {
			t.Fatal(err)
		}
		for i, v := range m.floats(512, 128) {
			if v != float32(i/64*64+63-i%64) {
				return false
			}
		}
		return true
	}
	for seed := range int64(seeds) {
		m.Set(t, "seed", seed)
		if !right(1) {
			t.Errorf("seed %d: wrong with a barrier", seed)
		}
		if right(0) {
			t.Errorf("seed %d: right without a barrier", seed)
		}
	}
}

// TestDeadlock launches a kernel whose threads wait at two places.
func TestDeadlock(t *testing.T) {
	m := start(t)
	if !m.Emulated() {
		t.Skip("a device would hang")
	}
	x := m.alloc(t, 4)
	if err := m.stream.Launch(m.function(t, "deadlock"), 1, 64, 0, cuda.Pointer(x)); err != nil {
		t.Fatal(err)
	}
	if err := m.stream.Synchronize(); !errors.Is(err, cuda.ErrLost) {
		t.Errorf("a deadlock: %v", err)
	}
}

func TestLoadFails(t *testing.T) {
	m := start(t)
	for text, want := range map[string]string{
		"nothing": "compile kernels: CUDA_ERROR_INVALID_",

		strings.Replace(ptx, ".target sm_70", ".target sm_990", 1): "compile kernels: CUDA_ERROR_",

		strings.Replace(ptx, ".entry axpy(", ".entry axpy(.param .u32", 1): "compile kernels: ",
	} {
		if _, err := m.Load(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		} else if m.Emulated() && !strings.Contains(err.Error(), "\n") {
			t.Errorf("no log of the compiler: %v", err)
		}
	}
	if _, err := m.module.Function("none"); err == nil ||
		!strings.Contains(err.Error(), "find kernel none: CUDA_ERROR_NOT_FOUND") {
		t.Errorf("a kernel that is not there: %v", err)
	}
}

func TestLaunchFails(t *testing.T) {
	m := start(t)
	f, x := m.function(t, "axpy"), m.alloc(t, 4)
	launch := func(blocks int) error {
		return m.stream.Launch(f, blocks, 256, 0, cuda.Pointer(x), cuda.Pointer(x), cuda.Float(1),
			cuda.Int(1))
	}
	if err := launch(0); err == nil || !strings.Contains(err.Error(),
		"launch axpy over 0 blocks of 256 threads: CUDA_ERROR_INVALID_VALUE") {
		t.Errorf("no blocks: %v", err)
	}
	func() {
		defer func() {
			if r := recover(); r == nil || !strings.HasPrefix(r.(string), "BUG: ") {
				t.Errorf("a launch with too few arguments: %v", r)
			}
		}()
		_ = m.stream.Launch(f, 1, 256, 0, cuda.Pointer(x))
	}()
	m.Set(t, "fail_launch", 2)
	if err := launch(1); err != nil {
		t.Error(err)
	}
	if err := launch(1); !errors.Is(err, cuda.ErrLost) {
		t.Errorf("a launch that fails: %v", err)
	}
}
