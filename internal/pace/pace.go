// Package pace makes long loops look at their context every few milliseconds, so that what is
// cancelled ends soon, at no cost to speak of. It sorts so, by comparing and by the digits of
// 64-bit keys.
package pace

import (
	"context"
	"errors"
	"slices"
)

// Every is how much work passes between two looks. A unit is what an entry of an array takes, 5 to
// 50 ns; Block is a block of a file that is checked and decoded. EverySlow is Every for units of up
// to a microsecond.
const (
	Every     = 1 << 16
	EverySlow = Every / 8
	Block     = 128
)

// Steps is the work since the last look. The zero value is ready to use.
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

// SortFunc is slices.SortFunc. Once ctx is done it compares no more, and what order s is in then is
// not said.
func SortFunc[T any](ctx context.Context, s []T, compare func(a, b T) int) error {
	slices.SortFunc(s, until(ctx, compare))
	return ctx.Err()
}

// SortStableFunc is SortFunc that keeps the order of equals.
func SortStableFunc[T any](ctx context.Context, s []T, compare func(a, b T) int) error {
	slices.SortStableFunc(s, until(ctx, compare))
	return ctx.Err()
}

// sorted is the work of a comparison: sorts compare keys that take longer than an entry.
const sorted = 4

// until compares until ctx is done; from then on all is equal, which sorts in no time.
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

// Cause is what went wrong of goroutines that one cancels for the others, before what it led to.
func Cause(errs []error) error {
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errors.Join(errs...)
}
