package backend

import "gdb/internal/mem"

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
