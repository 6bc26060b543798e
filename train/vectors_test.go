package train

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/internal/rng"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/sample"
	"gdb/train/embedding"
	"gdb/train/plan"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// bare is planted without its features.
func bare() layouttest.Graph {
	g := planted(false)
	g.Features, g.Dim = nil, 0
	return g
}

func vectorsConfig() Config {
	c := resumeConfig()
	c.NodeEmbedding = 7
	return c
}

// TestVectorsLearn: of a graph that has no features, where neighbors are mostly of one class, the
// class is learned; eval finds what the run found, and predict what eval counts.
func TestVectorsLearn(t *testing.T) {
	s, c := mustBuild(t, bare()), vectorsConfig()
	c.NodeEmbedding, c.Epochs, c.Fanout, c.Batch = 16, 40, []int{5, 5}, 20
	res := mustRun(t, s, c)
	if *res.Test < 0.7 { // by chance: 0.25
		t.Errorf("test %.3f", *res.Test)
	}
	for _, memory := range []int64{0, 400 << 20} {
		got, err := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: c.Run,
			Limits: Limits{Memory: memory}})
		if err != nil || got.Value != *res.Test || got.Epoch != res.BestEpoch {
			t.Fatalf("evaluated %+v, %v; the run has %v", got, err, res)
		}
	}
	csv := mustPredict(t, s, PredictConfig{Run: c.Run, Split: "test"}, "p.csv")
	right, g := 0.0, bare()
	lines := strings.Split(strings.TrimSpace(string(csv)), "\n")[1:]
	for i, v := range g.Splits["test"] {
		if _, class, _ := strings.Cut(lines[i], ","); g.Labels[v] >= 0 &&
			strings.Trim(class, `"`) == g.Classes[g.Labels[v]] {
			right++
		}
	}
	if got := right / float64(len(lines)); math.Abs(got-*res.Test) > 0.01 {
		t.Errorf("%.3f of the predictions are right, the test is %.3f", got, *res.Test)
	}
}

// TestVectorsBesideFeatures: evaluation over the whole graph has the features and vectors of each
// node as a batch has them, with the features in memory and on disk.
func TestVectorsBesideFeatures(t *testing.T) {
	for _, kind := range []string{"sage", "gcn", "gat"} {
		s, c := mustBuild(t, planted(false)), vectorsConfig()
		c.Model, c.Fanout, c.Epochs = kind, []int{sample.All, sample.All}, 2
		c.Cache = "none" // the run evaluates with features on disk
		values := []float64{*mustRun(t, s, c).Test}
		for _, mode := range []string{"exact", "sampled"} {
			got, err := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: c.Run, Mode: mode})
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, got.Value)
		}
		if slices.Max(values) != slices.Min(values) || values[0] < 0.3 {
			t.Errorf("%s: test %v on disk, in memory, sampled", kind, values)
		}
	}
}

// TestVectorGradients holds what a step takes from the vectors of a batch's nodes against finite
// differences of the loss, with features before them and without. The vectors of others stay.
func TestVectorGradients(t *testing.T) {
	notShort(t)
	for _, g := range []layouttest.Graph{planted(false), bare()} {
		c := vectorsConfig()
		c.Optimizer, c.LR, c.WeightDecay, c.Dropout = "sgd", 1, 0, 0
		c.Activation = "gelu" // without kinks
		l, err := Open(t.Context(), mustBuild(t, g), mustDevice(t), c)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		e, err := l.Epoch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, err := e.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		checkVectorGradients(t, l.s.steps, b)
		b.Release()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func checkVectorGradients(t *testing.T, tr *stepper, b *sample.Batch) {
	t.Helper()
	rows := tr.vectors.Rows()
	for i := range rows { // so that there are gradients of a size to see
		rows[i] *= 10
	}
	before := slices.Clone(rows)
	weights, err := tr.weights()
	if err != nil {
		t.Fatal(err)
	}
	loss := func() float64 {
		v, err := tr.lossOf(b, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	loss()
	after := slices.Clone(rows)
	copy(rows, before)
	tr.be.Write(tr.model.Params().W, weights)
	tr.opt.Base = 0
	dim, in, wrong, size := tr.vectors.Dim(), map[int]bool{}, 0, 0.0
	for _, v := range b.Dense.NodeIDs {
		in[int(v)] = true
		for k := int(v) * dim; k < (int(v)+1)*dim; k++ {
			const h = 1.0 / 64
			rows[k] = before[k] + h
			up := loss()
			rows[k] = before[k] - h
			want := (up - loss()) / (2 * h)
			rows[k] = before[k]
			if math.Abs(float64(before[k]-after[k])-want) > 2e-5+0.02*math.Abs(want) {
				wrong++
			}
			size += math.Abs(want)
		}
	}
	if n := len(in) * dim; wrong > n/200 || size/float64(n) < 1e-4 {
		t.Errorf("%d of %d gradients, of %g on average, are not what differences give", wrong, n,
			size/float64(n))
	}
	for k := range rows {
		if !in[k/dim] && before[k] != after[k] {
			t.Fatalf("node %d is not in the batch, and its vector changed", k/dim)
		}
	}
}

// TestVectorsResume: runs that are interrupted at any step end as one that never was, whatever the
// optimizer keeps and however far ahead batches are made.
func TestVectorsResume(t *testing.T) {
	for _, optimizer := range []string{"adam", "adagrad", "sgd"} {
		c := vectorsConfig()
		c.Optimizer, c.Clip = optimizer, 1
		checkResumes(t, planted(false), c)
		if testing.Short() {
			return
		}
	}
}

// TestVectorsAnyCache: a run with any cache has the same losses as one that makes
// batches one by one.
func TestVectorsAnyCache(t *testing.T) {
	c := testConfig()
	c.NodeEmbedding = 7
	checkAnyCache(t, planted(false), c)
}

// TestVectorsAfterCrash takes the disk as a power failure leaves it at random steps, and resumes
// there.
func TestVectorsAfterCrash(t *testing.T) {
	c := vectorsConfig()
	c.CheckpointEvery = 2
	whole := mustBuild(t, bare())
	mustRun(t, whole, c)
	want, weights := finalState(t, whole, c.Run)
	for seed := range stopped() {
		fs := vfs.NewCrashableMem()
		s := layouttest.Build(t, fs, "store", bare())
		syncTree(t, fs, "")
		draw := rng.NewStream(rng.Key(seed, 9))
		left := 1 + int(draw.Below(30))
		var crashed *vfs.MemFS
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Run(ctx, s, mustDevice(t), c, func(run.Event) {
			if left--; left == 0 {
				crashed = fs.CrashClone(vfs.CrashCloneCfg{})
				cancel()
			}
		})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		after, err := layout.Open(t.Context(), crashed, "store")
		if err != nil {
			t.Fatal(err)
		}
		next := c
		next.Resume = c.Run
		mustRun(t, after, next)
		checkFinal(t, after, c, want, weights)
	}
}

// TestDamagedVectors: a file of vectors that is not as it was written is refused.
func TestDamagedVectors(t *testing.T) {
	s, c := mustBuild(t, bare()), vectorsConfig()
	c.Epochs = 1
	mustRun(t, s, c)
	dir := runs.Open(s, c.Run)
	name, err := dir.Current()
	if err != nil {
		t.Fatal(err)
	}
	path := dir.Path(name, embedding.FileName)
	good, err := readAll(s.FS(), path)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string) {
		t.Helper()
		_, resumed := Run(t.Context(), s, mustDevice(t), resumed(c.Run), nil)
		_, evaluated := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: c.Run})
		for _, err := range []error{resumed, evaluated} {
			if !errors.Is(err, layout.ErrCorrupt) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	last := slices.Clone(good)
	last[len(last)-1] ^= 4 // in the best vectors, which both read
	for what, b := range map[string][]byte{"a bit of a vector": last, "cut short": good[:5000],
		"empty": nil, "longer": append(slices.Clone(good), 0)} {
		if err := writeSynced(s.FS(), path, slices.Clone(b)); err != nil {
			t.Fatal(err)
		}
		refused(what)
	}
	if err := s.FS().Remove(path); err != nil {
		t.Fatal(err)
	}
	refused("missing")
}

// TestVectorsMemoryIsALaw: from the least memory that is accepted upwards a run with vectors trains
// and evaluates without a budget error; with less it is refused, and says what the vectors take.
func TestVectorsMemoryIsALaw(t *testing.T) {
	notShort(t)
	for name, g := range map[string]layouttest.Graph{"features": layouttest.Skewed(),
		"none": layouttest.Skewed()} {
		if name == "none" {
			g.Features, g.Dim = nil, 0
		}
		s := mustBuild(t, g)
		for _, mode := range []string{"exact", setting.EvalSampled} {
			c := lawConfig()
			c.NodeEmbedding, c.EvalMode, c.Memory = 200, mode, 1<<20
			err := mustPlan(t, s)(c)
			var small *plan.TooSmallError
			if !errors.As(err, &small) || !strings.Contains(err.Error(), "--node-embedding 200") {
				t.Fatalf("%s: %v", name, err)
			}
			least := leastMemory(t, c, mustPlan(t, s))
			held := learnedVectors(&c, s.Meta(), true).Bytes()
			plain := c
			plain.NodeEmbedding = 1
			plain.Memory = 1 << 20
			if without := leastMemory(t, plain, mustPlan(t, s)); least < without+held*9/10-(8<<20) {
				t.Errorf("%s: at least %d, without vectors %d, which take %d", name, least, without,
					held)
			}
			for _, more := range []int64{0, 1, 4, 12} {
				c.Memory = least + more<<20
				c.Run = mode + string(rune('a'+more))
				if _, err := Run(t.Context(), s, mustDevice(t), c, nil); err != nil {
					t.Errorf("%s, %s, %d MiB: %v", name, mode, c.Memory>>20, err)
				}
			}
		}
	}
}

// TestVectorsRefused: what makes no sense is said, with what does.
func TestVectorsRefused(t *testing.T) {
	s := mustBuild(t, bare())
	for want, change := range map[string]func(c *Config){
		"train --node-embedding 64": func(c *Config) { c.NodeEmbedding = 0 },
		"node-embedding -1":         func(c *Config) { c.NodeEmbedding = -1 },
		"node-embedding 65537":      func(c *Config) { c.NodeEmbedding = 1<<16 + 1 },
		"leave --cache sieve out":   func(c *Config) { c.Cache = "sieve" },
		"leave --cache belady out":  func(c *Config) { c.Cache = setting.CacheBelady },
		"leave --feature-cache out": func(c *Config) { c.FeatureCache = 1 << 20 },
		"leave --superbatch out":    func(c *Config) { c.Superbatch = 4 },
		"leave --normalize row out": func(c *Config) { c.Normalize = setting.NormalizeRow },
	} {
		c := vectorsConfig()
		change(&c)
		if _, err := Run(t.Context(), s, mustDevice(t), c, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	c := vectorsConfig()
	mustRun(t, s, c)
	other := c
	other.Resume, other.NodeEmbedding = c.Run, 8
	if _, err := Run(t.Context(), s, mustDevice(t), other, nil); err == nil ||
		!strings.Contains(err.Error(), "it began with") {
		t.Errorf("resumed with other vectors: %v", err)
	}
}
