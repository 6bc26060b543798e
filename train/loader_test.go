package train

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"gdb/layout"
	"gdb/sample"
	"gdb/train/runs"
)

// epochOf loads one epoch, trains on it and returns the mean loss over seeds and what was sampled.
func epochOf(t *testing.T, l *Loader) (loss float64, nodes []sample.NodeID, x []float32) {
	t.Helper()
	rows := 0
	for {
		b, err := l.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return loss / float64(rows), nodes, x
		}
		if err != nil {
			t.Fatal(err)
		}
		nodes, x = append(nodes, b.Dense.NodeIDs...), append(x, b.X...)
		labeled := 0
		for _, c := range b.Labels {
			if c >= 0 {
				labeled++
			}
		}
		mean, err := l.Step(b)
		if err != nil {
			t.Fatal(err)
		}
		loss, rows = loss+mean*float64(labeled), rows+labeled
		b.Release()
	}
}

func TestLoaderTrainsAsRunDoes(t *testing.T) {
	for _, cache := range []string{"auto", "lru", "belady"} {
		t.Run("cache="+cache, func(t *testing.T) { loaderTrainsAsRunDoes(t, cache) })
	}
}

func loaderTrainsAsRunDoes(t *testing.T, cache string) {
	s, dev := mustBuild(t, planted(false)), mustDevice(t)
	cfg := testConfig()
	cfg.Epochs, cfg.Cache = 2, cache
	if cache != "auto" {
		cfg.FeatureCache = 16 << 10 // not all
	}
	var want []runs.Epoch
	_, err := Run(context.Background(), s, dev, cfg, func(e Event) {
		if e.Epoch != nil {
			want = append(want, *e.Epoch)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := OpenLoader(context.Background(), s, dev, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i, rec := range want {
		loss, _, _ := epochOf(t, l)
		st := l.Stats()
		if math.Abs(loss-rec.Loss) > 1e-6 || st.Batches != rec.Batches ||
			st.Edges != rec.Sampled || st.Nodes != rec.Nodes {
			t.Errorf("epoch %d: loss %g and %+v, the run has %+v", i, loss, st, rec)
		}
		if st.Time <= 0 || st.Requests != st.Nodes {
			t.Errorf("epoch %d: %+v", i, st)
		}
	}
}

func TestLoaderWithOtherReaders(t *testing.T) {
	s, dev, ctx := mustBuild(t, planted(true)), mustDevice(t), context.Background()
	cfg := testConfig()
	own, err := OpenLoader(ctx, s, dev, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	topo, err := s.Topology(ctx, dev, layout.In, layout.TopologyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer topo.Close()
	rows, err := s.Rows(ctx, dev, s.Meta().Features[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	other, err := OpenLoaderFrom(ctx, s, dev, cfg, Readers{Topology: topo,
		Features: sample.NewDirect(rows)})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for range 2 {
		_, nodes, x := epochOf(t, own)
		_, nodes2, x2 := epochOf(t, other)
		if !slices.Equal(nodes, nodes2) || !slices.Equal(x, x2) {
			t.Error("other readers gave other batches")
		}
	}
	if st := other.Stats(); st.Hits != 0 || st.Requests != st.Nodes || st.Gather <= 0 {
		t.Errorf("%+v", st)
	}
}

func TestLoaderClosesInTheMiddle(t *testing.T) {
	s, dev := mustBuild(t, planted(false)), mustDevice(t)
	l, err := OpenLoader(context.Background(), s, dev, testConfig())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if names, err := s.FS().List(s.Path("runs")); err == nil && len(names) > 0 {
		t.Errorf("runs %v were left", names)
	}
}
