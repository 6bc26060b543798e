package backend

import (
	"errors"

	"gdb/compute/kernel"
)

// Scratch hands out memory that is all taken back at once: pieces of chunks of type M, in units of
// the caller's. It grows by whole chunks; when a round needed several, the next begins with one
// that holds them all, so after some rounds there is one.
type Scratch[M any] struct {
	// Align is what pieces begin at multiples of.
	Align int
	// Grow allocates a chunk of size units, or of fewer, but not below least, where memory is
	// short. It returns how many units it has.
	Grow func(size, least int) (chunk M, units int, err error)
	// Free frees a chunk. Nothing uses it any more.
	Free func(chunk M) error

	chunks     []M
	room, used int // of the last
	total      int // handed out in this round
}

// Total returns the units that were handed out in this round.
func (s *Scratch[M]) Total() int { return s.total }

// Reset takes all memory back.
func (s *Scratch[M]) Reset() error {
	need := s.total
	if s.used, s.total = 0, 0; len(s.chunks) <= 1 {
		return nil
	}
	if err := s.Release(); err != nil {
		return err
	}
	return s.grow(need+need/8, need+need/8)
}

// Take returns n units: those of a chunk from one on.
func (s *Scratch[M]) Take(n int) (chunk M, at int, err error) {
	size := (n + s.Align - 1) / s.Align * s.Align
	if len(s.chunks) == 0 || s.used+size > s.room {
		if err := s.grow(size+size/8, size); err != nil {
			return chunk, 0, err
		}
	}
	at = s.used
	s.used += size
	s.total += size
	return s.chunks[len(s.chunks)-1], at, nil
}

func (s *Scratch[M]) grow(size, least int) error {
	chunk, units, err := s.Grow(size, least)
	if err == nil {
		s.chunks, s.room, s.used = append(s.chunks, chunk), units, 0
	}
	return err
}

// Release frees all memory.
func (s *Scratch[M]) Release() (err error) {
	for _, chunk := range s.chunks {
		err = errors.Join(err, s.Free(chunk))
	}
	s.chunks, s.room, s.used, s.total = nil, 0, 0, 0
	return err
}

// SegmentFloats returns the scratch of Segments whose gradient is asked for, on the CPU; weights
// says that it is asked for with weights of entries.
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

// Or returns what is taken by either of two, one after the other.
func (t Taken) Or(o Taken) Taken {
	return Taken{max(t.Once, o.Once), max(t.Product, o.Product), max(t.List, o.List)}
}

// Bytes returns the memory that is taken with a number of threads.
func (t Taken) Bytes(threads int) int64 {
	return 4 * (int64(t.Once) + int64(threads)*int64(t.Product+t.List))
}
