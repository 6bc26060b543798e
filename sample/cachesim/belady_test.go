package cachesim

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"gdb/sample"

	"pgregory.net/rapid"
)

// plainMIN keeps after each batch, of the rows held and those of the batch, the ones that come
// next, looking ahead through the whole trace, and counts hits.
func plainMIN(batches [][]sample.NodeID, rows int) (hits uint64) {
	var held []sample.NodeID
	for now, batch := range batches {
		all := slices.Clone(held)
		for _, v := range batch {
			if slices.Contains(held, v) {
				hits++
			} else {
				all = append(all, v)
			}
		}
		next := func(v sample.NodeID) int {
			for b := now + 1; b < len(batches); b++ {
				if slices.Contains(batches[b], v) {
					return b
				}
			}
			return len(batches)
		}
		slices.SortStableFunc(all, func(a, b sample.NodeID) int {
			return cmp.Compare(next(a), next(b))
		})
		held = all[:min(rows, len(all))]
	}
	return hits
}

// best is the most hits that any choice of what to keep gives, by trying all.
func best(batches [][]sample.NodeID, rows int, held []sample.NodeID) int {
	if len(batches) == 0 {
		return 0
	}
	all, hits := slices.Clone(held), 0
	for _, v := range batches[0] {
		if slices.Contains(held, v) {
			hits++
		} else {
			all = append(all, v)
		}
	}
	most := 0
	for choice := range 1 << len(all) {
		var keep []sample.NodeID
		for i, v := range all {
			if choice>>i&1 == 1 {
				keep = append(keep, v)
			}
		}
		if len(keep) == min(rows, len(all)) {
			most = max(most, best(batches[1:], rows, keep))
		}
	}
	return hits + most
}

// drawBatches draws batches of distinct nodes below limit.
func drawBatches(t *rapid.T, limit, count int) [][]sample.NodeID {
	batch := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) sample.NodeID {
		return sample.NodeID(rapid.IntRange(0, limit-1).Draw(t, "node"))
	}), 0, limit, rapid.ID[sample.NodeID])
	return append(rapid.SliceOfN(batch, 0, count).Draw(t, "batches"), []sample.NodeID{0})
}

// bounds are the hits of the bound with 0, 1, … rows.
func bounds(t *rapid.T, batches [][]sample.NodeID, limit int) (hits []uint64) {
	var sizes []Capacity
	for rows := range limit + 2 {
		sizes = append(sizes, Capacity{Rows: rows})
	}
	trace := Trace{Nodes: uint64(limit), Each: func(fn func([]sample.NodeID) error) error {
		for _, b := range batches {
			if err := fn(b); err != nil {
				return err
			}
		}
		return nil
	}}
	results, err := Run(context.Background(), trace, []Policy{Belady}, sizes, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		hits = append(hits, r.Hits)
	}
	return hits
}

func TestBeladyKeepsWhatComesNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 12
		batches := drawBatches(t, limit, 20)
		for rows, got := range bounds(t, batches, limit) {
			if want := plainMIN(batches, rows); got != want {
				t.Fatalf("%d rows: %d hits, want %d", rows, got, want)
			}
		}
	})
}

func TestBeladyIsTheMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 4
		batches := drawBatches(t, limit, 5)
		for rows, got := range bounds(t, batches, limit) {
			if want := best(batches, rows, nil); got != uint64(want) {
				t.Fatalf("%d rows: %d hits, the most are %d", rows, got, want)
			}
		}
	})
}

// TestBeladyBoundsOthers: no policy that begins empty has more hits.
func TestBeladyBoundsOthers(t *testing.T) {
	sizes := []Capacity{{Rows: 1}, {Rows: 20}, {Rows: 60}, {Rows: 150}, {Rows: nodes}}
	policies := append([]Policy{Belady}, tried()[1:]...)
	results, err := Run(context.Background(), traceOf(t, batchesOf(4, 400, false)), policies, sizes,
		nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		bound := results[i%len(sizes)]
		if r.Hits > bound.Hits || r.Requests != bound.Requests || bound.Policy != "belady" {
			t.Errorf("%+v has more hits than the bound, %+v", r, bound)
		}
		if r.Rows == nodes && r.Hits != bound.Hits {
			t.Errorf("%+v holds all rows, the bound is %+v", r, bound)
		}
	}
}
