//go:build cuda && cgo && linux

package cuda_test

import (
	"errors"
	"testing"
	"time"

	"gdb/internal/cuda"
)

// seeds are how many orders of the emulated device a test tries.
const seeds = 40

// twoStreams copies 256 values on one stream, adds on another and copies back on a third, ordered
// by events or not. It returns whether the result is right.
func twoStreams(t *testing.T, m *machine, ordered bool) bool {
	t.Helper()
	var streams [3]*cuda.Stream
	var events [2]*cuda.Event
	var err error
	for i := range streams {
		if streams[i], err = m.NewStream(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range events {
		if events[i], err = m.NewEvent(false); err != nil {
			t.Fatal(err)
		}
	}
	x, y := m.alloc(t, 1024), m.alloc(t, 1024)
	in, out := m.floats(0, 256), m.floats(1024, 256)
	for i := range in {
		in[i], out[i] = float32(i), 0
	}
	if !ordered {
		events = [2]*cuda.Event{}
	}
	follow := func(e *cuda.Event, before, after *cuda.Stream) error {
		if e == nil {
			return nil
		}
		return errors.Join(before.Record(e), after.Wait(e))
	}
	err = errors.Join(streams[0].CopyToDevice(x, m.host.Bytes[:1024]), streams[0].Zero(y, 1024),
		follow(events[0], streams[0], streams[1]),
		streams[1].Launch(m.function(t, "axpy"), 1, 256, 0, cuda.Pointer(y), cuda.Pointer(x),
			cuda.Float(1), cuda.Int(256)),
		follow(events[1], streams[1], streams[2]),
		streams[2].CopyToHost(m.host.Bytes[1024:2048], y), m.Synchronize())
	for _, s := range streams {
		err = errors.Join(err, s.Close())
	}
	for _, e := range events {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range out {
		if v != float32(i) {
			return false
		}
	}
	return true
}

// TestEventsOrderStreams holds that results are right with events, and that the emulated device
// shows where they are missing.
func TestEventsOrderStreams(t *testing.T) {
	m := start(t)
	wrong := 0
	for seed := range int64(seeds) {
		m.Set(t, "seed", seed)
		if !twoStreams(t, m, true) {
			t.Errorf("seed %d: wrong although events order the streams", seed)
		}
		if !twoStreams(t, m, false) {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("no order of streams without events gives a wrong result")
	}
	t.Logf("without events %d of %d results were wrong", wrong, seeds)
}

// TestCopiesAreLate changes memory before its copy is done.
func TestCopiesAreLate(t *testing.T) {
	m := start(t)
	m.Set(t, "seed", 1)
	x := m.alloc(t, 4)
	m.floats(0, 1)[0] = 1
	if err := m.stream.CopyToDevice(x, m.host.Bytes[:4]); err != nil {
		t.Fatal(err)
	}
	m.floats(0, 1)[0] = 2
	if err := errors.Join(m.stream.CopyToHost(m.host.Bytes[4:8], x),
		m.stream.Synchronize()); err != nil {
		t.Fatal(err)
	}
	if v := m.floats(4, 1)[0]; v != 2 {
		t.Errorf("a copy was done at once: %g", v)
	}
}

func TestEvents(t *testing.T) {
	m := start(t)
	var events [2]*cuda.Event
	for i := range events {
		e, err := m.NewEvent(true)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}()
		events[i] = e
	}
	x := m.alloc(t, 4<<10)
	err := m.stream.Record(events[0])
	for range 20 {
		err = errors.Join(err, m.stream.Zero(x, 4<<10))
	}
	if err = errors.Join(err, m.stream.Record(events[1])); err != nil {
		t.Fatal(err)
	}
	polls := 0
	for deadline := time.Now().Add(time.Minute); ; polls++ {
		done, err := events[1].Done()
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the event is not done: %v", err)
		}
		if done {
			break
		}
	}
	if m.Emulated() && polls == 0 {
		t.Error("the emulated device did all at once")
	}
	if done, err := m.stream.Done(); !done || err != nil {
		t.Errorf("the stream is not done: %v", err)
	}
	if d, err := events[1].Since(events[0]); err != nil || d < 0 || d > time.Minute {
		t.Errorf("%v between the events, %v", d, err)
	}
	if err := events[0].Synchronize(); err != nil {
		t.Error(err)
	}
}
