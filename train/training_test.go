package train

import (
	"errors"
	"io"
	"math"
	"testing"

	"gdb/internal/mem"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/run"
	"gdb/train/runs"
)

// trainedEpoch trains on the batches of an epoch, and returns the mean loss over seeds, what was
// sampled and what it took.
func trainedEpoch(t *testing.T, e *loader.Epoch, step func(*sample.Batch) (float64, error)) (
	loss float64, nodes []sample.NodeID, edges uint64, sums loader.Sums) {
	t.Helper()
	rows := 0
	for {
		b, err := e.Next(t.Context())
		if errors.Is(err, io.EOF) {
			e.Lap(&sums)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			return loss / float64(rows), nodes, edges, sums
		}
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, b.Dense.NodeIDs...)
		edges += uint64(len(b.Dense.Nbrs))
		labeled := 0
		for _, c := range b.Labels {
			if c >= 0 {
				labeled++
			}
		}
		mean, err := step(b)
		if err != nil {
			t.Fatal(err)
		}
		loss, rows = loss+mean*float64(labeled), rows+labeled
		b.Release()
	}
}

// TestTrainingIsARun: a training without its run has the losses and the batches of the run.
func TestTrainingIsARun(t *testing.T) {
	for _, cache := range []string{"auto", "sieve", "belady"} {
		t.Run("cache="+cache, func(t *testing.T) { trainingIsARun(t, cache) })
	}
}

func trainingIsARun(t *testing.T, cache string) {
	s, dev := mustBuild(t, planted(false)), mustDevice(t)
	cfg := testConfig()
	cfg.Epochs, cfg.Cache = 2, cache
	if cache != "auto" {
		cfg.FeatureCache = 16 << 10 // not all
	}
	var want []runs.Epoch
	_, err := Run(t.Context(), s, dev, cfg, func(e run.Event) {
		if e.Epoch != nil {
			want = append(want, *e.Epoch.(*runs.Epoch))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), s, dev, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i, rec := range want {
		e, err := l.Epoch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		loss, nodes, edges, st := trainedEpoch(t, e, l.Step)
		if math.Abs(loss-rec.Loss) > 1e-6 || edges != rec.Sampled ||
			uint64(len(nodes)) != rec.Nodes {
			t.Errorf("epoch %d: loss %g of %d nodes and %d edges, the run has %+v", i, loss,
				len(nodes), edges, rec)
		}
		if st.Time <= 0 || st.Requests != uint64(len(nodes)) {
			t.Errorf("epoch %d: %+v", i, st)
		}
	}
}

// TestStepperIsARun: the steps of a model on batches of other readers have the losses of the run.
func TestStepperIsARun(t *testing.T) {
	s, dev, cfg := mustBuild(t, planted(false)), mustDevice(t), testConfig()
	cfg.Epochs = 2
	var want []float64
	_, err := Run(t.Context(), s, dev, cfg, func(e run.Event) {
		if e.Epoch != nil {
			want = append(want, e.Epoch.(*runs.Epoch).Loss)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	src := loader.NewSource(s, dev, mem.NewBudget(0))
	seeds, err := loader.TrainNodes(t.Context(), s, "", src.Budget)
	if err == nil {
		err = src.OpenGraph(t.Context(), topology.Options{})
	}
	err = errors.Join(err, src.OpenRows(t.Context()), src.OpenLabels(t.Context()))
	if err == nil {
		err = src.OpenFeatures(t.Context(), loader.Cache{Policy: "none"})
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewStepper(cfg, s.Meta(), src.Budget)
	if err != nil {
		t.Fatal(err)
	}
	batches := loader.New(src, loader.Config{Seeds: seeds, Batch: cfg.Batch, Fanout: cfg.Fanout,
		Seed: cfg.Seed, Ready: 1})
	for i, loss := range want {
		e, err := batches.Epoch(t.Context(), uint64(i), 0)
		if err != nil {
			t.Fatal(err)
		}
		got, nodes, _, st := trainedEpoch(t, e, l.Step)
		if math.Abs(got-loss) > 1e-6 {
			t.Errorf("epoch %d: loss %g, the run has %g", i, got, loss)
		}
		if st.Hits != 0 || st.Requests != uint64(len(nodes)) || st.Gather <= 0 {
			t.Errorf("epoch %d: %+v", i, st)
		}
	}
	if err := errors.Join(batches.Close(), l.Close(), src.Close()); err != nil {
		t.Error(err)
	}
}

// TestTrainingClosesInTheMiddle: no run is left of a training that ends in an epoch.
func TestTrainingClosesInTheMiddle(t *testing.T) {
	s, dev := mustBuild(t, planted(false)), mustDevice(t)
	l, err := Open(t.Context(), s, dev, testConfig())
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.Epoch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
	if err := errors.Join(e.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	if names, err := s.FS().List(s.Path("runs")); err == nil && len(names) > 0 {
		t.Errorf("runs %v were left", names)
	}
}
