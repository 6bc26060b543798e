package source

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/tables"
	"gdb/layout/ingest/input"
)

// arrayStreams are arrays that are read beside each other; one that is not wanted is nil.
type arrayStreams []*tables.Stream

// close closes the streams that are open.
func (s arrayStreams) close() error {
	var errs []error
	for _, stream := range s {
		if stream != nil {
			errs = append(errs, stream.Close())
		}
	}
	return errors.Join(errs...)
}

// eachElements calls fn with runs of whole rows of cols elements, at most chunk rows each. The
// bytes are little-endian and valid during the call.
func eachElements(ctx context.Context, a *tables.Array, cols int64, chunk int,
	fn func(first int64, rows int, b []byte) error) (err error) {
	s, err := a.Stream(0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for first := int64(0); s.Left() > 0; {
		n := int(min(int64(chunk), s.Left()/cols))
		b, err := s.Next(ctx, n*int(cols))
		if err != nil {
			return err
		}
		if err := fn(first, n, b); err != nil {
			return err
		}
		first += int64(n)
	}
	return nil
}

// readInts reads a whole small array of want integers.
func readInts(a *tables.Array, want int) ([]int64, error) {
	if !a.DType.Integer() {
		return nil, wrongType(a, "integers")
	}
	if a.Elements() != int64(want) {
		return nil, wrongShape(a, fmt.Sprintf("%d values", want))
	}
	out := make([]int64, want)
	err := eachElements(context.Background(), a, 1, want, func(_ int64, _ int, b []byte) error {
		ids := make([]uint64, want)
		if i := a.DType.IDs(ids, b, 0, 1); i >= 0 {
			return &input.Error{Where: a.Name, What: fmt.Sprintf("%d is negative", int64(ids[i]))}
		}
		for i, v := range ids {
			out[i] = int64(v)
		}
		return nil
	})
	return out, err
}

// resized returns a slice of n elements, reusing s where it is large enough.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
