// Package pace makes long loops check their context every few milliseconds, so that cancelled work
// ends soon, at negligible cost. It also sorts this way, by comparisons and by the digits of 64-bit
// keys.
package pace

import (
	"context"
	"errors"
	"slices"
)

// Every is how many units of work pass between two checks. A unit is the work on an array's entry,
// 5 to 50 ns; Block is the units of a block of a file that is checked and decoded. EverySlow is for
// units of up to a microsecond.
const (
	Every     = 1 << 16
	EverySlow = Every / 8
	Block     = 128
)

// Steps counts the work since the last check. The zero value is ready to use.
type Steps int

// Took counts n units of work; after Every of them it returns the error of ctx.
func (s *Steps) Took(ctx context.Context, n int) error {
	if *s += Steps(n); *s < Every {
		return nil
	}
	*s = 0
	return ctx.Err()
}

// Clear sets s to zeros.
func Clear[T any](ctx context.Context, s []T) error {
	for part := range slices.Chunk(s, 16*Every) { // no entry takes less
		clear(part)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// SortFunc does what slices.SortFunc does. Once ctx is done it stops comparing, and the order of s
// is undefined.
func SortFunc[T any](ctx context.Context, s []T, compare func(a, b T) int) error {
	slices.SortFunc(s, until(ctx, compare))
	return ctx.Err()
}

// SortStableFunc does what SortFunc does, and keeps the order of equal elements.
func SortStableFunc[T any](ctx context.Context, s []T, compare func(a, b T) int) error {
	slices.SortStableFunc(s, until(ctx, compare))
	return ctx.Err()
}

// sorted is the number of units of work of a comparison, which takes longer than an entry.
const sorted = 4

// until returns compare until ctx is done; from then on all is equal, which ends a sort at once.
func until[T any](ctx context.Context, compare func(a, b T) int) func(a, b T) int {
	var steps Steps
	var ended error
	return func(a, b T) int {
		if ended == nil {
			ended = steps.Took(ctx, sorted)
		}
		if ended != nil {
			return 0
		}
		return compare(a, b)
	}
}

// Cause returns the first error that is not a cancellation, of goroutines of which one that fails
// cancels the others; if there is none, it returns all errors joined.
func Cause(errs []error) error {
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errors.Join(errs...)
}
