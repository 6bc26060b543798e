package link

import (
	"context"
	"math"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/train/kernel"
	"gdb/train/link/triples"
	"gdb/train/runs"
)

// fewConfigs are settings whose steps go edge by edge.
func fewConfigs() map[string]Config {
	all := map[string]Config{}
	for _, name := range []string{"distmult", "complex"} {
		c := circleConfig(name)
		c.Negatives, c.Dropout, c.Reciprocal = 3, 0.2, true
		c.Regularizer, c.RegularizerWeight = runs.RegularizerN3, 0.001
		all[name+" with few negatives"] = c
	}
	c := circleConfig("distmult")
	c.Negatives, c.NegativeSampling, c.Loss = 1, runs.NegativesDegree, "logistic"
	all["one negative by degree"] = c
	c.NegativeSampling, c.Loss, c.Reciprocal = runs.NegativesUniform, "softmax", true
	c.Regularizer, c.RegularizerWeight = runs.RegularizerN3, 0.001
	all["one negative"] = c
	c.NegativeSampling = runs.NegativesEdge
	all["one negative of each edge"] = c
	c = circleConfig("complex")
	c.NegativeSampling, c.Negatives = runs.NegativesEdge, 12
	all["negatives of each edge"] = c
	c = circleConfig("distmult")
	c.NegativeSampling, c.Negatives, c.Loss, c.Reciprocal = runs.NegativesEdge, 4, "logistic", true
	c.Regularizer, c.RegularizerWeight = runs.RegularizerL2, 0.001
	all["negatives of each edge, logistic"] = c
	return all
}

// TestFew holds steps that go edge by edge against those by products of matrices: rows are the same
// but for rounding. The latter are had with negatives to be filtered that nothing is known of, and
// take edges as they are: these are sorted here, since what is drawn depends on their order.
func TestFew(t *testing.T) {
	for name, c := range fewConfigs() {
		c.Optimizer = "adagrad"
		d, err := readData(context.Background(), mustCircle(t, true), mustDevice(t), &c,
			&mem.Budget{})
		if err != nil {
			t.Fatal(err)
		}
		var losses [2]float64
		var models [2]*model
		for k, filter := range []bool{false, true} {
			own := c
			own.FilterNegatives = filter
			m, err := newModel(&own, d.entities, d.relations, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			m.init(1, nil)
			st := newStepper(&own, m.dec, kernel.NewPool(2), m.relations, uint32(d.relations),
				triples.NewIndex(nil))
			p, err := NewMemory(d.train, m.entities).Part(context.Background(), 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			st.use(p)
			if st.opt.rate = 0.1; st.few == filter {
				t.Fatalf("%s: edge by edge: %v", name, st.few)
			}
			for step := range 5 {
				edges := slices.Clone(d.train[step*7:][:50-step]) // of which 32 are a part
				slices.SortStableFunc(edges, func(a, b triples.Triple) int {
					return int(a.Relation) - int(b.Relation)
				})
				if losses[k], err = st.sampled(edges, uint64(step)); err != nil {
					t.Fatal(err)
				}
			}
			models[k] = m
		}
		compareTables(t, name, models[0].entities, models[1].entities)
		compareTables(t, name, models[0].relations, models[1].relations)
		if math.Abs(losses[0]-losses[1]) > 1e-5*math.Abs(losses[1]) {
			t.Errorf("%s: losses %v", name, losses)
		}
		for _, m := range models {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func compareTables(t *testing.T, name string, got, want *Table) {
	t.Helper()
	for i, v := range want.Values {
		if math.Abs(float64(got.Values[i]-v)) > 1e-4*(1+math.Abs(float64(v))) {
			t.Fatalf("%s: value %d is %v, want %v", name, i, got.Values[i], v)
		}
	}
}
