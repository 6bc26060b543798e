package link

import (
	"context"
	"math"
	"slices"
	"testing"

	"gdb/layout"
	"gdb/train/runs"
	"gdb/train/setting"
)

// mustBegin opens a training and begins it.
func mustBegin(t *testing.T, s *layout.Store, c Config) *trainer {
	t.Helper()
	tr := newTrainer(s, mustDevice(t), c)
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	tr.Dir = runs.Open(tr.store, c.Run)
	lock, err := tr.Dir.Create()
	if err != nil {
		t.Fatal(err)
	}
	tr.CloseLater(lock)
	if tr.Spec, err = tr.check(); err != nil {
		t.Fatal(err)
	}
	for _, do := range []func(context.Context) error{tr.open, tr.Begin, tr.Restored} {
		if err := do(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return tr
}

// TestEncodedFew: with an encoder, steps that go edge by edge give what steps by products of
// matrices give.
func TestEncodedFew(t *testing.T) {
	c := circleConfig("distmult")
	c.Encoder, c.Fanout, c.Negatives, c.Reciprocal = "sage", "3", 3, true
	c.Regularizer, c.RegularizerWeight = setting.RegularizerN3, 0.01
	var trainers [2]*trainer
	var losses [2]float64
	for k := range trainers {
		tr := mustBegin(t, mustCircle(t, true), c)
		p, err := tr.source.Load(t.Context(), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		st := tr.stepper
		st.use(p, tr.source.rows())
		if _, few := st.how.(*byEdge); !few {
			t.Fatal("the step does not go edge by edge")
		}
		if k == 1 {
			st.how, st.side.sorts = st.side, true
		}
		st.opt.rate = 0.1
		for key := range uint64(3) {
			edges := slices.Clone(p.Edges[key*9:][:9])
			if losses[k], err = st.sampled(edges, key); err != nil {
				t.Fatal(err)
			}
		}
		trainers[k] = tr
	}
	compareTables(t, "entities", trainers[0].model.entities, trainers[1].model.entities)
	compareTables(t, "relations", trainers[0].model.relations, trainers[1].model.relations)
	if math.Abs(losses[0]-losses[1]) > 1e-5*losses[1] {
		t.Errorf("losses %v", losses)
	}
}

// TestEpochIsCounted: the record of each epoch counts what was in it, and nothing of the one
// before.
func TestEpochIsCounted(t *testing.T) {
	c := circleConfig("distmult")
	c.EvalEvery, c.FewCheckpoints = 1000, true
	tr := mustBegin(t, mustCircle(t, true), c)
	edges := tr.data.edges
	for epoch := 1; epoch < 4; epoch++ {
		if err := tr.Steps(t.Context()); err != nil {
			t.Fatal(err)
		}
		if tr.pos.Loss <= 0 || tr.pos.Time <= 0 {
			t.Errorf("a loss of %g in %g s", tr.pos.Loss, tr.pos.Time)
		}
		loss := tr.pos.Loss / float64(edges)
		of, err := tr.FinishEpoch(t.Context())
		rec, ok := of.(*runs.LinkEpoch)
		if err != nil || !ok {
			t.Fatal(of, err)
		}
		if rec.Epoch != epoch || int(rec.Edges) != edges || rec.Loss != loss ||
			rec.Batches != (edges+c.Batch-1)/c.Batch || int(rec.Scores) != 2*edges*21 {
			t.Errorf("%+v of %d edges, a loss of %g", rec, edges, loss)
		}
		if p := tr.pos; int(p.Epoch) != epoch || p.Part != 0 || p.Batch != 0 || p.Loss != 0 ||
			p.Edges != 0 || p.Batches != 0 || p.Scores != 0 || p.Time != 0 || p.Wait != 0 {
			t.Errorf("after epoch %d the next begins at %+v", epoch, p)
		}
	}
}

// TestEncodedInBuffer: with all partitions in memory, whole lists of the buffer give the same
// vectors as the lists of the store, and the rows of a batch belong to its nodes in the buffer.
func TestEncodedInBuffer(t *testing.T) {
	for _, name := range []string{"sage", "gat"} {
		t.Run(name, func(t *testing.T) {
			c := diskConfig("distmult")
			c.Encoder, c.Fanout, c.PartitionsInMemory, c.LogicalPartitions = name, "all,all", 8, 1
			tr, ctx := mustBegin(t, mustCircle(t, true), c), t.Context()
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
