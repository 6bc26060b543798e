package sample

import (
	"unsafe"

	"gdb/internal/mem"
)

// reserve grows the capacity of s to at least n, keeping its contents and counting the memory in a.
// It adds a quarter, so that batches of slightly growing size soon allocate nothing.
func reserve[T any](a *mem.Account, s *[]T, n int) error {
	if n <= cap(*s) {
		return nil
	}
	var zero T
	room := n + n/4
	if err := a.Add(int64(room-cap(*s)) * int64(unsafe.Sizeof(zero))); err != nil {
		return err
	}
	grown := make([]T, len(*s), room)
	copy(grown, *s)
	*s = grown
	return nil
}

// resize does what reserve does, and sets the length to n.
func resize[T any](a *mem.Account, s *[]T, n int) error {
	if err := reserve(a, s, n); err != nil {
		return err
	}
	*s = (*s)[:n]
	return nil
}
