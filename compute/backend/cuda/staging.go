//go:build cuda && cgo && linux

package cuda

import (
	"errors"

	"gdb/internal/mem"
)

// staging is page-locked memory of the host, from which is copied to the device, and memory of the
// device for the copies. Copies have a stream of their own, so that those of a step are made while
// the device computes the step before.
type staging struct {
	budget *mem.Budget
	steps  [StepsStaged]stagedStep
	now    int
}

// stagedStep is the memory of one step.
type stagedStep struct {
	chunks []*mem.Arena
	used   int   // bytes of the last
	total  int   // handed out
	device arena // where they go
	// copied is behind the last copy, and done behind the last operation of the step, once it
	// ended.
	copied, done event
	ended        bool
}

// next begins a step: the host waits until the memory of the step before the last one was copied,
// and copies wait until the device has done that step.
func (s *staging) next(d *driver) error {
	if was := &s.steps[s.now]; was.total > 0 || was.device.total > 0 {
		if err := d.endStep(&was.copied, &was.done); err != nil {
			return err
		}
		was.ended = true
	}
	s.now = (s.now + 1) % StepsStaged
	now := &s.steps[s.now]
	if now.ended {
		if err := d.reuse(&now.copied, &now.done); err != nil {
			return err
		}
	}
	if err := now.device.reset(d); err != nil {
		return err
	}
	need := now.total
	if now.used, now.total, now.ended = 0, 0, false; len(now.chunks) <= 1 {
		return nil
	}
	if err := now.freeLocked(d); err != nil {
		return err
	}
	return now.grow(d, s.budget, need+need/8)
}

// take returns n bytes of the host, and where they go.
func (s *staging) take(d *driver, n int) (x []byte, to uint64, err error) {
	now, size := &s.steps[s.now], aligned(n)
	if to, err = now.device.take(d, n); err != nil {
		return nil, 0, err
	}
	if len(now.chunks) == 0 || now.used+size > len(now.last()) {
		if err := now.grow(d, s.budget, size+size/8); err != nil {
			return nil, 0, err
		}
	}
	x = now.last()[now.used:][:n:n]
	now.used += size
	now.total += size
	return x, to, nil
}

// free frees all memory, after all operations: the caller has waited for them.
func (s *staging) free(d *driver) (err error) {
	for i := range s.steps {
		err = errors.Join(err, s.steps[i].free(d))
	}
	return err
}

func (s *stagedStep) last() []byte { return s.chunks[len(s.chunks)-1].Bytes() }

// grow adds memory of the host of at least n bytes.
func (s *stagedStep) grow(d *driver, budget *mem.Budget, n int) error {
	a, err := mem.NewArena(budget, "what a step copies to the device", int64(aligned(n)))
	if err != nil {
		return err
	}
	if _, err := d.lock(a.Bytes()); err != nil {
		return errors.Join(err, a.Free())
	}
	s.chunks, s.used = append(s.chunks, a), 0
	return nil
}

// free frees all of a step that is done.
func (s *stagedStep) free(d *driver) error {
	s.ended = false
	return errors.Join(d.end(&s.copied), d.end(&s.done), s.device.free(d), s.freeLocked(d))
}

// freeLocked frees the memory of the host, from which nothing is copied any more.
func (s *stagedStep) freeLocked(d *driver) (err error) {
	for _, a := range s.chunks {
		err = errors.Join(err, d.unlock(a.Bytes()), a.Free())
	}
	s.chunks, s.used, s.total = nil, 0, 0
	return err
}
