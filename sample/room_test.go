package sample

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/sample/sampletest"
)

// TestPipelineWaitsForRoom runs epochs with less and less memory, down to that of a batch or two:
// the batches are the same, until there is an error of the limit.
func TestPipelineWaitsForRoom(t *testing.T) {
	e := newTestEpoch(t)
	want := hashes(t, mustPipeline(t, context.Background(), e.config(2)), 0)
	peak := e.budget.Peak()
	tight := 0
	for share := int64(20); share > 0; share-- {
		e.budget = mem.NewBudget(peak * share / 20)
		p := mustPipeline(t, context.Background(), e.config(2))
		var got []uint64
		for {
			b, err := p.Next(context.Background())
			var full *mem.LimitError
			if errors.As(err, &full) {
				if share == 20 {
					t.Fatalf("the memory that sufficed before: %v", err)
				}
				t.Logf("%d twentieths do not do, %d epochs were tight", share, tight)
				return
			}
			if err != nil {
				break
			}
			got = append(got, BatchHash(b))
			b.Release()
		}
		if !slices.Equal(got, want) {
			t.Fatalf("with %d twentieths of the memory batches are others", share)
		}
		tight++
	}
	t.Error("an epoch ran without memory")
}

// TestCacheGivesWay takes the memory of caches away, bit by bit: rows stay right, and in the end
// there are no hits.
func TestCacheGivesWay(t *testing.T) {
	const nodes, dim, limit = 40000, 64, 16 << 20
	hot := make([]NodeID, nodes)
	for i := range hot {
		hot[i] = NodeID(i)
	}
	for name, policy := range map[string]Policy{"static": NewStatic(hot), "lru": NewLRU()} {
		rows := &sampletest.Rows{Count: nodes, Dim: dim}
		budget := mem.NewBudget(limit)
		f, err := NewCached(context.Background(), rows, policy,
			CacheOptions{Bytes: limit - 2<<20, Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		batch, out, want := hot[:3000], make([]float32, 3000*dim), make([]float32, 3000*dim)
		for taken := int64(0); ; taken += 1 << 20 {
			for first := 0; first+len(batch) < nodes; first += 7000 {
				batch = hot[first : first+len(batch)]
				if err := f.Gather(context.Background(), batch, out); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if err := rows.Gather(context.Background(), batch, nil, want); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(out, want) {
					t.Fatalf("%s: wrong rows after %d bytes were taken", name, taken)
				}
			}
			if err := budget.Reserve("batches", 1<<20); err != nil {
				if taken < 12<<20 {
					t.Errorf("%s gives no more than %d bytes: %v", name, taken, err)
				}
				break
			}
		}
		hits := f.Stats().Hits
		if err := f.Gather(context.Background(), hot[:3000], out); err != nil {
			t.Fatal(err)
		}
		if f.Stats().Hits != hits {
			t.Errorf("%s has hits without memory", name)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
