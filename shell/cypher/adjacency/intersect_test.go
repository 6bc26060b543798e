package adjacency

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestIntersect holds that a plain loop finds what bits and halving find.
func TestIntersect(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	m := NewMark(1000)
	list := func(n int, twice bool) (out []uint32) {
		for range n {
			out = append(out, r.Uint32N(1000))
		}
		slices.Sort(out)
		if !twice {
			out = slices.Compact(out)
		}
		return out
	}
	for i := range 400 {
		twice := i%2 == 0
		a := Span{list(r.IntN(300), twice), uint32(i / 3)}
		if i%3 > 0 && m.held != nil {
			a = Span{m.held, m.node} // the list that is marked
		}
		b := Span{list(r.IntN(300)>>r.IntN(6), twice), 0}
		var want []uint32
		for _, u := range b.Nbr {
			if slices.Contains(a.Nbr, u) && !slices.Contains(want, u) {
				want = append(want, u)
			}
		}
		if got := m.Intersect(a, b, nil); !slices.Equal(got, want) {
			t.Fatalf("%v and %v: %v, want %v", a, b, got, want)
		}
		if twice {
			m.held = nil
			clear(m.bits)
			continue
		}
		if got := m.Common(a, b); got != int64(len(want)) {
			t.Fatalf("%v and %v: %d, want %d", a, b, got, len(want))
		}
	}
}
