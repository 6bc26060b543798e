package superbatch

import (
	"unsafe"

	"gdb/internal/mem"
)

// ledger counts memory on the heap against a budget, which may be nil.
type ledger struct {
	budget *mem.Budget
	what   string
	bytes  int64
}

// add counts n bytes more.
func (l *ledger) add(n int64) error {
	if l.budget != nil && n > 0 {
		if err := l.budget.Reserve(l.what, n); err != nil {
			return err
		}
		l.bytes += n
	}
	return nil
}

func (l *ledger) release() {
	if l.budget != nil {
		l.budget.Release(l.bytes)
	}
	l.bytes = 0
}

// push appends v to s and counts what s grows by.
func push[T any](l *ledger, s []T, v T) ([]T, error) {
	if len(s) < cap(s) {
		return append(s, v), nil
	}
	grown := max(64, cap(s)+cap(s)/2)
	if err := l.add(int64(grown-cap(s)) * int64(unsafe.Sizeof(v))); err != nil {
		return s, err
	}
	return append(append(make([]T, 0, grown), s...), v), nil
}

// carve cuts the next n numbers off an arena's bytes.
func carve[T mem.Scalar](b *[]byte, n int) []T {
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	part := (*b)[:size:size]
	*b = (*b)[size:]
	if n == 0 {
		return nil
	}
	return mem.View[T](part)
}
