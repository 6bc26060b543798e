package link

import (
	"context"
	"testing"

	"gdb/compute/kernel"
	"gdb/internal/rng"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

// BenchmarkFewSteps takes steps on a graph of the size of FB15k-237, whose ends are as skewed.
func BenchmarkFewSteps(b *testing.B) {
	const entities, relations, count = 14541, 237, 272115
	draws := rng.NewStream(1)
	skewed := func(n float64) uint32 {
		u := draws.Float64()
		return uint32(n * u * u * u)
	}
	edges := make([]triples.Triple, count)
	for i := range edges {
		edges[i] = triples.Triple{Head: skewed(entities), Relation: skewed(relations),
			Tail: skewed(entities)}
	}
	c := setting.DefaultLink("distmult")
	c.Dim, c.Negatives = 100, 1
	for _, c.NegativeSampling = range []string{setting.NegativesUniform, setting.NegativesEdge} {
		b.Run("negatives="+c.NegativeSampling, func(b *testing.B) {
			m, err := newModel(&c, entities, relations, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer m.Close()
			m.init(1, nil)
			c.FewCheckpoints = true
			t := newTrainer(nil, nil, c)
			t.model = m
			t.stepper = newStepper(&c, m.dec, kernel.NewPool(0), m.relations,
				joins{count: relations}, triples.NewIndex(nil))
			p, err := newInMemory(edges, m.entities, nil).Load(context.Background(), 0, 0)
			if err != nil {
				b.Fatal(err)
			}
			t.stepper.use(p, m.entities)
			t.stepper.opt.rate = 0.1
			for b.Loop() {
				if err := t.batches(context.Background(), p); err != nil {
					b.Fatal(err)
				}
				t.pos.Batch = 0
				t.pos.Epoch++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/edge")
		})
	}
}
