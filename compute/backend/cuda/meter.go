//go:build cuda && cgo && linux

package cuda

import (
	"errors"
	"time"

	"gdb/internal/cuda"
)

// spansMost is how many spans may be open: more than steps that are under way have.
const spansMost = 64

// meter sums up the time that the device works on operations: of each group that it is given at
// once, from when it begins with the first until it has done the last. What these wait for, such as
// copies, comes before.
type meter struct {
	spans       [spansMost]span
	first, open int // those that were not counted yet, in a ring
	busy        time.Duration
}

// span is the events before and behind a group of operations.
type span struct{ begin, end *cuda.Event }

// collect counts the spans that are over.
func (m *meter) collect() error {
	for ; m.open > 0; m.open-- {
		s := &m.spans[m.first]
		if done, err := s.end.Done(); err != nil || !done {
			return err
		}
		took, err := s.end.Since(s.begin)
		if err != nil {
			return err
		}
		m.busy += took
		m.first = (m.first + 1) % spansMost
	}
	return nil
}

// around gives operations to the device with f, and measures them unless too many spans are open.
func (m *meter) around(d *driver, f func() error) (err error) {
	if err := m.collect(); err != nil {
		return err
	}
	if m.open == spansMost {
		return f()
	}
	s := &m.spans[(m.first+m.open)%spansMost]
	if s.begin == nil {
		if s.begin, err = d.device.NewEvent(true); err != nil {
			return err
		}
	}
	if s.end == nil {
		if s.end, err = d.device.NewEvent(true); err != nil {
			return err
		}
	}
	if err := d.stream.Record(s.begin); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	m.open++
	return d.stream.Record(s.end)
}

// close frees the events.
func (m *meter) close() (err error) {
	for _, s := range m.spans {
		for _, e := range []*cuda.Event{s.begin, s.end} {
			if e != nil {
				err = errors.Join(err, e.Close())
			}
		}
	}
	*m = meter{busy: m.busy}
	return err
}
