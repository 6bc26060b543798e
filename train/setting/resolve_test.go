package setting

import (
	"testing"

	"gdb/kv"
)

// TestResolve: a training ends by steps, whatever an epoch is, and counts are scaled.
func TestResolve(t *testing.T) {
	for _, c := range []struct {
		train            uint64
		epochs, patience int
	}{{140, 300, 30}, {10_000, 300, 5}, {50_000, 80, 5}, {1_200_000, 30, 5}} {
		m := &kv.Meta{Splits: []kv.SplitMeta{{Name: "train", Count: c.train}},
			Features: []kv.RowsMeta{{Name: "words"}}}
		m.Stats.CountFeatures = []string{"words"}
		s := Default()
		s.Resolve(m, "")
		if s.Epochs != c.epochs || s.Patience != c.patience || s.Normalize != NormalizeRow {
			t.Errorf("%d nodes to train: %d epochs, patience %d, normalize %s", c.train, s.Epochs,
				s.Patience, s.Normalize)
		}
	}
	m := &kv.Meta{Features: []kv.RowsMeta{{Name: "x"}}}
	s := Default()
	s.Epochs = 7
	s.Resolve(m, "")
	if s.Epochs != 7 || s.Patience != 0 || s.Normalize != "auto" {
		t.Errorf("given 7 epochs: %d, patience %d, normalize %s", s.Epochs, s.Patience,
			s.Normalize)
	}
}

// TestResolvePatience: of two classes of which one is rare a training is patient for longer; a
// patience that is given stays.
func TestResolvePatience(t *testing.T) {
	for _, c := range []struct {
		counts      []uint64
		given, want int
	}{{[]uint64{2000, 8000}, 0, 30}, {[]uint64{4000, 6000}, 0, 6}, {[]uint64{2000, 8000}, 7, 7},
		{[]uint64{100, 5000, 5000}, 0, 6}} {
		m := &kv.Meta{Splits: []kv.SplitMeta{{Name: "train", Count: 5000}},
			Labels: &kv.LabelsMeta{Kind: "class", ClassCounts: c.counts}}
		s := Default()
		s.Patience = c.given
		if s.Resolve(m, m.Labels.Kind); s.Patience != c.want {
			t.Errorf("classes of %d nodes, patience %d given: %d, want %d", c.counts, c.given,
				s.Patience, c.want)
		}
	}
}

// TestResolveDropout: classes have dropout, and numbers have none, if it is left to the labels.
func TestResolveDropout(t *testing.T) {
	for kind, want := range map[string]float64{"class": 0.5, "multi": 0.5, "target": 0} {
		m := &kv.Meta{Features: []kv.RowsMeta{{Name: "x"}}, Labels: &kv.LabelsMeta{Kind: kind,
			Classes: []string{"a"}}}
		s := Default()
		if s.Resolve(m, kind); s.Dropout != want {
			t.Errorf("labels of kind %s: dropout %g, want %g", kind, s.Dropout, want)
		}
		s.Dropout = 0.25
		if s.Resolve(m, kind); s.Dropout != 0.25 {
			t.Errorf("labels of kind %s: dropout %g was given as 0.25", kind, s.Dropout)
		}
	}
}
