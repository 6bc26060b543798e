package sample

import (
	"unsafe"

	"gdb/internal/mem"
)

// account counts scratch memory on the heap against a budget, which may be nil.
type account struct {
	budget *mem.Budget
	what   string
	bytes  int64
}

// add counts n bytes more, or fewer.
func (a *account) add(n int64) error {
	if a.budget != nil {
		if n < 0 {
			a.budget.Release(-n)
		} else if err := a.budget.Reserve(a.what, n); err != nil {
			return err
		}
	}
	a.bytes += n
	return nil
}

func (a *account) release() {
	if a.budget != nil {
		a.budget.Release(a.bytes)
	}
	a.bytes = 0
}

// reserve grows the capacity of s to n, keeping what it holds, with room for a quarter more so
// that batches of slightly growing size soon allocate nothing.
func reserve[T any](a *account, s *[]T, n int) error {
	if n <= cap(*s) {
		return nil
	}
	var zero T
	room := n + n/4
	if err := a.add(int64(room-cap(*s)) * int64(unsafe.Sizeof(zero))); err != nil {
		return err
	}
	grown := make([]T, len(*s), room)
	copy(grown, *s)
	*s = grown
	return nil
}

// resize is reserve, and sets the length to n.
func resize[T any](a *account, s *[]T, n int) error {
	if err := reserve(a, s, n); err != nil {
		return err
	}
	*s = (*s)[:n]
	return nil
}

// sized returns s with length n, its contents lost; new if it is too small.
func sized[T mem.Scalar](s []T, n int) []T {
	if n > cap(s) {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}
