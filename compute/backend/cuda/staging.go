//go:build cuda && cgo && linux

package cuda

import (
	"errors"

	"gdb/compute/backend"
	"gdb/internal/cuda"
	"gdb/internal/mem"
)

// arenaAlign is the alignment of a piece of memory in bytes: more than any load asks for.
const arenaAlign = 256

// arena hands out memory of the device, by its addresses. All of it is freed after what uses it.
type arena struct{ backend.Scratch[uint64] }

// newArena returns an arena; what names its use in errors.
func newArena(d *driver, what string) *arena {
	a := &arena{}
	a.Align = arenaAlign
	a.Grow = func(size, least int) (p uint64, bytes int, err error) {
		what := what
		if a.Total() > 0 {
			what += ", beside " + mem.FormatSize(int64(a.Total())) + " that they have,"
		}
		bytes = aligned(size)
		if p, err = d.alloc(what, bytes); errors.Is(err, cuda.ErrOutOfMemory) && least < size {
			bytes = least // without room for larger batches then
			p, err = d.alloc(what, bytes)
		}
		return p, bytes, err
	}
	a.Free = func(p uint64) error { return errors.Join(d.sync(), d.free(p)) }
	return a
}

// aligned returns n, or as much more as makes it a multiple of the alignment.
func aligned(n int) int { return (n + arenaAlign - 1) / arenaAlign * arenaAlign }

// take returns the address of n bytes.
func (a *arena) take(n int) (uint64, error) {
	p, at, err := a.Take(n)
	return p + uint64(at), err
}

// staging is page-locked memory of the host, from which is copied to the device, and memory of the
// device for the copies. Copies have a stream of their own, so that those of a step are made while
// the device computes the step before.
type staging struct {
	steps  [StepsStaged]stagedStep
	now    int
	blocks *blocks // where blocks that were copied go
}

// stagedStep is the memory of one step.
type stagedStep struct {
	host   backend.Scratch[*mem.Arena] // locked, in bytes
	device *arena                      // where they go
	blocks []*backend.Block            // that were sent
	// copied is behind the last copy, and done behind the last operation of the step, once it
	// ended.
	copied, done event
	ended        bool
}

// next begins a step: the host waits until the memory of the step before the last one was copied,
// and copies wait until the device has done that step.
func (s *staging) next(d *driver) error {
	if was := &s.steps[s.now]; was.host.Total() > 0 || was.device.Total() > 0 {
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
	now.ended = false
	s.recycle(now)
	if err := now.device.Reset(); err != nil {
		return err
	}
	return now.host.Reset()
}

// recycle takes back the blocks of a step whose copies are made.
func (s *staging) recycle(of *stagedStep) {
	for _, b := range of.blocks {
		s.blocks.put(b)
	}
	of.blocks = of.blocks[:0]
}

// open prepares the steps. What is copied is counted in a budget.
func (s *staging) open(d *driver, budget *mem.Budget, blocks *blocks) {
	s.blocks = blocks
	for i := range s.steps {
		s.steps[i].device = newArena(d, "rows and lists of a step")
		s.steps[i].host = backend.Scratch[*mem.Arena]{Align: arenaAlign,
			Grow: func(size, _ int) (*mem.Arena, int, error) {
				a, err := mem.NewArena(budget, "what a step copies to the device",
					int64(aligned(size)))
				if err != nil {
					return nil, 0, err
				}
				if _, err := d.lock(a.Bytes()); err != nil {
					return nil, 0, errors.Join(err, a.Free())
				}
				return a, len(a.Bytes()), nil
			},
			Free: func(a *mem.Arena) error { return errors.Join(d.unlock(a.Bytes()), a.Free()) }}
	}
}

// take returns n bytes of the host, and where they go.
func (s *staging) take(n int) (x []byte, to uint64, err error) {
	now := &s.steps[s.now]
	if to, err = now.device.take(n); err != nil {
		return nil, 0, err
	}
	a, at, err := now.host.Take(n)
	if err != nil {
		return nil, 0, err
	}
	return a.Bytes()[at:][:n:n], to, nil
}

// free frees all memory, after all operations: the caller has waited for them.
func (s *staging) free(d *driver) (err error) {
	for i := range s.steps {
		s.recycle(&s.steps[i])
		err = errors.Join(err, s.steps[i].free(d))
	}
	return err
}

// free frees all of a step that is done.
func (s *stagedStep) free(d *driver) error {
	s.ended = false
	return errors.Join(d.end(&s.copied), d.end(&s.done), s.device.Release(), s.host.Release())
}
