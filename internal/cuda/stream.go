//go:build cuda && cgo && linux

package cuda

/*
#include <cuda.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"gorgonia.org/cu"
)

// Stream is a queue of work, done in order. Streams wait for each other only through events. Memory
// that queued work uses must not be changed, read or freed until the work is done: after
// Synchronize, or after an event that was recorded behind it.
type Stream struct{ stream cu.Stream }

// NewStream makes a stream.
func (d *Device) NewStream() (*Stream, error) {
	s, err := cu.MakeStream(cu.NonBlocking)
	if err != nil {
		return nil, failed("make a stream", err)
	}
	return &Stream{stream: s}, nil
}

// handle returns the stream as C code takes it.
func (s *Stream) handle() C.CUstream { return C.CUstream(unsafe.Pointer(s.stream.C())) }

// CopyToDevice queues a copy of src to the device. src must be locked memory.
func (s *Stream) CopyToDevice(dst DevicePtr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	err := cu.MemcpyHtoDAsync(dst, unsafe.Pointer(unsafe.SliceData(src)), int64(len(src)), s.stream)
	return sized("copy %d bytes to the device", int64(len(src)), err)
}

// CopyToHost queues a copy of len(dst) bytes to the host. dst must be locked memory.
func (s *Stream) CopyToHost(dst []byte, src DevicePtr) error {
	if len(dst) == 0 {
		return nil
	}
	err := cu.MemcpyDtoHAsync(unsafe.Pointer(unsafe.SliceData(dst)), src, int64(len(dst)), s.stream)
	return sized("copy %d bytes to the host", int64(len(dst)), err)
}

// CopyOnDevice queues a copy of bytes from one place of the device to another. They must not
// overlap.
func (s *Stream) CopyOnDevice(dst, src DevicePtr, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	err := cu.MemcpyDtoDAsync(dst, src, bytes, s.stream)
	return sized("copy %d bytes on the device", bytes, err)
}

// Zero queues setting bytes to zero.
func (s *Stream) Zero(dst DevicePtr, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	err := cu.MemsetD8Async(dst, 0, bytes, s.stream)
	return sized("zero %d bytes", bytes, err)
}

// Fill queues setting words of 32 bits to a value.
func (s *Stream) Fill(dst DevicePtr, word uint32, words int64) error {
	if words == 0 {
		return nil
	}
	err := cu.MemsetD32Async(dst, uint(word), words, s.stream)
	return sized("fill %d words", words, err)
}

// Record queues the event, which is done when everything queued before is done.
func (s *Stream) Record(e *Event) error {
	return failed("record an event", e.event.Record(s.stream))
}

// Wait makes work queued from now on wait for the event as it was last recorded, on any stream. If
// it never was, nothing waits.
func (s *Stream) Wait(e *Event) error {
	return failed("wait for an event", s.stream.Wait(e.event, 0))
}

// Synchronize waits until all work is done, and returns the first error of it.
func (s *Stream) Synchronize() error {
	return failed("wait for a stream", s.stream.Synchronize())
}

// Done reports whether all work is done.
func (s *Stream) Done() (bool, error) { return ready("ask a stream", s.stream.Query()) }

// Close ends the stream. Work that is queued is still done.
func (s *Stream) Close() error {
	return failed("end a stream", s.stream.Destroy())
}

// Event marks a place in a stream's queue.
type Event struct{ event cu.Event }

// NewEvent makes an event. With timing it records when it was done.
func (d *Device) NewEvent(timing bool) (*Event, error) {
	flags := cu.DisableTiming
	if timing {
		flags = cu.DefaultEvent
	}
	e, err := cu.MakeEvent(flags)
	if err != nil {
		return nil, failed("make an event", err)
	}
	return &Event{event: e}, nil
}

// Synchronize waits until the event is done as it was last recorded.
func (e *Event) Synchronize() error { return failed("wait for an event", e.event.Synchronize()) }

// Done reports whether the event is done as it was last recorded.
func (e *Event) Done() (bool, error) { return ready("ask an event", e.event.Query()) }

// Since returns the time from when one event was done until this one was, both made with timing.
func (e *Event) Since(begin *Event) (time.Duration, error) {
	ms, err := begin.event.Elapsed(e.event)
	return time.Duration(ms * float64(time.Millisecond)), failed("time between events", err)
}

// Close ends the event.
func (e *Event) Close() error { return failed("end an event", cu.DestroyEvent(&e.event)) }

// ready returns the answer of a query, for which not being ready is no error.
func ready(operation string, err error) (bool, error) {
	if err == nil {
		return true, nil
	}
	if errors.Is(err, cu.NotReady) {
		return false, nil
	}
	return false, failed(operation, err)
}

// sized returns the error of an operation on size bytes or words, and formats it only if there is
// one.
func sized(operation string, size int64, err error) error {
	if err == nil {
		return nil
	}
	return failed(fmt.Sprintf(operation, size), err)
}
