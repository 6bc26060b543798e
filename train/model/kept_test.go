package model

import (
	"slices"
	"testing"

	"gdb/compute/backend"
)

// TestFeaturesAreKept: a step that leaves the features to others computes the same, to the bit, and
// one that does not overwrites them in some model.
func TestFeaturesAreKept(t *testing.T) {
	g := loadGoldenModels(t)
	overwritten := 0
	for i := range g.Cases {
		c := &g.Cases[i]
		b := &g.Batches[len(c.Dims)-2]
		t.Run(c.String(), func(t *testing.T) {
			step := func(keep bool) (logits, grads, x []float32) {
				be := openCPU(t, 2)
				s := c.spec(t)
				s.KeepFeatures, s.Dropout = keep, 0.5
				m, err := New(be, s, true, nil)
				if err == nil {
					err = be.Begin()
				}
				if err != nil {
					t.Fatal(err)
				}
				m.Params().Init(be, 3)
				x = slices.Clone(b.X)
				out, err := m.Forward(b.dense(), x, Step{Train: true, Seed: 1})
				if err != nil {
					t.Fatal(err)
				}
				logits = values(be, out)
				backend.SoftmaxCrossEntropy(be, m.GradLogits(), out, backend.Tensor{},
					g.Labels)
				m.Backward()
				if err := be.Err(); err != nil {
					t.Fatal(err)
				}
				return logits, values(be, m.Params().G), x
			}
			logits, grads, x := step(false)
			keptLogits, keptGrads, kept := step(true)
			if !slices.Equal(kept, b.X) {
				t.Error("the features are overwritten")
			}
			if !slices.Equal(logits, keptLogits) || !slices.Equal(grads, keptGrads) {
				t.Error("a step that keeps the features gives other results")
			}
			if !slices.Equal(x, b.X) {
				overwritten++
			}
		})
	}
	if overwritten == 0 {
		t.Error("no step overwrites the features")
	}
}
