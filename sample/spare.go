package sample

import (
	"errors"
	"sync"

	"gdb/internal/mem"
)

// Spare keeps the memory of buffers from one pipeline for the next, so that the system need not
// find and clear it again: with R-MAT 2^20 x 128 that took from a thirtieth to a quarter of the
// time of the cores in an epoch of 105 batches, most if memory had been free for long. A budget
// that is short takes back this memory first. A nil Spare keeps nothing.
type Spare struct {
	end func()

	mu     sync.Mutex
	closed bool
	arenas []*mem.Arena
}

// NewSpare returns a spare without memory, for arenas that are counted in budget, which may be nil.
// The caller calls Close.
func NewSpare(budget *mem.Budget) *Spare {
	s := &Spare{end: func() {}}
	if budget != nil {
		s.end = budget.RelieveFirst(func(int64) bool { return s.free() })
	}
	return s
}

// keep keeps an arena, or frees it.
func (s *Spare) keep(a *mem.Arena) error {
	if s == nil {
		return a.Free()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return a.Free()
	}
	s.arenas = append(s.arenas, a)
	return nil
}

// take returns an arena of at least n bytes, or nil. It frees one that is smaller, so that no more
// arenas are kept than there are buffers.
func (s *Spare) take(n int64) *mem.Arena {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.arenas) - 1
	if last < 0 {
		return nil
	}
	a := s.arenas[last]
	s.arenas = s.arenas[:last]
	if int64(len(a.Bytes())) >= n {
		return a
	}
	_ = a.Free() // unmapping what was mapped cannot fail
	return nil
}

// free frees all arenas, and returns whether there were any.
func (s *Spare) free() (freed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.arenas {
		_ = a.Free() // unmapping what was mapped cannot fail
		freed = true
	}
	s.arenas = nil
	return freed
}

// Close frees all arenas, and makes keep free later ones.
func (s *Spare) Close() error {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var err error
	for _, a := range s.arenas {
		err = errors.Join(err, a.Free())
	}
	s.arenas = nil
	return err
}
