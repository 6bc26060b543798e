//go:build cuda && cgo && linux

package cuda

import (
	"errors"

	"gdb/internal/mem"
)

// staging is page-locked memory of the host, from which is copied to the device.
type staging struct {
	budget *mem.Budget
	steps  [StepsStaged]stagedStep
	now    int
}

// stagedStep is that of a step.
type stagedStep struct {
	chunks []*mem.Arena
	used   int // bytes of the last
	total  int // handed out
	copied event
	ends   bool // copied was recorded behind the last copy
}

// next begins a step: it waits until the memory of the step before the last one was copied.
func (s *staging) next(d *driver) error {
	if was := &s.steps[s.now]; was.total > 0 {
		if err := d.record(&was.copied); err != nil {
			return err
		}
		was.ends = true
	}
	s.now = (s.now + 1) % StepsStaged
	now := &s.steps[s.now]
	if now.ends {
		if err := d.wait(&now.copied); err != nil {
			return err
		}
	}
	need := now.total
	if now.used, now.total, now.ends = 0, 0, false; len(now.chunks) <= 1 {
		return nil
	}
	if err := now.free(d); err != nil {
		return err
	}
	return now.grow(d, s.budget, need+need/8)
}

// take returns n bytes.
func (s *staging) take(d *driver, n int) ([]byte, error) {
	now, size := &s.steps[s.now], aligned(n)
	if len(now.chunks) == 0 || now.used+size > len(now.last()) {
		if err := now.grow(d, s.budget, size+size/8); err != nil {
			return nil, err
		}
	}
	x := now.last()[now.used:][:n:n]
	now.used += size
	now.total += size
	return x, nil
}

// free frees all memory, after the copies: the caller has waited for them.
func (s *staging) free(d *driver) (err error) {
	for i := range s.steps {
		err = errors.Join(err, s.steps[i].free(d))
	}
	return err
}

func (s *stagedStep) last() []byte { return s.chunks[len(s.chunks)-1].Bytes() }

// grow adds memory of at least n bytes.
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

// free frees the memory of a step that was copied.
func (s *stagedStep) free(d *driver) error {
	err := d.end(&s.copied)
	for _, a := range s.chunks {
		err = errors.Join(err, d.unlock(a.Bytes()), a.Free())
	}
	s.chunks, s.used, s.total, s.ends = nil, 0, 0, false
	return err
}
