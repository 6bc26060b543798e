package link

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/train/setting"
)

// gradientSettings are steps of all decoders and all ways to draw negatives, of whose losses there
// are gradients everywhere.
func gradientSettings() map[string]Config {
	all := map[string]Config{}
	for _, name := range []string{"distmult", "complex", "transe", "rotate"} {
		c := circleConfig(name)
		c.Dim, c.Norm = 4, 2
		all[name] = c
		c.Reciprocal, c.Loss, c.NegativeSampling = true, "logistic", setting.NegativesChunked
		all[name+" reciprocal"] = c
	}
	c := circleConfig("distmult")
	c.Dim = 1
	all["one column"] = c
	c.Dim, c.NegativeSampling, c.Dropout = 3, setting.NegativesBatch, 0.3
	all["batch, dropped out"] = c
	c.NegativeSampling, c.Negatives = setting.NegativesUniform, 3
	all["few, dropped out"] = c
	c.Dim, c.Dropout, c.Reciprocal = 1, 0, true
	all["few, one column"] = c
	c.NegativeSampling, c.Dim = setting.NegativesEdge, 2
	all["of each edge"] = c
	return all
}

// stepGradients returns the gradients of all rows that a step leaves; those that it does not read
// have none.
func stepGradients(tr *trainer) (entities, relations []float32) {
	s := tr.stepper
	entities = make([]float32, len(tr.model.entities.Values))
	relations = make([]float32, len(tr.model.relations.Values))
	sums, rels := s.sums, s.dRelations
	if side, ok := s.how.(*bySide); ok {
		t := &side.now
		sums, rels = make([]float32, t.dEntities.Len()), make([]float32, t.dRelations.Len())
		s.be.Read(sums, t.dEntities)
		s.be.Read(rels, t.dRelations)
	}
	for i, row := range s.rows.Numbers {
		copy(entities[int(row)*s.cfg.Dim:], sums[i*s.cfg.Dim:][:s.cfg.Dim])
	}
	for i, row := range s.rel.Numbers {
		d := s.relations.Dim
		copy(relations[int(row)*d:], rels[i*d:][:d])
	}
	return entities, relations
}

// TestStepGradients holds the gradients of a step against differences of its loss.
func TestStepGradients(t *testing.T) {
	const key, by = 5, 1.0 / 128
	for name, c := range gradientSettings() {
		tr := mustTrainer(t, c)
		s, r := tr.stepper, rand.New(rand.NewPCG(3, 4))
		for _, table := range []*Table{tr.model.entities, tr.model.relations} {
			for i := range table.Values {
				table.Values[i] = 2*r.Float32() - 1
			}
		}
		edges := slices.Concat(randomBatch(r), randomBatch(r), randomBatch(r))
		s.draw(s.drawn, edges, key)
		loss := func() float64 {
			t.Helper()
			of, err := s.read()
			if err != nil {
				t.Fatal(err)
			}
			sum, err := s.compare(of, key)
			if err != nil {
				t.Fatal(err)
			}
			return sum
		}
		loss()
		s.how.sum(len(edges))
		entities, relations := stepGradients(tr)
		some := 0
		check := func(what string, values, grads []float32) {
			for range 60 {
				i := r.IntN(len(values))
				was := values[i]
				values[i] = was + by
				more := loss()
				values[i] = was - by
				less := loss()
				values[i] = was
				want := (more - less) / (2 * by)
				if math.Abs(want-float64(grads[i])) > 2e-4+0.01*math.Abs(want) {
					t.Errorf("%s: the gradient of value %d of %s is %g, want %g", name, i, what,
						grads[i], want)
				}
				if math.Abs(want) > 2e-3 {
					some++
				}
			}
		}
		check("entities", tr.model.entities.Values, entities)
		check("relations", tr.model.relations.Values, relations)
		if some < 40 {
			t.Errorf("%s: %d values of 120 have gradients", name, some)
		}
	}
}
