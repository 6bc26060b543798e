package pace

import (
	"context"
	"math/bits"
	"slices"
)

// Sorter sorts keys by their upper 32 bits, keeping the order of equal ones. The lower 32 bits say
// what a node or block is wanted for. Radix sort takes a third of the time of comparisons on a
// frontier of 100,000 nodes. It takes 8 bytes per key for a second buffer.
type Sorter struct {
	Keys  []uint64 // appended by the caller after Reset
	spare []uint64
}

const (
	digitBits   = 11
	digits      = 3 // 3*11 >= 32
	radixLeast  = 256
	digitValues = 1 << digitBits
)

// SorterIn returns a Sorter of up to half as many keys as room has, which takes no other memory.
func SorterIn(room []uint64) Sorter {
	n := len(room) / 2
	return Sorter{Keys: room[:0:n], spare: room[n : 2*n : 2*n]}
}

// Reset empties the keys and makes room for n.
func (s *Sorter) Reset(n int) {
	if cap(s.Keys) < n {
		s.Keys = make([]uint64, 0, n+n/4)
	}
	s.Keys = s.Keys[:0]
}

// Bytes returns the memory held, in bytes.
func (s *Sorter) Bytes() int64 { return 8 * int64(cap(s.Keys)+cap(s.spare)) }

// Sort sorts the keys. After an error their order is undefined.
func (s *Sorter) Sort(ctx context.Context) error {
	n := len(s.Keys)
	if n < radixLeast {
		// Lower halves ascend as keys are appended, so this keeps the order of equals too.
		slices.Sort(s.Keys)
		return nil
	}
	if cap(s.spare) < n {
		s.spare = make([]uint64, n, cap(s.Keys))
	}
	var count [digits][digitValues]uint32
	for part := range slices.Chunk(s.Keys, Every) {
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

// pass sorts by one digit, from Keys to spare, and swaps both. It skips a digit that is equal in
// all keys.
func (s *Sorter) pass(ctx context.Context, count *[digitValues]uint32, shift int) error {
	from, to := s.Keys, s.spare[:len(s.Keys)]
	if int(count[from[0]>>shift&(digitValues-1)]) == len(from) {
		return nil
	}
	sum := uint32(0)
	for i, c := range count {
		count[i] = sum
		sum += c
	}
	for part := range slices.Chunk(from, Every) {
		for _, k := range part {
			c := &count[k>>shift&(digitValues-1)]
			to[*c] = k
			*c++
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	s.Keys, s.spare = to, from
	return nil
}

// flagLeast is the least number of keys that are sorted by digits; fewer are sorted by comparisons.
const flagLeast = 64

// RadixSort sorts numbers in place, while Sorter takes as much memory again. It sorts by digits of
// 8 bits, from the highest down (McIlroy, Bostic and McIlroy, "Engineering Radix Sort", 1993,
// American flag sort). Time: O(n) for each digit by which groups of more than flagLeast keys
// differ.
func RadixSort(keys []uint64) {
	if len(keys) > 0 {
		flagSort(keys, max(0, bits.Len64(slices.Max(keys))-1)/8*8)
	}
}

// flagSort sorts numbers that are equal above the digit at shift.
func flagSort(keys []uint64, shift int) {
	if len(keys) < flagLeast {
		slices.Sort(keys)
		return
	}
	var next, end [1 << 8]int // for each digit: where its next key goes, and where its keys end
	for _, k := range keys {
		end[uint8(k>>shift)]++
	}
	sum := 0
	for d, n := range end {
		next[d] = sum
		sum += n
		end[d] = sum
	}
	for d := range end {
		for at := next[d]; at < end[d]; at = next[d] {
			k := keys[at]
			for to := int(uint8(k >> shift)); to != d; to = int(uint8(k >> shift)) {
				k, keys[next[to]] = keys[next[to]], k
				next[to]++
			}
			keys[at] = k
			next[d]++
		}
	}
	begin := 0
	for _, e := range end {
		if shift > 0 && e-begin > 1 {
			flagSort(keys[begin:e], shift-8)
		}
		begin = e
	}
}
