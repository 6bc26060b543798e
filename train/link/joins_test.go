package link

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/kv"
	"gdb/layout/live/livetest"
	"gdb/train/link/triples"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// firstItem is the first item of mustTyped's graph, whose nodes before it are users.
const firstItem = 20

// typedMeta is of users and items: relations 0 and 2 join users with items, relation 1 items with
// users.
func typedMeta() *kv.Meta {
	return &kv.Meta{Format: kv.TypedVersion, Nodes: 50, EdgeTypes: make([]string, 3),
		NodeTypes: []kv.NodeTypeMeta{{Name: "user", Nodes: firstItem},
			{Name: "item", First: firstItem, Nodes: 50 - firstItem}},
		Relations: []kv.RelationMeta{{Dst: 1}, {Src: 1}, {Dst: 1}}}
}

// mustTyped returns a trainer of mustTrainer's on nodes with types.
func mustTyped(t *testing.T, c Config) *trainer {
	t.Helper()
	tr := mustTrainer(t, c)
	s := newStepper(&tr.cfg, tr.stepper.dec, tr.pool, tr.model.relations,
		newJoins(typedMeta()), nil)
	s.use(&triples.Part{Spans: []triples.Span{{Count: 50}}, Edges: typedBatch(rand.New(
		rand.NewPCG(1, 1)), 90)}, tr.model.entities)
	tr.stepper = s
	return tr
}

// typedBatch has edges of mustTyped's graph.
func typedBatch(r *rand.Rand, n int) (edges []triples.Triple) {
	for range n {
		user, item := uint32(r.IntN(firstItem)), uint32(firstItem+r.IntN(50-firstItem))
		e := triples.Triple{Head: user, Relation: uint32(r.IntN(3)), Tail: item}
		if e.Relation == 1 {
			e.Head, e.Tail = item, user
		}
		edges = append(edges, e)
	}
	return edges
}

// typedSettings are steps with all ways to draw negatives.
func typedSettings() map[string]Config {
	all := map[string]Config{}
	for _, kind := range setting.NegativeSamplings {
		c := circleConfig("distmult")
		c.Dim, c.NegativeSampling, c.Negatives, c.DegreePower = 4, kind, 12, .5
		all[kind] = c
		c.Negatives = 3
		all[kind+", few"] = c
		c.Decoder, c.Norm, c.Reciprocal = "transe", 2, true
		all[kind+", few, distances"] = c
	}
	return all
}

// TestTypedDraws: negatives are of the type that a query asks for, and queries that share them ask
// for the same. The nodes that are drawn are all of that type.
func TestTypedDraws(t *testing.T) {
	for name, c := range typedSettings() {
		s := mustTyped(t, c).stepper
		seen := map[uint32]bool{}
		for key := range uint64(60) {
			s.draw(s.drawn, typedBatch(rand.New(rand.NewPCG(key, 2)), 30), key)
			shares := len(s.shares) - 1
			for i, draw := range s.draws {
				share := i % shares
				edges := s.edges[s.shares[share]:s.shares[share+1]]
				for _, e := range edges {
					answer := e.Tail
					if i >= shares {
						answer = e.Head
					}
					for _, drawn := range draw {
						seen[drawn] = true
						if drawn >= firstItem != (answer >= firstItem) {
							t.Fatalf("%s: node %d is compared with %d", name, answer, drawn)
						}
					}
				}
				want := (c.Negatives*len(edges) + s.neg.chunk(30) - 1) / s.neg.chunk(30)
				if c.NegativeSampling == setting.NegativesBatch {
					want = len(edges)
				}
				if len(edges) > s.neg.chunk(30) || len(edges) == 0 || len(draw) != want {
					t.Fatalf("%s: %d edges share %d negatives", name, len(edges), len(draw))
				}
			}
			if s.shares[shares] != 30 || len(s.draws) != 2*shares {
				t.Fatalf("%s: shares at %v, %d draws", name, s.shares, len(s.draws))
			}
		}
		if len(seen) < 49 { // one has no edge
			t.Errorf("%s: %d nodes of 50 were drawn", name, len(seen))
		}
	}
}

// TestTypedSteps: the loss and the gradients of a step on nodes with types are the means of what
// steps on the edges of each share alone have.
func TestTypedSteps(t *testing.T) {
	const n, key = 30, 7
	for name, c := range typedSettings() {
		tr := mustTyped(t, c)
		s := tr.stepper
		s.draw(s.drawn, typedBatch(rand.New(rand.NewPCG(5, 6)), n), key)
		whole := *s.drawn
		loss, entities, relations := stepOn(t, tr)
		var sum float64
		sums := [2][]float32{make([]float32, len(entities)), make([]float32, len(relations))}
		shares := len(whole.shares) - 1
		for i := range shares {
			edges := slices.Clone(whole.edges[whole.shares[i]:whole.shares[i+1]])
			tr := mustTrainer(t, c)
			s := newStepper(&tr.cfg, tr.stepper.dec, tr.pool, tr.model.relations,
				joins{count: 3}, nil)
			s.use(&triples.Part{Spans: []triples.Span{{Count: 50}}, Edges: edges},
				tr.model.entities)
			s.how, s.neg.kind, tr.stepper = s.side, setting.NegativesUniform, s
			s.edges, s.shares = edges, []int{0, len(edges)}
			s.draws = [][]uint32{whole.draws[i], whole.draws[shares+i]}
			s.place(s.drawn)
			of, e, r := stepOn(t, tr)
			share := float32(len(edges)) / n
			sum += of * float64(share)
			for k, x := range [][]float32{e, r} {
				for j, v := range x {
					sums[k][j] += v * share
				}
			}
		}
		if math.Abs(sum-loss) > 1e-5*math.Abs(sum) {
			t.Errorf("%s: a loss of %v, want %v", name, loss, sum)
		}
		for k, x := range [][]float32{entities, relations} {
			for j, v := range x {
				if math.Abs(float64(v-sums[k][j])) > 1e-5 {
					t.Fatalf("%s: gradient %d of %d is %v, want %v", name, j, k, v, sums[k][j])
				}
			}
		}
	}
}

// stepOn returns the loss and the gradients of the batch that was drawn.
func stepOn(t *testing.T, tr *trainer) (loss float64, entities, relations []float32) {
	t.Helper()
	edges, err := tr.stepper.read()
	if err != nil {
		t.Fatal(err)
	}
	if loss, err = tr.stepper.compare(edges, 0); err != nil {
		t.Fatal(err)
	}
	tr.stepper.how.sum(len(edges))
	entities, relations = stepGradients(tr)
	return loss, entities, relations
}

// TestTypedRows: with vectors on disk only nodes are drawn that are in memory, each as often.
func TestTypedRows(t *testing.T) {
	c, j := circleConfig("distmult"), newJoins(typedMeta())
	part := &triples.Part{RowOf: func(node uint32) (uint32, bool) {
		if node%5 != 3 {
			return 77, false
		}
		return node / 5, true
	}}
	counts := map[uint32]int{}
	n := newNegatives(&c, &j, part, 10)
	n.count = 6000
	for _, row := range n.draw(nil, 9, make([]uint32, 1), triples.Query{Relation: 1, Head: true},
		1) {
		counts[row]++
	}
	for row := range uint32(10) {
		want := 0
		if row >= firstItem/5 {
			want = 1000
		}
		if got := counts[row]; math.Abs(float64(got-want)) > 160 || want == 0 && got > 0 {
			t.Errorf("row %d was drawn %d times, want about %d", row, got, want)
		}
	}
	if counts[77] > 0 {
		t.Errorf("a node that is not in memory was drawn %d times", counts[77])
	}
}

// TestTypedDegrees: negatives by degree are drawn by the degrees of nodes of one type.
func TestTypedDegrees(t *testing.T) {
	c, j := circleConfig("distmult"), newJoins(typedMeta())
	c.NegativeSampling, c.DegreePower, c.Negatives = setting.NegativesDegree, 1, 6000
	part := &triples.Part{Spans: []triples.Span{{Count: 50}}, Edges: []triples.Triple{
		{Head: 0, Tail: 30}, {Head: 0, Tail: 40}, {Head: 7, Tail: 40}, {Head: 19, Tail: 20}}}
	n := newNegatives(&c, &j, part, 50)
	for head, want := range []map[uint32]int{{30: 1500, 40: 3000, 20: 1500},
		{0: 3000, 7: 1500, 19: 1500}} {
		counts := map[uint32]int{}
		for _, e := range n.draw(nil, 3, make([]uint32, 1), triples.Query{Head: head == 1}, 1) {
			counts[e]++
		}
		for e, times := range want {
			if math.Abs(float64(counts[e]-times)) > 200 {
				t.Errorf("node %d was drawn %d times, want about %d", e, counts[e], times)
			}
		}
		if len(counts) != len(want) {
			t.Errorf("%d nodes were drawn, want %d", len(counts), len(want))
		}
	}
}

// TestTypedOnDisk: a typed store trains with vectors on disk, and refuses what is drawn by degree
// there.
func TestTypedOnDisk(t *testing.T) {
	s := livetest.ShopBothWays(t, vfs.NewMem(), "s")
	c := circleConfig("distmult")
	c.Order, c.Partitions, c.PartitionsInMemory, c.Epochs = setting.OrderBeta, 6, 3, 30
	if res := mustRun(t, s, c); res.Best < .1 {
		t.Errorf("a val mrr of %v", res.Best)
	}
	c.Run, c.NegativeSampling = "degree", setting.NegativesDegree
	_, err := Run(t.Context(), s, mustDevice(t), c, nil)
	if err == nil || made(s, "degree") {
		t.Errorf("by degree on disk: %v", err)
	}
}

// TestPairs counts the pairs of types that edges join.
func TestPairs(t *testing.T) {
	m := typedMeta()
	if got := newJoins(m).pairs; got != 2 {
		t.Errorf("%d pairs, want 2", got)
	}
	m.Relations = []kv.RelationMeta{{Dst: 1}, {Dst: 1}, {Dst: 1}}
	if j := newJoins(m); j.pairOf != nil || j.pairs != 1 || j.answers == nil {
		t.Errorf("joins of one pair are %v", j)
	}
	if j := newJoins(&kv.Meta{Nodes: 5}); j.pairs != 1 || j.answers != nil || j.count != 1 {
		t.Errorf("joins without types are %v", j)
	}
}
