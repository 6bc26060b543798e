package link

import (
	"context"
	"math"
	"slices"
	"testing"

	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

// fewConfigs are settings whose steps go edge by edge.
func fewConfigs() map[string]Config {
	all := map[string]Config{}
	for _, name := range []string{"distmult", "complex"} {
		c := circleConfig(name)
		c.Negatives, c.Dropout, c.Reciprocal = 3, 0.2, true
		c.Regularizer, c.RegularizerWeight = setting.RegularizerN3, 0.001
		all[name+" with few negatives"] = c
	}
	c := circleConfig("distmult")
	c.Negatives, c.NegativeSampling, c.Loss = 1, setting.NegativesDegree, "logistic"
	all["one negative by degree"] = c
	c.NegativeSampling, c.Loss, c.Reciprocal = setting.NegativesUniform, "softmax", true
	c.Regularizer, c.RegularizerWeight = setting.RegularizerN3, 0.001
	all["one negative"] = c
	c.NegativeSampling = setting.NegativesEdge
	all["one negative of each edge"] = c
	c = circleConfig("complex")
	c.NegativeSampling, c.Negatives = setting.NegativesEdge, 12
	all["negatives of each edge"] = c
	c = circleConfig("distmult")
	c.NegativeSampling, c.Negatives, c.Loss, c.Reciprocal = setting.NegativesEdge, 4, "logistic",
		true
	c.Regularizer, c.RegularizerWeight = setting.RegularizerL2, 0.001
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
		var losses [3]float64
		var models [3]*model
		for k, how := range []string{"lists", "pairs", "products"} {
			own := c
			own.FilterNegatives = how == "products"
			m, err := newModel(&own, d.entities, d.relations, nil)
			if err != nil {
				t.Fatal(err)
			}
			m.init(1, nil)
			st := newStepper(&own, m.dec, kernel.NewPool(2), m.relations,
				joins{count: uint32(d.relations)}, triples.NewIndex(nil))
			p, err := newInMemory(d.train, m.entities, nil).Load(context.Background(), 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			st.use(p, m.entities)
			st.opt.rate = 0.1
			if _, few := st.how.(*byEdge); few == (how == "products") {
				t.Fatalf("%s: edge by edge: %v", name, few)
			}
			// Kernels of pairs are right, if slow, without the instructions that isPairs asks for.
			if how != "products" {
				pairs := how == "pairs" && c.Decoder == "distmult" && c.Negatives == 1
				st.how = newByEdge(st, pairs)
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
		for k, m := range models[:2] {
			compareTables(t, name, m.entities, models[2].entities)
			compareTables(t, name, m.relations, models[2].relations)
			if math.Abs(losses[k]-losses[2]) > 1e-5*math.Abs(losses[2]) {
				t.Errorf("%s: losses %v", name, losses)
			}
		}
		for _, m := range models {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestPlaceRuns: each query is in a run of its relation, a part has a run for each relation that
// its queries ask of, and runs are as long as they have queries.
func TestPlaceRuns(t *testing.T) {
	const n, relations = fewPart + 8, 3
	for _, reciprocal := range []bool{false, true} {
		d := &drawn{}
		for i := range n {
			d.edges = append(d.edges, triples.Triple{Relation: uint32(i * relations / n)})
		}
		s := &stepper{cfg: &Config{Scoring: setting.Scoring{Reciprocal: reciprocal}},
			joins: joins{count: relations}}
		newByEdge(s, false).placeRuns(d)
		want := []uint32{0, 1, 2, 2} // 32 edges are of 0, 1 and 2, and 8 of 2
		if reciprocal {
			want = []uint32{0, 1, 2, 3, 4, 5, 2, 5}
		}
		if !slices.Equal(d.rels, want) {
			t.Errorf("reciprocal %v: runs of relations %v, want %v", reciprocal, d.rels, want)
		}
		lengths := make([]float32, len(want))
		for query, run := range d.runs.runOf {
			lengths[run]++
			edge := query % n
			r, _ := s.relationOf(d.edges[edge].Relation, query >= n)
			if part := edge / fewPart; d.rels[run] != r || run < d.runs.partAt[part] ||
				run >= d.runs.partAt[part+1] {
				t.Errorf("reciprocal %v: query %d is in run %d", reciprocal, query, run)
			}
		}
		if !slices.Equal(d.runs.lengths, lengths) {
			t.Errorf("reciprocal %v: lengths %v, want %v", reciprocal, d.runs.lengths, lengths)
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
