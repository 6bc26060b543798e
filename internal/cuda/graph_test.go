//go:build cuda && cgo && linux

package cuda_test

import (
	"errors"
	"strings"
	"testing"

	"gdb/internal/cuda"
)

// TestGraph captures y += a*x on two streams that fork and join, launches it and updates it.
func TestGraph(t *testing.T) {
	m := start(t)
	axpy := m.function(t, "axpy")
	x, y, z := m.alloc(t, 1024), m.alloc(t, 1024), m.alloc(t, 1024)
	side, err := m.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	fork, err := m.NewEvent(false)
	if err != nil {
		t.Fatal(err)
	}
	join, err := m.NewEvent(false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(side.Close(), fork.Close(), join.Close()); err != nil {
			t.Error(err)
		}
	}()
	// y += a*x and z = x beside each other, then y += z.
	add := func(s *cuda.Stream, y, x cuda.DevicePtr, a float64) error {
		return s.Launch(axpy, 1, 256, 0, cuda.Pointer(y), cuda.Pointer(x), cuda.Float(a),
			cuda.Int(256))
	}
	step := func(a float64) func() error {
		return func() error {
			return errors.Join(m.stream.Record(fork), side.Wait(fork), add(m.stream, y, x, a),
				side.CopyOnDevice(z, x, 1024), side.Record(join), m.stream.Wait(join),
				add(m.stream, y, z, 1))
		}
	}
	graph, err := m.stream.Capture(step(2))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := graph.Close(); err != nil {
			t.Error(err)
		}
	}()
	check := func(want float32) {
		t.Helper()
		if err := errors.Join(m.stream.CopyToHost(m.host.Bytes[:1024], y),
			m.stream.Synchronize()); err != nil {
			t.Fatal(err)
		}
		for i, v := range m.floats(0, 256) {
			if v != want {
				t.Fatalf("value %d is %g, want %g", i, v, want)
			}
		}
	}
	if err := errors.Join(m.stream.Fill(x, 0x3f800000, 256), m.stream.Zero(y, 1024)); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if m.Emulated() {
			m.Set(t, "seed", int64(i))
		}
		if err := graph.Launch(m.stream); err != nil {
			t.Fatal(err)
		}
	}
	check(30)
	if changed, err := graph.Update(m.stream, step(9)); !changed || err != nil {
		t.Fatalf("update: %v, %v", changed, err)
	}
	if err := graph.Launch(m.stream); err != nil {
		t.Fatal(err)
	}
	check(40)
	changed, err := graph.Update(m.stream, func() error { return m.stream.Zero(y, 1024) })
	if changed || err != nil {
		t.Errorf("update to something else: %v, %v", changed, err)
	}
	if err := graph.Launch(m.stream); err != nil {
		t.Fatal(err)
	}
	check(50)
}

// TestCaptureFails does in a capture what may not be done, and leaves the stream as it was.
func TestCaptureFails(t *testing.T) {
	m := start(t)
	x := m.alloc(t, 1024)
	mine := errors.New("mine")
	side, err := m.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	event, err := m.NewEvent(false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(side.Close(), event.Close()); err != nil {
			t.Error(err)
		}
	}()
	for name, c := range map[string]struct {
		queue func() error
		want  string
	}{
		"its own error": {func() error { return mine }, "mine"},
		"an allocation": {func() error { _, err := m.Alloc(8); return err }, "allocate 8 bytes"},
		"a wait":        {m.stream.Synchronize, "wait for a stream"},
		"no join": {func() error {
			return errors.Join(m.stream.Record(event), side.Wait(event), side.Zero(x, 1024))
		}, "end a capture"},
	} {
		if _, err := m.stream.Capture(c.queue); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err := errors.Join(m.stream.Zero(x, 1024), m.stream.Synchronize(),
			side.Synchronize()); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
}
