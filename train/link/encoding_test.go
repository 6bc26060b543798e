package link

import (
	"context"
	"math"
	"testing"

	"gdb/train/runs"
	"gdb/train/setting"
)

// TestEncodedInBuffer: with all partitions in memory, whole lists of the buffer give the same
// vectors as the lists of the store, and the rows of a batch belong to its nodes in the buffer.
func TestEncodedInBuffer(t *testing.T) {
	for _, name := range []string{"sage", "gat"} {
		t.Run(name, func(t *testing.T) {
			c := diskConfig("distmult")
			c.Encoder, c.Fanout, c.PartitionsInMemory, c.LogicalPartitions = name, "all,all", 8, 1
			tr := newTrainer(mustCircle(t, true), mustDevice(t), c)
			ctx := context.Background()
			defer func() {
				if err := tr.Close(); err != nil {
					t.Error(err)
				}
			}()
			tr.Dir = runs.Open(tr.store, "encoded")
			lock, err := tr.Dir.Create()
			if err != nil {
				t.Fatal(err)
			}
			tr.CloseLater(lock)
			if tr.Spec, err = tr.check(); err != nil {
				t.Fatal(err)
			}
			for _, do := range []func(context.Context) error{tr.open, tr.Begin, tr.Restored} {
				if err := do(ctx); err != nil {
					t.Fatal(err)
				}
			}
			all, err := tr.scored(ctx)
			if err != nil {
				t.Fatal(err)
			}
			p, err := tr.source.Load(ctx, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			e := tr.stepper.enc
			for _, span := range p.Spans {
				for row := span.Row; row < span.Row+span.Count; row++ {
					sameEncoded(t, tr, e, all, row)
				}
			}
		})
	}
}

// sameEncoded fails unless a row of the buffer is encoded as its entity is.
func sameEncoded(t *testing.T, tr *trainer, e *encoding, all []float32, row uint32) {
	t.Helper()
	got, err := e.encoder.Batch(t.Context(), 1, []uint32{e.near.Number(row)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dim := tr.cfg.Dim
	entity := -1 // the one whose learned vector the row has
	for i := range tr.data.entities {
		same := true
		for k, v := range e.learned.row(uint32(i)) {
			same = same && v == tr.source.rows().row(row)[k]
		}
		if same {
			entity = i
		}
	}
	if entity < 0 {
		t.Fatalf("row %d is of no entity", row)
	}
	for k, v := range got {
		if want := all[entity*dim+k]; math.Abs(float64(v-want)) > 1e-5*(1+math.Abs(float64(want))) {
			t.Fatalf("value %d of entity %d is %v, want %v", k, entity, v, want)
		}
	}
	g, err := e.encoder.Step(make([]float32, dim), 1)
	if err != nil {
		t.Fatal(err)
	}
	if g.At[0] != row && len(g.At) == 1 {
		t.Errorf("the gradient is of row %d, want %d", g.At[0], row)
	}
}

// TestEncodedOnDisk: a run with an encoder over a buffer answers as one in memory: its best vectors
// are in the checkpoint. Types of edges are not in the buffer.
func TestEncodedOnDisk(t *testing.T) {
	s := mustCircle(t, true)
	c := diskConfig("distmult")
	c.Encoder, c.Fanout, c.Run, c.Epochs, c.EvalEvery = "sage", "3", "sage", 4, 2
	res := mustRun(t, s, c)
	trained, err := Open(t.Context(), s, mustDevice(t), "sage", Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer trained.Close()
	e, err := trained.Evaluate(t.Context(), "test", 0)
	if err != nil {
		t.Fatal(err)
	}
	if e.MRR != res.Test.MRR {
		t.Errorf("MRR is %v, was %v", e.MRR, res.Test.MRR)
	}
	c.Encoder = "rgcn"
	if err := c.Validate(); err == nil {
		t.Error("rgcn over a buffer is not refused")
	}
	if c.Order = setting.OrderAuto; c.Validate() != nil {
		t.Error("rgcn is refused where the order is open")
	}
}
