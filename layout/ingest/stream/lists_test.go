package stream

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gdb/layout"
	"gdb/layout/listfile"
)

// entry is an entry of a list, and the node whose list it is in.
type entry struct {
	node layout.NodeID
	edge listfile.Edge
}

// entriesOf returns the entries of a run.
func entriesOf(r *ListRun) (all []entry) {
	for i, v := range r.Nodes {
		for k := r.Off[i]; k < r.Off[i+1]; k++ {
			e := entry{v, listfile.Edge{Nbr: r.Nbrs[k]}}
			if len(r.Types) > 0 {
				e.edge.Type = r.Types[k]
			}
			if len(r.Weights) > 0 {
				e.edge.Weight = r.Weights[k]
			}
			if len(r.Times) > 0 {
				e.edge.Time = r.Times[k]
			}
			all = append(all, e)
		}
	}
	return all
}

// TestListRuns: lists that are added in parts come in runs of whole groups of parallel edges, which
// SortParallel sorts, even a group that is larger than a run.
func TestListRuns(t *testing.T) {
	r, codec := rand.New(rand.NewPCG(1, 1)), EdgeCodec{Typed: true, Weighted: true, Timed: true}
	var l listfile.Lists
	var want []entry
	for v := range layout.NodeID(900) {
		l.Off = append(l.Off, uint64(len(l.Nbrs)))
		n := r.IntN(60)
		if v == 400 {
			n = 3 * listRunEntries
		}
		nbrs := make([]layout.NodeID, n)
		for i := range nbrs {
			if nbrs[i] = layout.NodeID(r.IntN(40)); v == 400 {
				nbrs[i] /= 39 // 39 of 40 have the same ends
			}
		}
		slices.Sort(nbrs)
		for _, u := range nbrs {
			e := listfile.Edge{Nbr: u, Type: uint16(r.IntN(3)), Weight: r.Float32() - .5,
				Time: r.Int64N(5) - 2}
			l.Nbrs, l.Types = append(l.Nbrs, u), append(l.Types, e.Type)
			l.Weights, l.Times = append(l.Weights, e.Weight), append(l.Times, e.Time)
			want = append(want, entry{v, e})
		}
	}
	l.Off = append(l.Off, uint64(len(l.Nbrs)))
	slices.SortFunc(want, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.edge.Nbr, b.edge.Nbr),
			cmp.Compare(a.edge.Type, b.edge.Type), cmp.Compare(a.edge.Time, b.edge.Time),
			cmp.Compare(a.edge.Weight, b.edge.Weight))
	})
	var got []entry
	calls, other := 0, ListRun{}
	runs := NewListRuns(func(run *ListRun) error {
		codec.SortParallel(run)
		got, calls = append(got, entriesOf(run)...), calls+1
		*run, other = other, *run
		return nil
	})
	addInParts(t, r, runs, &l)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%d entries in %d runs are not the %d that were added, sorted", len(got), calls,
			len(want))
	}
	if most := len(want)/listRunEntries + 1; calls < most/2 || calls > most {
		t.Errorf("%d runs of %d entries", calls, len(want))
	}
}

// addInParts adds lists, some whole, others in parts: a large one in many.
func addInParts(t *testing.T, r *rand.Rand, runs *ListRuns, l *listfile.Lists) {
	t.Helper()
	n := len(l.Off) - 1
	for i := 0; i < n; i++ {
		from, to := l.Off[i], l.Off[i+1]
		if to-from < 100 && r.IntN(3) > 0 {
			runs.AddLists(0, l, i, i+1)
			from = to
		}
		for from < to {
			part := from + 1 + r.Uint64N(min(to-from, listRunEntries/4))
			runs.Add(layout.NodeID(i), l, from, part)
			if err := runs.Pass(); err != nil {
				t.Fatal(err)
			}
			from = part
		}
		if err := runs.Pass(); err != nil {
			t.Fatal(err)
		}
	}
	if err := runs.Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestMergeIDs: entries that are merged are the sorted entries of both.
func TestMergeIDs(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for range 200 {
		nbrs, keys := make([]layout.NodeID, r.IntN(20)), make([]uint64, r.IntN(10)+1)
		for i := range nbrs {
			nbrs[i] = layout.NodeID(r.IntN(15))
		}
		for i := range keys {
			keys[i] = 7<<32 | uint64(r.IntN(17))
		}
		slices.Sort(nbrs)
		slices.Sort(keys)
		want := slices.Clone(nbrs)
		for _, k := range keys {
			want = append(want, layout.NodeID(k))
		}
		slices.Sort(want)
		var run ListRun
		run.reset()
		run.MergeIDs(7, nbrs, keys)
		if !slices.Equal(run.Nbrs, want) || len(run.Nodes) != 1 || run.Off[1] != uint64(len(want)) {
			t.Fatalf("%d and %d: %+v, want %d", nbrs, keys, run, want)
		}
	}
}
