package link

import (
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/train/link/triples"
)

// mustStored opens a run whose vectors are read from its checkpoint, some rows at a time, in so
// much memory; 0 for any.
func mustStored(t *testing.T, s *layout.Store, run string, rows int, memory int64) *Trained {
	t.Helper()
	whole := mustTrained(t, s, run)
	tr := &Trained{Config: whole.Config, run: run, store: s, dev: whole.dev, budget: whole.budget}
	if err := tr.open(t.Context(), mem.NewBudget(memory), false, rows); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

func mustTrained(t *testing.T, s *layout.Store, run string) *Trained {
	t.Helper()
	tr, err := Open(t.Context(), s, mustDevice(t), run, Limits{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// TestStored: vectors that are read from a checkpoint block by block give the answers of those in
// memory, to the bit, those of an encoder over a buffer too.
func TestStored(t *testing.T) {
	s := mustCircle(t, true)
	configs := diskSettings()
	encoded, plain := configs["sage"], circleConfig("complex")
	encoded.Run, encoded.Epochs, encoded.EvalEvery = "sage", 4, 2
	plain.Run, plain.Epochs = "plain", 10
	for _, c := range []Config{encoded, plain} {
		t.Run(c.Run, func(t *testing.T) {
			mustRun(t, s, c)
			sameStored(t, mustStored(t, s, c.Run, 0, 0), mustTrained(t, s, c.Run))
			sameStored(t, mustStored(t, s, c.Run, 16, 0), mustTrained(t, s, c.Run))
			// Known answers are looked for again for each block: there is hardly room for one.
			blocks := mem.ArenaBytes(2 * 4 * 16 * int64(c.Dim))
			const edges, answers, spare = 8 << 20, 4 << 10, 2 << 10
			sameStored(t, mustStored(t, s, c.Run, 16, blocks+edges+answers+spare),
				mustTrained(t, s, c.Run))
		})
	}
}

// sameStored fails unless a run evaluates and predicts as another.
func sameStored(t *testing.T, got, want *Trained) {
	t.Helper()
	ctx := t.Context()
	for _, split := range []string{"val", "test", "train"} {
		for _, candidates := range []int{0, 10} {
			a, err := got.Evaluate(ctx, split, candidates)
			if err != nil {
				t.Fatal(err)
			}
			b, err := want.Evaluate(ctx, split, candidates)
			if err != nil {
				t.Fatal(err)
			}
			if a.Metrics != b.Metrics || a.Raw != b.Raw || !slices.Equal(a.Relations, b.Relations) {
				t.Errorf("%s, %d candidates: %+v, want %+v", split, candidates, a.Result, b.Result)
			}
		}
	}
	edges := want.data.test
	a, err := got.Scores(ctx, edges)
	if err != nil {
		t.Fatal(err)
	}
	b, err := want.Scores(ctx, edges)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a, b) {
		t.Errorf("scores are %v, want %v", a, b)
	}
	for _, onlyNew := range []bool{false, true} {
		for _, q := range []triples.Query{{Entity: 3, Relation: 1}, {Entity: 9, Head: true}} {
			a, err := got.Top(ctx, q, 5, onlyNew)
			if err != nil {
				t.Fatal(err)
			}
			b, err := want.Top(ctx, q, 5, onlyNew)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(a, b) {
				t.Errorf("%+v: %v, want %v", q, a, b)
			}
		}
	}
	all := make([]uint32, want.data.entities)
	for i := range all {
		all[i] = uint32((i*7 + 3) % len(all))
	}
	rows := make([]float32, len(all)*want.Config.Dim)
	if err := got.vectors.Table.Gather(ctx, rows, all); err != nil {
		t.Fatal(err)
	}
	for i, e := range all {
		if dim := want.Config.Dim; !slices.Equal(rows[i*dim:][:dim],
			want.vectors.Table.All()[int(e)*dim:][:dim]) {
			t.Fatalf("row %d is not that of entity %d", i, e)
		}
	}
}
