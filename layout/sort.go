package layout

import (
	"context"
	"slices"

	"gdb/internal/pace"
)

// sorter sorts keys by their upper 32 bits, keeping the order of equal ones: what a node or block
// is wanted for stands in the lower 32. Radix sort takes a third of the time of comparisons on a
// frontier of 100,000 nodes. Memory: 8 bytes per key for the second buffer.
type sorter struct {
	keys, spare []uint64
}

const (
	digitBits   = 11
	digits      = 3 // 3*11 >= 32
	radixLeast  = 256
	digitValues = 1 << digitBits
)

// reset empties the keys and makes room for n.
func (s *sorter) reset(n int) {
	if cap(s.keys) < n {
		s.keys = make([]uint64, 0, n+n/4)
	}
	s.keys = s.keys[:0]
}

// bytes is the memory held.
func (s *sorter) bytes() int64 { return 8 * int64(cap(s.keys)+cap(s.spare)) }

// sort sorts the keys. After an error their order is not said.
func (s *sorter) sort(ctx context.Context) error {
	n := len(s.keys)
	if n < radixLeast {
		// Lower halves ascend as keys are appended, so this keeps the order of equals too.
		slices.Sort(s.keys)
		return nil
	}
	if cap(s.spare) < n {
		s.spare = make([]uint64, n, cap(s.keys))
	}
	var count [digits][digitValues]uint32
	for part := range slices.Chunk(s.keys, pace.Every) {
		for _, k := range part {
			count[0][k>>32&(digitValues-1)]++
			count[1][k>>(32+digitBits)&(digitValues-1)]++
			count[2][k>>(32+2*digitBits)]++
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	for d := range digits {
		if err := s.pass(ctx, &count[d], 32+d*digitBits); err != nil {
			return err
		}
	}
	return nil
}

// pass sorts by one digit, from keys to spare, and swaps them; a digit that is the same in all
// keys is skipped.
func (s *sorter) pass(ctx context.Context, count *[digitValues]uint32, shift int) error {
	from, to := s.keys, s.spare[:len(s.keys)]
	if int(count[from[0]>>shift&(digitValues-1)]) == len(from) {
		return nil
	}
	sum := uint32(0)
	for i, c := range count {
		count[i] = sum
		sum += c
	}
	for part := range slices.Chunk(from, pace.Every) {
		for _, k := range part {
			c := &count[k>>shift&(digitValues-1)]
			to[*c] = k
			*c++
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	s.keys, s.spare = to, from
	return nil
}

// grow returns a slice of length n, reusing s if it is large enough; its contents are undefined.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}
