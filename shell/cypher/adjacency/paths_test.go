package adjacency

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

func listsOf(t *testing.T, nodes int, edges [][2]uint32) *Lists {
	t.Helper()
	grow := func(int64) error { return nil }
	b, err := NewBuilder(0, uint32(nodes), false, grow)
	if err != nil {
		t.Fatal(err)
	}
	for v := range uint32(nodes) {
		for _, e := range edges {
			if e[0] == v {
				if err := b.Add(v, e[1], 0); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	l, err := b.Lists(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func randomEdges(r *rand.Rand, nodes, n int) (edges, back [][2]uint32) {
	for range n {
		a, b := uint32(r.IntN(nodes)), uint32(r.IntN(nodes))
		edges, back = append(edges, [2]uint32{a, b}), append(back, [2]uint32{b, a})
	}
	return edges, back
}

// TestTurnSome compares turned lists with those made of turned edges, and that their memory is
// counted.
func TestTurnSome(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		edges, back := randomEdges(r, 200, 90)
		l, want := listsOf(t, 200, edges), listsOf(t, 200, back)
		counted := int64(0)
		grow := func(n int64) error { counted += n; return nil }
		got, err := TurnSome(t.Context(), l, 200, grow)
		if err != nil || counted != got.Bytes() {
			t.Fatalf("%d bytes counted of %d, %v", counted, got.Bytes(), err)
		}
		for v := range uint32(260) {
			lo, hi := got.Of(v)
			a, b := want.Of(v)
			if !slices.Equal(got.Nbr[lo:hi], want.Nbr[a:b]) {
				t.Fatalf("node %d: %v, want %v", v, got.Nbr[lo:hi], want.Nbr[a:b])
			}
		}
	}
}

// TestTurnSomeShort holds that lists for which there is no memory leave none counted.
func TestTurnSomeShort(t *testing.T) {
	edges, _ := randomEdges(rand.New(rand.NewPCG(5, 6)), 200, 90)
	l := listsOf(t, 200, edges)
	for room := int64(0); room < 1000; room += 10 {
		counted := int64(0)
		grow := func(n int64) error {
			if counted += n; counted > room {
				counted -= n
				return errors.New("no room")
			}
			return nil
		}
		got, err := TurnSome(t.Context(), l, 200, grow)
		if (got == nil) != (err != nil) || err != nil && counted != 0 {
			t.Fatalf("room for %d bytes: %d are counted after %v", room, counted, err)
		}
	}
}

// TestPaths holds that pairs of paths are those that loops over all of them find.
func TestPaths(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	p := NewPaths(0, 12)
	for i := range 300 {
		edges, back := randomEdges(r, 12, 40)
		out, in := listsOf(t, 12, edges), listsOf(t, 12, back)
		v := uint32(r.IntN(12))
		lo, hi := out.Of(v)
		to := out.Nbr[lo:hi]
		lo, hi = in.Of(v)
		from := in.Nbr[lo:hi]
		steps := p.Add(to, out)
		if i%2 > 0 {
			p.Leave(v)
		}
		pairs, n := p.Meet(from, in)
		want, rounds, first, second := int64(0), int64(0), 0, 0
		for a, e := range edges {
			for b, f := range edges {
				if e[0] == v && e[1] == f[0] {
					first++
				}
				if e[1] == v && e[0] == f[1] {
					second++
				}
				for c, g := range edges {
					if e[0] != v || e[1] != f[0] || f[1] != g[0] {
						continue
					}
					for d, h := range edges {
						if g[1] != h[0] || h[1] != v {
							continue
						}
						if i%2 == 0 || g[0] != v {
							want++
						}
						if g[0] == v && a != b && a != c && a != d && b != c && b != d && c != d {
							rounds++
						}
					}
				}
			}
		}
		if pairs != want || steps != first || n != second {
			t.Fatalf("%d pairs of %d and %d paths, want %d of %d and %d", pairs, steps, n, want,
				first, second)
		}
		if got := Rounds(to, from, v); got != rounds {
			t.Fatalf("%d rounds, want %d: %v %v from %d", got, rounds, to, from, v)
		}
		if p.Clear(); p.Any() {
			t.Fatal("paths after Clear")
		}
	}
}
