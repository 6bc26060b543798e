package link

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/layouttest"
	"gdb/train/link/triples"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	circleEntities  = 60
	circleRelations = 4
)

// mustCircle makes a store of entities on a circle, of which each relation leads a number of steps
// on: most decoders can learn that. Without relations, an edge leads to one of the next neighbors.
func mustCircle(t testing.TB, relations bool) *layout.Store {
	t.Helper()
	fs := vfs.NewMem()
	text := map[string]*strings.Builder{"train": {}, "valid": {}, "test": {}}
	for e := range circleEntities {
		for r := range circleRelations {
			split := "train"
			switch (e*7 + r*3) % 10 {
			case 0:
				split = "valid"
			case 1:
				split = "test"
			}
			fmt.Fprintf(text[split], "e%d\tr%d\te%d\n", e, r, (e+1+r)%circleEntities)
		}
	}
	opt := ingest.Options{Options: source.Options{Sources: []string{"kg"}, Memory: 128 << 20},
		Out: "kg.gdb"}
	if err := fs.MkdirAll("kg", 0o755); err != nil {
		t.Fatal(err)
	}
	if relations {
		for name, b := range text {
			layouttest.WriteFile(t, fs, "kg/"+name+".tsv", []byte(b.String()))
		}
	} else {
		lines := []string{"src,dst"}
		for line := range strings.Lines(text["train"].String() + text["test"].String()) {
			f := strings.Fields(line)
			lines = append(lines, f[0]+","+f[2])
		}
		layouttest.WriteFile(t, fs, "kg/edges.csv", []byte(strings.Join(lines, "\n")+"\n"))
		opt.Sources, opt.EdgeSplit = []string{"kg/edges.csv"}, "random=80/10/10"
	}
	if _, err := ingest.Run(context.Background(), fs, opt); err != nil {
		t.Fatal(err)
	}
	s, err := layout.Open(context.Background(), fs, "kg.gdb")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustDevice(t testing.TB) blockdev.Device {
	t.Helper()
	return devtest.Open(t, blockdev.Options{})
}

func circleConfig(name string) Config {
	c := setting.DefaultLink(name)
	c.Run, c.Dim, c.Batch, c.Epochs, c.EvalEvery, c.Patience = "t", 32, 24, 60, 10, 0
	c.Negatives, c.Threads, c.Memory, c.Init = 20, 2, 1<<30, 0.1
	c.Regularizer, c.LR, c.Optimizer, c.Dropout = setting.RegularizerNone, 0.1, "adagrad", 0
	c.NegativeSampling, c.Loss, c.Reciprocal = setting.NegativesUniform, "softmax", false
	return c
}

func mustRun(t testing.TB, s *layout.Store, c Config) *Result {
	t.Helper()
	res, err := Run(context.Background(), s, mustDevice(t), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// lastRows are the arrays of the last checkpoint of a run.
func lastRows(t testing.TB, s *layout.Store, run string) []runs.Array {
	t.Helper()
	return mustState(t, runs.Open(s, run), &position{})
}

// mustState reads the position and the arrays of the last checkpoint of a run.
func mustState(t testing.TB, dir runs.Dir, pos *position) []runs.Array {
	t.Helper()
	name, err := dir.Current()
	if err != nil {
		t.Fatal(err)
	}
	arrays, err := dir.ReadState(name, 1<<24, pos)
	if err != nil {
		t.Fatal(err)
	}
	return arrays
}

// sameRows fails unless two runs ended with the same bits.
func sameRows(t *testing.T, what string, a, b []runs.Array) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%s: %d arrays, and %d", what, len(a), len(b))
	}
	for i := range a {
		if a[i].Name != b[i].Name || !slices.EqualFunc(a[i].Values, b[i].Values,
			func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }) {
			t.Fatalf("%s: %s and %s differ", what, a[i].Name, b[i].Name)
		}
	}
}

// settings are ways to train that share no code, or little.
func settings() map[string]Config {
	all := map[string]Config{}
	for _, name := range setting.Decoders {
		if name != "dot" {
			all[name] = circleConfig(name)
		}
	}
	for _, name := range []string{"distmult", "transe"} {
		c := circleConfig(name)
		c.Negatives, c.Reciprocal, c.Dropout = setting.NegativesAll, true, 0.1
		c.Regularizer, c.RegularizerWeight = setting.RegularizerN3, 0.001
		all[name+" with all entities"] = c
	}
	for _, kind := range setting.NegativeSamplings {
		c := circleConfig("complex")
		c.NegativeSampling, c.Optimizer, c.LR, c.FilterNegatives = kind, "adam", 0.01, true
		c.Regularizer, c.RegularizerWeight = setting.RegularizerL2, 0.0001
		all["negatives "+kind] = c
	}
	for _, name := range []string{"transe", "rotate"} {
		c := circleConfig(name)
		c.Norm, c.Loss, c.Margin, c.LR = 1, "adversarial", 3, 0.05
		all[name+" l1"] = c
	}
	c := circleConfig("transe")
	c.Loss, c.Margin = "margin", 1
	all["margin"] = c
	c = circleConfig("complex")
	c.Loss, c.Negatives = "logistic", setting.NegativesAll
	all["logistic"] = c
	encoded := circleConfig("distmult")
	encoded.Encoder, encoded.Fanout = "sage", "3"
	all["distmult behind sage"] = encoded
	maps.Copy(all, fewConfigs())
	return all
}

// TestThreads: the number of threads changes no bit.
func TestThreads(t *testing.T) {
	for name, c := range settings() {
		t.Run(name, func(t *testing.T) {
			s := mustCircle(t, true)
			c.Epochs, c.EvalEvery = 3, 1
			var first []runs.Array
			for _, threads := range []int{1, 2, 3} {
				c.Threads, c.Run = threads, fmt.Sprint("t", threads)
				res := mustRun(t, s, c)
				rows := lastRows(t, s, c.Run)
				if first == nil {
					first = rows
				}
				sameRows(t, fmt.Sprint(threads, " threads"), rows, first)
				if res.Test == nil || res.Test.Ranks == 0 {
					t.Error("no test")
				}
			}
		})
	}
}

// TestResume: a run that is stopped after any batch, and goes on, ends with the bits of one that is
// not.
func TestResume(t *testing.T) {
	for name, c := range settings() {
		t.Run(name, func(t *testing.T) {
			s := mustCircle(t, true)
			c.Epochs, c.EvalEvery, c.Run = 4, 2, "whole"
			whole := mustRun(t, s, c)
			c.Run = "parts"
			stopped := 0
			for resume := ""; ; stopped++ {
				ctx, cancel := context.WithCancel(context.Background())
				left := 5
				c.Resume = resume
				res, err := Run(ctx, s, mustDevice(t), c, func(e run.Event) {
					if e.Progress != nil {
						if left--; left == 0 {
							cancel()
						}
					}
				})
				cancel()
				if err == nil {
					if res.Best != whole.Best || res.BestEpoch != whole.BestEpoch ||
						res.Test.Metrics != whole.Test.Metrics {
						t.Errorf("%+v, want %+v", res, whole)
					}
					break
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				resume = "parts"
			}
			if stopped < 3 {
				t.Fatalf("stopped %d times", stopped)
			}
			sameRows(t, "resumed", lastRows(t, s, "parts"), lastRows(t, s, "whole"))
		})
	}
}

// TestLearns: what can be learned is, far above chance, which is 0.08. No translations lead around
// a circle, and DistMult knows no directions: they learn who is near.
func TestLearns(t *testing.T) {
	near := map[string]float64{"distmult": 0.1, "distmult behind sage": 0.1,
		"transe": 0.12, "distmult with all entities": 0.1,
		"transe with all entities": 0.12, "margin": 0.1, "transe l1": 0.12,
		"one negative by degree": 0.1, "one negative of each edge": 0.3}
	for name, c := range settings() {
		t.Run(name, func(t *testing.T) {
			res := mustRun(t, mustCircle(t, true), c)
			least, circle := near[name]
			if !circle {
				least = 0.4
			}
			if res.Test.MRR < least {
				t.Errorf("MRR %.3f, want %.3f: %+v", res.Test.MRR, least, res.Test.Metrics)
			}
		})
	}
}

// TestPlainGraph: a graph without relations is learned by dot, and judged by random pairs too.
func TestPlainGraph(t *testing.T) {
	s := mustCircle(t, false)
	c := circleConfig("dot")
	res := mustRun(t, s, c)
	trained, err := Open(context.Background(), s, mustDevice(t), "t", Limits{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := trained.Close(); err != nil {
			t.Error(err)
		}
	}()
	e, err := trained.Evaluate(context.Background(), "test", 0)
	if err != nil {
		t.Fatal(err)
	}
	if e.Metrics != res.Test.Metrics || e.AUC == nil || *e.AUC < 0.7 {
		t.Errorf("%+v, AUC %v, want %+v", e.Metrics, e.AUC, res.Test.Metrics)
	}
	if _, err := trained.Evaluate(context.Background(), "nope", 0); err == nil {
		t.Error("a split that is not there was evaluated")
	}
}

// TestTrained: the best tails are those that score best one by one.
func TestTrained(t *testing.T) {
	s := mustCircle(t, true)
	mustRun(t, s, circleConfig("rotate"))
	trained, err := Open(context.Background(), s, mustDevice(t), "t", Limits{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	relation, err := trained.Relation("r2")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "r9"} {
		if _, err := trained.Relation(name); err == nil {
			t.Errorf("relation %q was found", name)
		}
	}
	var edges []triples.Triple
	links, err := trained.Top(t.Context(), triples.Query{Entity: 5, Relation: relation}, 10, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		edges = append(edges, triples.Triple{Head: uint32(l.Head), Relation: relation,
			Tail: uint32(l.Tail)})
	}
	scores, err := trained.Scores(t.Context(), edges)
	if err != nil || len(scores) != 10 || !slices.IsSortedFunc(scores, func(a, b float32) int {
		return int(math.Copysign(1, float64(b-a-1e-4)))
	}) {
		t.Errorf("the best answers score %v", scores)
	}
	if err := trained.Close(); err != nil {
		t.Error(err)
	}
}

// TestRefused: what cannot be trained is told in words.
func TestRefused(t *testing.T) {
	s := mustCircle(t, true)
	mustRun(t, s, circleConfig("transe"))
	nodes := layouttest.Build(t, vfs.NewMem(), "store", layouttest.Graph{Nodes: 3,
		Edges: []layouttest.Edge{{Src: 0, Dst: 1}}})
	for _, c := range []struct {
		name, want string
		store      *layout.Store
		change     func(c *Config)
	}{
		{"taken", "choose another --run", s, func(*Config) {}},
		{"relations", "dot knows no relations", s, func(c *Config) { c.Decoder = "dot" }},
		{"odd", "even number", s, func(c *Config) { c.Decoder, c.Dim = "complex", 31 }},
		{"all", "loss margin compares", s, func(c *Config) { c.Loss, c.Negatives = "margin", 0 }},
		{"resume", "lr 7: it began with 0.1", s, func(c *Config) { c.Resume, c.LR = "t", 7 }},
		{"memory", "", s, func(c *Config) { c.Memory = 1 << 20 }},
		{"diverged", "lower --lr", s, func(c *Config) {
			c.Decoder, c.LR = "distmult", 1e30
		}},
	} {
		cfg := circleConfig("transe")
		if c.name != "taken" {
			cfg.Run = c.name
		}
		c.change(&cfg)
		if _, err := Run(context.Background(), c.store, mustDevice(t), cfg, nil); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := Run(context.Background(), nodes, mustDevice(t), circleConfig("dot"),
		nil); !errors.Is(err, edgefile.ErrNoSplits) {
		t.Errorf("without splits: %v", err)
	}
	if _, err := runs.Load(s, "t"); !errors.Is(err, runs.ErrOtherTask) {
		t.Errorf("as a run of nodes: %v", err)
	}
}

// TestDraws: rows are drawn evenly or by degree, and only those that entities have.
func TestDraws(t *testing.T) {
	c := circleConfig("dot")
	c.NegativeSampling, c.DegreePower, c.Negatives = setting.NegativesDegree, 1, 60000
	part := &triples.Part{Spans: []triples.Span{{Count: 4}},
		Edges: []triples.Triple{{Head: 0, Tail: 1}, {Head: 0, Tail: 2}, {Head: 0, Tail: 1}}}
	var counts [4]float64
	c.NegativeSampling = setting.NegativesUniform
	spans := &triples.Part{Spans: []triples.Span{{Row: 1, Count: 2}, {Row: 6, Count: 1}}}
	var uniform [9]float64
	for _, e := range newNegatives(&c, &joins{}, spans, 9).draw(nil, 6, nil,
		triples.Query{}, 1) {
		uniform[e]++
	}
	for i, n := range uniform {
		want := 0.0
		if i == 1 || i == 2 || i == 6 {
			want = 20000
		}
		if math.Abs(n-want) > 5*math.Sqrt(want) {
			t.Errorf("row %d was drawn %v times, want about %v", i, n, want)
		}
	}
	c.NegativeSampling = setting.NegativesDegree
	for _, e := range newNegatives(&c, &joins{}, part, 4).draw(nil, 5, nil,
		triples.Query{}, 1) {
		counts[e]++
	}
	for i, want := range []float64{30000, 20000, 10000, 0} {
		if math.Abs(counts[i]-want) > 5*math.Sqrt(want) {
			t.Errorf("entity %d was drawn %v times, want about %v", i, counts[i], want)
		}
	}
}

// TestLossFalls: steps on one batch follow its loss down.
func TestLossFalls(t *testing.T) {
	for name, c := range settings() {
		s := mustCircle(t, true)
		d, err := readData(context.Background(), s, mustDevice(t), &c, &mem.Budget{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := newModel(&c, d.entities, d.relations, nil)
		if err != nil {
			t.Fatal(err)
		}
		m.init(1, nil)
		st := newStepper(&c, m.dec, kernel.NewPool(1), m.relations,
			joins{count: uint32(d.relations)}, triples.NewIndex(d.train))
		p, err := newInMemory(d.train, m.entities, nil).Load(context.Background(), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		st.use(p, m.entities)
		st.opt.rate = 0.01
		var losses []float64
		for range 20 {
			var v float64
			if c.Negatives == setting.NegativesAll {
				v, _, err = st.side.full(st.known, []uint32{0, 5, 9}, 7)
			} else {
				v, err = st.sampled(d.train[:20], 7)
			}
			if err != nil {
				t.Fatal(err)
			}
			losses = append(losses, v)
		}
		if losses[19] >= losses[0] {
			t.Errorf("%s: losses %v", name, losses)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
