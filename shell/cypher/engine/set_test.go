package engine

import "testing"

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
