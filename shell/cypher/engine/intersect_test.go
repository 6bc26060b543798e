package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestIntersect holds that a plain loop finds what bits and halving find.
func TestIntersect(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	m := &mark{bits: make([]uint64, 1000/64+1)}
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
		a := span{list(r.IntN(300), twice), uint32(i / 3)}
		if i%3 > 0 && m.held != nil {
			a = span{m.held, m.node} // the list that is marked
		}
		b := span{list(r.IntN(300)>>r.IntN(6), twice), 0}
		var want []uint32
		for _, u := range b.nbr {
			if slices.Contains(a.nbr, u) && !slices.Contains(want, u) {
				want = append(want, u)
			}
		}
		if got := m.intersect(a, b, nil); !slices.Equal(got, want) {
			t.Fatalf("%v and %v: %v, want %v", a, b, got, want)
		}
		if twice {
			m.held = nil
			clear(m.bits)
			continue
		}
		if got := m.common(a, b); got != int64(len(want)) {
			t.Fatalf("%v and %v: %d, want %d", a, b, got, len(want))
		}
	}
}

// TestSets holds what is in sets, and in none of two.
func TestSets(t *testing.T) {
	a := Set{Ranges: []Range{{2, 5}, {8, 9}}}
	b := Set{Ranges: []Range{{4, 8}}, Bits: []uint64{1<<4 | 1<<6}}
	both := a.and(b)
	for v := range uint32(12) {
		inA, inB := v >= 2 && v < 5 || v == 8, v == 4 || v == 6
		if a.Has(v) != inA || b.Has(v) != inB || both.Has(v) != (inA && inB) {
			t.Errorf("node %d: %t %t %t", v, a.Has(v), b.Has(v), both.Has(v))
		}
	}
	if u := Union(a, b); len(u.Ranges) != 1 || u.Ranges[0] != (Range{2, 9}) {
		t.Errorf("union %v", u)
	}
	if !a.Disjoint(Set{Ranges: []Range{{5, 8}}}) || a.Disjoint(b) || !a.Covers(2, 4) ||
		a.Covers(2, 5) || b.Covers(4, 5) {
		t.Error("disjoint or covers")
	}
	if parts := a.split(2); len(parts) != 3 || parts[1] != (Range{4, 5}) {
		t.Errorf("parts %v", parts)
	}
}
