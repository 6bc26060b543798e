package adjacency

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/internal/pace"
)

type edge struct {
	from, to uint32
	typ      uint16
}

func free(int64) error { return nil }

// lists makes out-lists of edges, and in-lists of them if in is set.
func lists(t *testing.T, edges []edge, nodes uint32, in bool) *Lists {
	b, err := NewBuilder(0, nodes, true, free)
	if err != nil {
		t.Fatal(err)
	}
	edges = slices.Clone(edges)
	if in {
		for i, e := range edges {
			edges[i].from, edges[i].to = e.to, e.from
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return int(a.from) - int(b.from) })
	for _, e := range edges {
		if err := b.Add(e.from, e.to, e.typ); err != nil {
			t.Fatal(err)
		}
	}
	l, err := b.Lists(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// all returns the entries of all lists: owner, neighbor, type, number and whether it leads back.
func (l *Lists) all() (out [][5]uint32) {
	for v := l.First; v < l.End; v++ {
		lo, hi := l.Of(v)
		for i := lo; i < hi; i++ {
			n, back := l.NumberOf(i)
			e := [5]uint32{v, l.Nbr[i], uint32(l.TypeOf(i)), n, 0}
			if back {
				e[4] = 1
			}
			out = append(out, e)
		}
	}
	return out
}

// each calls edge with all entries.
func (l *Lists) each(edge func(owner, nbr uint32, typ uint16)) error {
	for _, e := range l.all() {
		edge(e[0], e[1], uint16(e[2]))
	}
	return nil
}

// TestLists holds that turned lists equal the lists of the other direction, and that lists of both
// have the entries of each, loops once.
func TestLists(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		nodes := uint32(1 + r.IntN(20))
		var edges []edge
		for range r.IntN(80) {
			edges = append(edges, edge{r.Uint32N(nodes), r.Uint32N(nodes), uint16(r.IntN(3))})
		}
		out, in := lists(t, edges, nodes, false), lists(t, edges, nodes, true)
		turned, err := Turn(t.Context(), 0, nodes, true, out.each, free)
		if err != nil || !slices.Equal(turned.all(), in.all()) {
			t.Fatalf("turned %v, %v; want %v", turned.all(), err, in.all())
		}
		if turned.Loops != in.Loops || turned.Multi != in.Multi || len(edges) > 0 &&
			(turned.Least != in.Least || turned.Most != in.Most) {
			t.Fatalf("%v: turned %+v, in %+v", edges, turned, in)
		}
		both, err := Both(t.Context(), out, in, free)
		if err != nil {
			t.Fatal(err)
		}
		var want [][5]uint32
		want = append(want, out.all()...)
		for _, e := range in.all() {
			if e[4] = 1; e[0] != e[1] {
				want = append(want, e)
			}
		}
		order := func(a, b [5]uint32) int { return slices.Compare(a[:], b[:]) }
		got := both.all()
		if !slices.IsSortedFunc(got, func(a, b [5]uint32) int {
			return slices.Compare(a[:3], b[:3])
		}) {
			t.Fatalf("not in order: %v", got)
		}
		slices.SortFunc(got, order)
		slices.SortFunc(want, order)
		if !slices.Equal(got, want) {
			t.Fatalf("both %v, want %v", got, want)
		}
	}
}

// TestFind holds where the entries of a neighbor are.
func TestFind(t *testing.T) {
	l := lists(t, []edge{{1, 2, 0}, {1, 2, 1}, {1, 2, 1}, {1, 5, 0}, {3, 3, 0}}, 6, false)
	if lo, hi := l.Find(1, 2); hi-lo != 3 || l.Nbr[lo] != 2 {
		t.Errorf("%d to %d", lo, hi)
	}
	n, _ := l.NumberOf(2)
	if n != 1 || l.Degree(1) != 4 || l.Degree(9) != 0 || !l.Loops || !l.Multi {
		t.Errorf("number %d, %+v", n, l)
	}
	if lo, hi := l.Find(1, 4); lo != hi {
		t.Errorf("a neighbor that is not there: %d to %d", lo, hi)
	}
	if l := lists(t, []edge{{0, 1, 0}, {1, 0, 0}}, 2, false); l.Loops || l.Multi || l.Num != nil {
		t.Errorf("%+v", l)
	}
}

// TestMemory holds that memory is asked for before it is taken, and counted as it grows.
func TestMemory(t *testing.T) {
	short := errors.New("short")
	held := int64(0)
	grow := func(n int64) error {
		if held += n; held > 64<<10 {
			return short
		}
		return nil
	}
	b, err := NewBuilder(0, 100, false, grow)
	for i := 0; err == nil && i < 1<<20; i++ {
		err = b.Add(uint32(i>>14), uint32(i), 0)
	}
	if !errors.Is(err, short) {
		t.Errorf("2^20 entries in 64 KiB: %v", err)
	}
	if got := b.l.Bytes(); got > 64<<10 {
		t.Errorf("%d bytes are taken", got)
	}
}

// TestEnds holds that turning lists, and joining those of both directions, ends with the context.
func TestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	const nodes = 2 * pace.Every
	each := func(edge func(owner, nbr uint32, typ uint16)) error {
		for v := range uint32(nodes) {
			edge(v, v/2, 0)
		}
		return nil
	}
	l, err := Turn(ctx, 0, nodes, false, each, free)
	if err != nil || len(l.Nbr) != nodes {
		t.Fatal(err)
	}
	cancel()
	if _, err := Turn(ctx, 0, nodes, false, each, free); !errors.Is(err, context.Canceled) {
		t.Errorf("turned: %v", err)
	}
	if _, err := Both(ctx, l, l, free); !errors.Is(err, context.Canceled) {
		t.Errorf("both: %v", err)
	}
}

// TestCode holds that a code of an entry tells what the list tells.
func TestCode(t *testing.T) {
	l := lists(t, []edge{{1, 2, 0}, {1, 2, 1}, {1, 2, 1}, {1, 5, 0}}, 6, false)
	o := Outline{TypeBits: 1}
	for i := range uint32(len(l.Nbr)) {
		code, err := o.Code(l, i)
		typ, number, back := o.Decode(code)
		n, b := l.NumberOf(i)
		if err != nil || typ != l.TypeOf(i) || number != n || back != b {
			t.Errorf("entry %d: type %d, number %d, %v, %v", i, typ, number, back, err)
		}
	}
	l.Num[2] = 1 << 31
	if _, err := o.Code(l, 2); err == nil {
		t.Error("a number that does not fit")
	}
}
