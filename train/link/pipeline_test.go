package link

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/compute/decoder"
	"gdb/compute/kernel"
	"gdb/layout"
	"gdb/train/link/triples"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// mustTrainer makes a trainer of random rows that has no store, for steps.
func mustTrainer(t testing.TB, c Config) *trainer {
	t.Helper()
	const entities, relations = 50, 3
	tr := &trainer{cfg: c, pool: kernel.NewPool(c.Threads), data: &data{entities: entities,
		relations: relations}}
	var err error
	if tr.model, err = newModel(&tr.cfg, entities, relations, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.model.Close(); err != nil {
			t.Error(err)
		}
	})
	tr.model.init(1, tr.pool)
	dec, err := decoder.New(c.Decoder, c.Dim, decoder.Options{Norm: c.Norm})
	if err != nil {
		t.Fatal(err)
	}
	tr.stepper = newStepper(&tr.cfg, dec, tr.pool, tr.model.relations, joins{count: relations}, nil)
	tr.stepper.opt.rate = float32(c.LR)
	tr.stepper.use(&triples.Part{Spans: []triples.Span{{Count: entities}}}, tr.model.entities)
	return tr
}

// randomBatch has some edges of mustTrainer's graph.
func randomBatch(r *rand.Rand) (edges []triples.Triple) {
	for range 1 + r.IntN(12) {
		edges = append(edges, triples.Triple{Head: uint32(r.IntN(50)), Tail: uint32(r.IntN(50)),
			Relation: uint32(r.IntN(3))})
	}
	return edges
}

// pipelineSettings are steps that read and update in all ways.
func pipelineSettings() map[string]Config {
	adagrad, adam, chunked, batch := circleConfig("distmult"), circleConfig("complex"),
		circleConfig("rotate"), circleConfig("transe")
	adam.Optimizer, adam.Regularizer, adam.RegularizerWeight = "adam", setting.RegularizerN3, 0.1
	chunked.NegativeSampling, chunked.Dropout = setting.NegativesChunked, 0.2
	batch.NegativeSampling, batch.Reciprocal = setting.NegativesBatch, true
	few := circleConfig("distmult")
	few.Negatives = 2
	pairs := few
	pairs.Negatives, pairs.Reciprocal = 1, true
	own := pairs
	own.NegativeSampling = setting.NegativesEdge
	return map[string]Config{"adagrad": adagrad, "adam": adam, "chunked": chunked, "batch": batch,
		"few": few, "pairs": pairs, "pairs of their own": own}
}

// plainSteps takes steps one after the other on rows that lack the last updates, at most staleness
// of them: the specification of a pipeline. It returns the losses.
func plainSteps(t *testing.T, tr *trainer, batches [][]triples.Triple,
	staleness int) (all []float64) {
	var updates []*stepper
	update := func() {
		if err := updates[0].how.update(&tr.stepper.opt); err != nil {
			t.Fatal(err)
		}
		updates = updates[1:]
	}
	for i, edges := range batches {
		for len(updates) > staleness {
			update()
		}
		s := newStepper(&tr.cfg, tr.stepper.dec, tr.pool, tr.model.relations,
			joins{count: uint32(tr.data.relations)}, nil)
		s.held = &held{}
		s.learned, s.table, s.neg = tr.stepper.learned, tr.stepper.table, tr.stepper.neg
		at, err := s.gather(edges, uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		loss, err := s.compute(at, uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		all, updates = append(all, loss), append(updates, s)
	}
	for len(updates) > 0 {
		update()
	}
	return all
}

// TestPipeline: a pipeline comes to the bits of steps on rows that lack the last updates, one after
// the other, whatever the threads, and without staleness to those of plain steps. No batch lacks
// more updates than it may.
func TestPipeline(t *testing.T) {
	for name, c := range pipelineSettings() {
		for _, staleness := range []int{0, 1, 3} {
			t.Run(fmt.Sprint(name, staleness), func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 2))
				batches := make([][]triples.Triple, 40)
				for i := range batches {
					batches[i] = randomBatch(r)
				}
				plain, exact := mustTrainer(t, c), mustTrainer(t, c)
				want := plainSteps(t, plain, batches, staleness)
				if staleness == 0 {
					for i, edges := range batches {
						loss, err := exact.stepper.sampled(edges, uint64(i))
						if err != nil || loss != want[i] {
							t.Fatalf("step %d: loss %v, want %v; %v", i, want[i], loss, err)
						}
					}
					sameModels(t, plain, exact)
				}
				for _, threads := range []int{1, 4} {
					tr := mustTrainer(t, c)
					got := pipelineSteps(t, tr, batches, staleness, threads)
					if !slices.Equal(got, want) {
						t.Errorf("losses %v, want %v", got, want)
					}
					sameModels(t, tr, plain)
				}
			})
		}
	}
}

// pipelineSteps takes steps in a pipeline, and returns the losses.
func pipelineSteps(t *testing.T, tr *trainer, batches [][]triples.Triple, staleness,
	threads int) (all []float64) {
	p := newPipeline(tr.stepper, staleness, threads)
	p.use(tr.stepper)
	for i, edges := range batches {
		s, err := p.step(edges, uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		if lacks := i - p.ended; lacks > staleness {
			t.Fatalf("batch %d lacks %d updates", i, lacks)
		}
		if s.edges > 0 {
			all = append(all, s.loss)
		}
	}
	for !p.empty() {
		s, err := p.end()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s.loss)
	}
	return all
}

// sameModels fails unless two models have the same bits.
func sameModels(t *testing.T, a, b *trainer) {
	t.Helper()
	tables := func(tr *trainer) (all []runs.Array) {
		for _, table := range []*Table{tr.model.entities, tr.model.relations} {
			for _, x := range append([][]float32{table.Values}, table.State...) {
				all = append(all, runs.Array{Values: x})
			}
		}
		return all
	}
	sameRows(t, "steps", tables(a), tables(b))
}

// TestStale: with staleness, in memory and past it, a run that is stopped and goes on has the bits
// of one that was not, whatever the threads, and ranks about as well as without.
func TestStale(t *testing.T) {
	exact := mustRun(t, mustCircle(t, true), circleConfig("complex"))
	for name, c := range map[string]Config{"memory": circleConfig("complex"),
		"disk": diskConfig("complex")} {
		t.Run(name, func(t *testing.T) {
			s := mustCircle(t, true)
			c.Staleness, c.Run, c.Batch = 2, "whole", 2
			if c.LR = 0.05; name == "disk" {
				c.Epochs = 8
			}
			res := mustRun(t, s, c)
			if name == "memory" && math.Abs(res.Test.MRR-exact.Test.MRR) > 0.15 {
				t.Errorf("MRR %.3f, without staleness %.3f", res.Test.MRR, exact.Test.MRR)
			}
			whole := c
			c.Run = "parts"
			mustStop(t, s, &c)
			if name == "disk" {
				sameDisk(t, s, s, &c, &whole)
			} else {
				sameRows(t, "a stopped run", lastRows(t, s, c.Run), lastRows(t, s, whole.Run))
			}
		})
	}
}

// mustStop runs a training that is stopped once, in its second epoch, and goes on with other
// threads.
func mustStop(t *testing.T, s *layout.Store, c *Config) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := Run(ctx, s, mustDevice(t), *c, func(e run.Event) {
		if e.Progress != nil && e.Progress.Epoch == 2 && e.Progress.Batch > 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c.Resume, c.Threads = c.Run, 3
	mustRun(t, s, *c)
}
