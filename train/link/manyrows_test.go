package link

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/compute/kernel"
	"gdb/internal/rng"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

// TestFewOfManyRows: steps that go edge by edge change each row once, where workers share hundreds
// of entities and relations: they give what steps by products of matrices give.
func TestFewOfManyRows(t *testing.T) {
	const entities, relations, batch = 300, 150, 200
	r := rand.New(rand.NewPCG(6, 4))
	var train []triples.Triple
	for i := range 3 * batch {
		train = append(train, triples.Triple{Head: uint32(i) % entities,
			Relation: r.Uint32N(relations), Tail: r.Uint32N(entities)})
	}
	for name, c := range fewConfigs() {
		c.Optimizer, c.Batch = "adagrad", batch
		var losses [2]float64
		var models [2]*model
		for k, products := range []bool{false, true} {
			own := c
			own.FilterNegatives = products // that nothing is known of
			m, err := newModel(&own, entities, relations, nil)
			if err != nil {
				t.Fatal(err)
			}
			m.init(1, nil)
			st := newStepper(&own, m.dec, kernel.NewPool(2), m.relations, joins{count: relations},
				triples.NewIndex(nil))
			p, err := newInMemory(train, m.entities, nil).Load(context.Background(), 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			st.use(p, m.entities)
			st.opt.rate = 0.1
			if _, few := st.how.(*byEdge); few == products {
				t.Fatalf("%s: edge by edge: %v", name, few)
			}
			for step := range 3 {
				edges := slices.Clone(train[step*batch:][:batch])
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

// TestNegativesOfEachEdge: where each query of a batch has negatives of its own, these are drawn
// one after the other, so that a seed gives the same ones.
func TestNegativesOfEachEdge(t *testing.T) {
	c := circleConfig("distmult")
	c.NegativeSampling, c.Negatives = setting.NegativesEdge, 4
	st := mustTrainer(t, c).stepper
	edges := randomBatch(rand.New(rand.NewPCG(1, 2)))
	d := &drawn{}
	for range 2 { // the second time in memory that is used again
		st.drawAll(d, edges, 77)
		draw := rng.NewStream(77)
		want := st.neg.drawSome(nil, &draw, 2*len(edges)*4, triples.Query{})
		if len(d.draws) != 2*len(edges) || !slices.Equal(slices.Concat(d.draws...), want) {
			t.Errorf("%d draws of %d negatives, want %d of %d: %d", len(d.draws), len(d.all),
				2*len(edges), len(want), d.draws)
		}
	}
}
