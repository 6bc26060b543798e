package sample

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/sample/rowcache"
	"gdb/sample/sampletest"
)

// TestPipelineWaitsForRoom runs epochs with less and less memory, down to that of the largest batch
// alone: batches are the same, however stages come upon one another. With less there is an error.
func TestPipelineWaitsForRoom(t *testing.T) {
	e := newTestEpoch(t)
	want := hashes(t, mustPipeline(t, context.Background(), e.config(2)), 0)
	peak, least := e.budget.Peak(), int64(0)
	for i := range e.order.Batches() {
		e.budget = mem.NewBudget(0)
		c := e.config(1)
		c.StartBatch, c.EndBatch = i, i+1
		hashes(t, mustPipeline(t, context.Background(), c), i)
		least = max(least, e.budget.Peak())
	}
	if least > peak/2 {
		t.Fatalf("a batch takes %d bytes, of %d of an epoch: nothing is tested", least, peak)
	}
	for i := range int64(60) {
		e.budget = mem.NewBudget(least + (peak-least)*(i%4)/4)
		c := e.config(1 + int(i/4)%4)
		c.Ready = int(i/16) % 3
		c.InTurn = i%5 == 4
		got := hashes(t, mustPipeline(t, context.Background(), c), 0)
		if !slices.Equal(got, want) {
			t.Fatalf("run %d: with %d bytes, of %d, batches are others", i, e.budget.Limit(), peak)
		}
	}
	e.budget = mem.NewBudget(least / 2)
	p := mustPipeline(t, context.Background(), e.config(2))
	for {
		b, err := p.Next(context.Background())
		var full *mem.LimitError
		if errors.As(err, &full) {
			return
		}
		if err != nil {
			t.Fatalf("an epoch ran with less than a batch takes, then %v", err)
		}
		b.Release()
	}
}

// TestCacheGivesWay takes the memory of caches away, bit by bit: rows stay right, and in the end
// there are no hits.
func TestCacheGivesWay(t *testing.T) {
	const nodes, dim, limit = 40000, 64, 16 << 20
	hot := make([]NodeID, nodes)
	for i := range hot {
		hot[i] = NodeID(i)
	}
	for name, policy := range map[string]rowcache.Policy{"static": rowcache.NewStatic(hot),
		"sieve": rowcache.NewSIEVE()} {
		rows := &sampletest.Rows{Count: nodes, Dim: dim}
		budget := mem.NewBudget(limit)
		f, err := rowcache.New(context.Background(), rows, policy,
			rowcache.Options{Bytes: limit - 2<<20, Budget: budget})
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
