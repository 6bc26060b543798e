package steps_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/layout/ingest/steps"
)

// TestRanks: ranks are places among the sorted ids, also in a set that was loaded in pieces.
func TestRanks(t *testing.T) {
	const limit = 100_000
	r := rand.New(rand.NewPCG(1, 2))
	made := mustSet(t, limit)
	var ids []uint64
	for range 3000 {
		id := 9000 + r.Uint64N(50_000) // so that there are words of zeros before and after
		ids = append(ids, id)
		if !made.Add(id) {
			t.Fatalf("id %d was refused", id)
		}
	}
	if made.Add(limit + 1) {
		t.Error("an id beyond the limit was taken")
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	loaded, at := mustSet(t, limit), 0
	for words := range slices.Chunk(made.Used(), 7) {
		at = loaded.Load(at, words)
	}
	for _, s := range []*steps.IDSet{made, loaded} {
		s.Index()
		if s.Count() != uint64(len(ids)) || s.Dense() {
			t.Fatalf("%d ids, want %d", s.Count(), len(ids))
		}
		for id := range uint64(limit) {
			want, there := slices.BinarySearch(ids, id)
			if got, ok := s.Rank(id); ok != there || ok && int(got) != want {
				t.Fatalf("id %d: %d, %v, want %d, %v", id, got, ok, want, there)
			}
		}
		var each []uint64
		err := s.Each(func(id uint64) error {
			each = append(each, id)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(each, ids) {
			t.Error("Each gives other ids")
		}
	}
}

func mustSet(t *testing.T, limit uint64) *steps.IDSet {
	t.Helper()
	s, err := steps.NewIDSet(nil, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Free(); err != nil {
			t.Error(err)
		}
	})
	return s
}
