package backend

import (
	"gdb/compute/kernel"
	"gdb/internal/mem"
)

// scratchAlign is the alignment of a scratch tensor in floats: a cache line and a vector register.
const scratchAlign = 16

// scratch hands out memory that is all taken back at once. It grows by whole arenas; when a round
// needed several, the next begins with one that holds them all, so after some rounds there is one.
type scratch struct {
	budget *mem.Budget
	what   string
	chunks []*mem.Arena
	used   int // floats used of the last chunk
	total  int // floats handed out in this round
}

// reset takes all memory back.
func (s *scratch) reset() error {
	need := s.total
	if s.used, s.total = 0, 0; len(s.chunks) <= 1 {
		return nil
	}
	if err := s.free(); err != nil {
		return err
	}
	return s.grow(need + need/8)
}

// take returns n floats.
func (s *scratch) take(n int) ([]float32, error) {
	size := (n + scratchAlign - 1) / scratchAlign * scratchAlign
	if len(s.chunks) == 0 || s.used+size > s.room() {
		if err := s.grow(size + size/8); err != nil {
			return nil, err
		}
	}
	all := mem.View[float32](s.chunks[len(s.chunks)-1].Bytes())
	out := all[s.used : s.used+n : s.used+n]
	s.used += size
	s.total += size
	return out, nil
}

func (s *scratch) room() int { return len(s.chunks[len(s.chunks)-1].Bytes()) / 4 }

// grow adds an arena of at least n floats.
func (s *scratch) grow(n int) error {
	a, err := mem.NewArena(s.budget, s.what, int64(n)*4)
	if err != nil {
		return err
	}
	s.chunks, s.used = append(s.chunks, a), 0
	return nil
}

func (s *scratch) free() error {
	var first error
	for _, a := range s.chunks {
		if err := a.Free(); err != nil && first == nil {
			first = err
		}
	}
	s.chunks, s.used, s.total = s.chunks[:0], 0, 0
	return first
}

// SegmentFloats is the scratch of Segments whose gradient is asked for, on the CPU; weights says
// that it is asked for with weights of entries.
func SegmentFloats(rows, entries, lists int, weights bool) int {
	if weights {
		return kernel.TransposedEntryWords(rows, entries, lists)
	}
	return kernel.TransposedWords(rows, entries, lists)
}

// Taken is what operations take of scratch memory besides their operands, on the CPU, in words of 4
// bytes: Once, and for each worker, of a product of matrices and of an operation over lists. What
// a worker sums up before it is rounded to bfloat16 is memory of lists, of products too.
type Taken struct{ Once, Product, List int }

// Or is what is taken by either of two, one after the other.
func (t Taken) Or(o Taken) Taken {
	return Taken{max(t.Once, o.Once), max(t.Product, o.Product), max(t.List, o.List)}
}

// Bytes returns the memory that is taken with a number of threads.
func (t Taken) Bytes(threads int) int64 {
	return 4 * (int64(t.Once) + int64(threads)*int64(t.Product+t.List))
}
