package paged_test

import (
	"math/rand/v2"
	"testing"
)

// TestClosedFiles: once a source is closed its directory has each partition of the last checkpoint
// and no more: files that were kept to be written again are gone.
func TestClosedFiles(t *testing.T) {
	f := newFixture(t, policies["two levels"])
	s := f.mustOpen(t, nil, nil)
	m, r := newModel(), rand.New(rand.NewPCG(5, 5))
	for epoch := range uint64(2) {
		for part := range s.Parts(epoch) {
			if s.CheckpointFirst(epoch, part) {
				mustCheckpoint(t, s)
			}
			p, err := s.Load(t.Context(), epoch, part)
			if err != nil {
				t.Fatal(err)
			}
			m.train(t, f, s, p, r)
		}
		mustCheckpoint(t, s)
	}
	bytes, err := f.plan.PartBytes(f.store.Meta())
	if err != nil {
		t.Fatal(err)
	}
	want := int64(0)
	for part := range 8 {
		want += bytes(part)
	}
	before := f.diskBytes(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := f.diskBytes(t); got != want || before <= want {
		t.Errorf("%d bytes of files, %d before Close, want %d", got, before, want)
	}
}
