package changeset

import (
	"unsafe"

	"gdb/internal/mem"
)

// Push appends v to s, and adds the memory by which s grows to l.
func Push[T any](l *mem.Account, s []T, v T) ([]T, error) {
	if len(s) < cap(s) {
		return append(s, v), nil
	}
	grown := max(64, cap(s)+cap(s)/2)
	if err := l.Add(int64(grown-cap(s)) * int64(unsafe.Sizeof(v))); err != nil {
		return s, err
	}
	return append(append(make([]T, 0, grown), s...), v), nil
}

// Carve cuts the next n numbers off the front of an arena's bytes.
func Carve[T mem.Scalar](b *[]byte, n int) []T {
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	part := (*b)[:size:size]
	*b = (*b)[size:]
	if n == 0 {
		return nil
	}
	return mem.View[T](part)
}
