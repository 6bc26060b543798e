package triples_test

import (
	"runtime"
	"slices"
	"testing"

	"gdb/train/link/triples"

	"pgregory.net/rapid"
)

// TestIndex compares answers with those that a search through all edges finds.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		number := rapid.Uint32Range(0, 5)
		edge := rapid.Custom(func(rt *rapid.T) triples.Triple {
			return triples.Triple{Head: number.Draw(rt, "head"),
				Relation: number.Draw(rt, "relation"), Tail: number.Draw(rt, "tail")}
		})
		a, b := rapid.SliceOf(edge).Draw(rt, "a"), rapid.SliceOf(edge).Draw(rt, "b")
		x, all, edges := triples.NewIndex(a, b), slices.Concat(a, b), 0
		for e := range uint32(6) {
			for r := range uint32(6) {
				for _, head := range []bool{false, true} {
					var want []uint32
					for _, t := range all {
						switch {
						case t.Relation != r:
						case !head && t.Head == e:
							want = append(want, t.Tail)
						case head && t.Tail == e:
							want = append(want, t.Head)
						}
					}
					slices.Sort(want)
					want = slices.Compact(want)
					got := x.Answers(triples.Query{Entity: e, Relation: r, Head: head})
					if !slices.Equal(got, want) {
						rt.Fatalf("answers of %d, %d, head %v: %v, want %v", e, r, head, got, want)
					}
					edges += len(got)
				}
			}
		}
		for i := range x.Len() {
			q, answers := x.At(i)
			if edges -= len(answers); !slices.Equal(answers, x.Answers(q)) {
				rt.Fatalf("query %d: %v", i, answers)
			}
		}
		if edges != 0 {
			rt.Fatalf("%d answers are of no query", edges)
		}
	})
}

// TestIndexBytes holds that an index whose edges share no query takes what Bytes says, and what
// makes it no more than places of edges besides.
func TestIndexBytes(t *testing.T) {
	const n = 200_000
	edges := make([]triples.Triple, n)
	for i := range edges {
		edges[i] = triples.Triple{Head: uint32(i), Relation: uint32(i % 7), Tail: uint32(n - i)}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	x := triples.NewIndex(edges)
	runtime.ReadMemStats(&after)
	if x.Len() != 2*n {
		t.Fatalf("%d queries, want %d", x.Len(), 2*n)
	}
	if got := int64(after.TotalAlloc - before.TotalAlloc); got > triples.Bytes(n)+5*n {
		t.Errorf("%d bytes an edge were allocated, Bytes says %d and 4 are garbage", got/n,
			triples.Bytes(1))
	}
}

// TestBytesByHand: an edge has an answer, an entity and an offset in both directions, and a place.
func TestBytesByHand(t *testing.T) {
	if got := triples.Bytes(10); got != 10*(2*12+4) {
		t.Errorf("10 edges take %d bytes, want %d", got, 10*(2*12+4))
	}
}

func TestGroups(t *testing.T) {
	var g triples.Groups
	for _, list := range [][]uint32{{7, 1, 7, 3, 1, 7}, {}, {2}, {6, 7, 6}} {
		g.Group(list)
		back := make([]uint32, len(list))
		for i, n := range g.Numbers {
			for _, at := range g.At[g.Off[i]:g.Off[i+1]] {
				back[at] = n
			}
			if i > 0 && n <= g.Numbers[i-1] {
				t.Errorf("%v: numbers %v do not ascend", list, g.Numbers)
			}
		}
		if !slices.Equal(back, list) {
			t.Errorf("%v: groups give %v", list, back)
		}
	}
}
