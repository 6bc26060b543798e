package train

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"maps"
	"math"
	"strconv"
	"strings"
	"testing"

	"gdb/internal/rng"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
	"gdb/train/task"

	"github.com/parquet-go/parquet-go"
)

// plantedNumbers has numbers to predict that are linear in a node's features and in the mean of its
// neighbors', far from zero and with a large spread. Node 1 has none.
func plantedNumbers() layouttest.Graph {
	g := planted(false)
	g.Labels, g.Classes = nil, nil
	near := make([][]int, g.Nodes)
	for _, e := range g.Edges {
		near[e.Dst] = append(near[e.Dst], int(e.Src))
	}
	row := func(v int) []float32 { return g.Features[v*plantedDim : (v+1)*plantedDim] }
	for v := range int(g.Nodes) {
		mean := float32(0)
		for _, u := range near[v] {
			mean += row(u)[0] / float32(len(near[v]))
		}
		g.Targets = append(g.Targets, 5000+1000*(2*row(v)[0]-row(v)[1]+0.5*row(v)[2]+mean))
	}
	g.Targets[1] = float32(math.NaN())
	return g
}

func numbersConfig() Config {
	c := testConfig()
	c.Fanout, c.Hidden, c.Epochs, c.Dropout = []int{10}, 16, 30, 0
	return c
}

// TestRegression trains on numbers with each loss: predictions come in their units, and what eval
// computes is what the predictions written say.
func TestRegression(t *testing.T) {
	g := plantedNumbers()
	for loss, metric := range map[string]string{"auto": "auto", "mae": "mae", "huber": "r2"} {
		s, c := mustBuild(t, g), numbersConfig()
		c.Loss, c.Metric = loss, metric
		var epochs []runs.Epoch
		res, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
			if e.Epoch != nil {
				epochs = append(epochs, *e.Epoch.(*runs.Epoch))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: "t"})
		if err != nil || got.Value != *res.Test || got.ClassMetrics != nil || got.R2 < 0.9 {
			t.Fatalf("loss %s: eval %+v %+v, %v; the run had %v", loss, got, got.NumberMetrics,
				err, *res.Test)
		}
		rows := predictedNumbers(t, s)
		want := numberMetrics(g, rows)
		for _, m := range [][2]float64{{got.RMSE, want.RMSE}, {got.MAE, want.MAE},
			{got.R2, want.R2}} {
			if math.Abs(m[0]-m[1]) > 1e-4*(1+m[1]) {
				t.Errorf("loss %s: eval %+v, predictions say %+v", loss, got.NumberMetrics, want)
			}
		}
		checkBestEpoch(t, epochs, res)
		last := epochs[len(epochs)-1]
		if val := *last.Val; last.Train < 0.3*val || last.Train > 3*val {
			t.Errorf("loss %s: train %g is in other units than val %g", loss, last.Train, val)
		}
	}
}

// checkBestEpoch: the best epoch is the first of those with the least error, or the highest r2.
func checkBestEpoch(t *testing.T, epochs []runs.Epoch, res *Result) {
	t.Helper()
	best := 0
	for i, e := range epochs {
		if d := *e.Val - *epochs[best].Val; res.Metric == task.R2 && d > 0 ||
			res.Metric != task.R2 && d < 0 {
			best = i
		}
	}
	if res.BestEpoch != best+1 || res.Best != *epochs[best].Val || !epochs[best].Best {
		t.Errorf("by %s the best is %d (%g), want %d (%g)", res.Metric, res.BestEpoch, res.Best,
			best+1, *epochs[best].Val)
	}
}

// predictedNumbers are the predictions of the test nodes, as written.
func predictedNumbers(t *testing.T, s *layout.Store) map[int]float64 {
	b := mustPredict(t, s, PredictConfig{Run: "t", Split: "test"}, "out.csv")
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil || strings.Join(rows[0], " ") != "id prediction" {
		t.Fatalf("%q, %v", rows[0], err)
	}
	out := map[int]float64{}
	for _, row := range rows[1:] {
		node, err := strconv.Atoi(row[0])
		y, bad := strconv.ParseFloat(row[1], 64)
		if err != nil || bad != nil {
			t.Fatal(row, err, bad)
		}
		out[node] = y
	}
	return out
}

// numberMetrics are the metrics by their definitions.
func numberMetrics(g layouttest.Graph, rows map[int]float64) (m task.NumberMetrics) {
	mean, n, all := 0.0, 0.0, 0.0
	for v := range rows {
		if y := float64(g.Targets[v]); y == y {
			mean, n = mean+y, n+1
		}
	}
	mean /= n
	for v, p := range rows {
		if y := float64(g.Targets[v]); y == y {
			m.RMSE, m.MAE = m.RMSE+(p-y)*(p-y)/n, m.MAE+math.Abs(p-y)/n
			all += (y - mean) * (y - mean) / n
		}
	}
	m.R2, m.RMSE = 1-m.RMSE/all, math.Sqrt(m.RMSE)
	return m
}

// TestPredictedNumbersInTables: a table has them as floats, the same as text has.
func TestPredictedNumbersInTables(t *testing.T) {
	s, c := mustBuild(t, plantedNumbers()), numbersConfig()
	c.Epochs = 1
	mustRun(t, s, c)
	want := predictedNumbers(t, s)
	b := mustPredict(t, s, PredictConfig{Run: "t", Split: "test"}, "out.parquet")
	type row struct {
		ID         string  `parquet:"id"`
		Prediction float32 `parquet:"prediction"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(b), int64(len(b)))
	if err != nil || len(rows) != len(want) {
		t.Fatal(len(rows), err)
	}
	for _, r := range rows {
		if v, err := strconv.Atoi(r.ID); err != nil || float32(want[v]) != r.Prediction {
			t.Errorf("node %s: %v, in the CSV %v", r.ID, r.Prediction, want[v])
		}
	}
	array := mustPredict(t, s, PredictConfig{Run: "t", Split: "test"}, "out.npy")
	if !bytes.Contains(array[:256], []byte("('prediction', '<f4')")) {
		t.Errorf("the array begins %q", array[:256])
	}
	err = Predict(t.Context(), s, mustDevice(t), PredictConfig{Run: "t", Probabilities: true,
		Out: "p.csv"})
	if err == nil || !strings.Contains(err.Error(), "--probabilities") {
		t.Errorf("probabilities of numbers: %v", err)
	}
}

// checkResumes interrupts a run at random steps until it is done: it ends in the state of one that
// was never stopped, with superbatches too.
func checkResumes(t *testing.T, g layouttest.Graph, c Config) {
	t.Helper()
	whole := mustBuild(t, g)
	mustRun(t, whole, c)
	want, weights := finalState(t, whole, c.Run)
	for seed := range stopped() {
		draw := rng.NewStream(rng.Key(seed, 3))
		s, dev, stops := mustBuild(t, g), mustDevice(t), 0
		for next := resumeVariant(c, seed); ; next = resumed(c.Run) {
			ctx, cancel := context.WithCancel(t.Context())
			left := 1 + int(draw.Below(20))
			_, err := Run(ctx, s, dev, next, func(run.Event) {
				if left--; left == 0 {
					cancel()
				}
			})
			cancel()
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			stops++
		}
		if stops == 0 {
			t.Error("the run was never interrupted")
		}
		checkFinal(t, s, c, want, weights)
	}
}

func TestRegressionResumes(t *testing.T) {
	c := resumeConfig()
	c.Dropout = 0.3
	checkResumes(t, plantedNumbers(), c)
}

// TestRegressionWithAnyCache: a run with any cache has the same losses as a run without one.
func TestRegressionWithAnyCache(t *testing.T) {
	checkAnyCache(t, plantedNumbers(), testConfig())
}

// checkAnyCache trains with superbatches, and without a cache.
func checkAnyCache(t *testing.T, g layouttest.Graph, c Config) {
	t.Helper()
	var losses [2][]float64
	for i, cache := range []string{"none", setting.CacheBelady} {
		c.Cache, c.FeatureCache = cache, 8<<10
		_, err := Run(t.Context(), mustBuild(t, g), mustDevice(t), c, func(e run.Event) {
			if r, ok := e.Epoch.(*runs.Epoch); ok {
				losses[i] = append(losses[i], r.Loss, r.Train, *r.Val)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range losses[0] {
		if v != losses[1][i] {
			t.Fatalf("losses %v without a cache, %v with superbatches", losses[0], losses[1])
		}
	}
}

// TestNumbersAndClasses: a loss or metric of the other kind is refused, and so are labels that are
// infinite.
func TestNumbersAndClasses(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"--metric roc-auc is not for labels that are numbers": func(c *Config) {
			c.Metric = "roc-auc"
		},
		"--loss softmax is not for labels that are numbers": func(c *Config) { c.Loss = "softmax" },
	} {
		c := testConfig()
		change(&c)
		_, err := Run(t.Context(), mustBuild(t, plantedNumbers()), mustDevice(t), c, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for want, multi := range map[string]bool{"labels that are classes": false,
		"labels that are several classes a node": true} {
		c := testConfig()
		c.Metric = "rmse"
		_, err := Run(t.Context(), mustBuild(t, planted(multi)), mustDevice(t), c, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	g := plantedNumbers()
	bad := g.Splits["train"][3]
	g.Targets[bad] = float32(math.Inf(-1))
	s := mustBuild(t, g)
	_, err := Run(t.Context(), s, mustDevice(t), testConfig(), nil)
	if err == nil || !strings.Contains(err.Error(), "the label of node #"+
		strconv.Itoa(int(bad))+" is -Inf") {
		t.Errorf("an infinite label: %v", err)
	}
	if runs.Open(s, "t").Exists() {
		t.Error("a run that could not begin was left behind")
	}
}

// TestWholeNumbers: classes that all are numbers are numbers by a loss of these, and predict the
// same as labels that were numbers from the start; else there is a note, and the loss is refused
// where a name is none.
func TestWholeNumbers(t *testing.T) {
	g := plantedNumbers()
	whole, class := g, map[float32]int32{}
	whole.Targets = nil
	for v, y := range g.Targets {
		if y != y {
			whole.Labels = append(whole.Labels, -1)
			continue
		}
		y = float32(math.Round(float64(y)/100) * 100)
		g.Targets[v] = y
		k, known := class[y]
		if !known {
			k = int32(len(class))
			class[y] = k
			whole.Classes = append(whole.Classes, strconv.Itoa(int(y)))
		}
		whole.Labels = append(whole.Labels, k)
	}
	c := numbersConfig()
	c.Loss, c.Epochs = "mse", 5
	s, same := mustBuild(t, whole), mustBuild(t, g)
	mustRun(t, s, c)
	mustRun(t, same, c)
	_, got := finalState(t, s, "t")
	if _, want := finalState(t, same, "t"); !bytes.Equal(got, want) {
		t.Error("the weights are others than those of labels that were numbers from the start")
	}
	if a, b := predictedNumbers(t, s), predictedNumbers(t, same); !maps.Equal(a, b) {
		t.Error("the predictions are others")
	}
	c.Loss, c.Run, c.Epochs = "auto", "classes", 1
	note := ""
	_, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
		if e.Started != nil {
			note = e.Started.Note
		}
	})
	if err != nil || !strings.Contains(note, "--loss mse") {
		t.Errorf("classes that are numbers: note %q, %v", note, err)
	}
	c.Loss, c.Run = "mse", "named"
	_, err = Run(t.Context(), mustBuild(t, planted(false)), mustDevice(t), c, nil)
	if err == nil || !strings.Contains(err.Error(), "mse is not for labels that are classes") {
		t.Errorf("classes with names: %v", err)
	}
}

// TestRegressionDiverges: what to change is told.
func TestRegressionDiverges(t *testing.T) {
	c := numbersConfig()
	c.Optimizer, c.LR, c.Batch = "sgd", 1e38, 30
	_, err := Run(t.Context(), mustBuild(t, plantedNumbers()), mustDevice(t), c, nil)
	for _, want := range []string{"the loss is", "lower --lr", "--clip 1", "--loss huber"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// TestHugeNumbers: labels near the largest that there are train as any others.
func TestHugeNumbers(t *testing.T) {
	g := plantedNumbers()
	for i := range g.Targets {
		g.Targets[i] *= 1e33
	}
	s, c := mustBuild(t, g), numbersConfig()
	c.Metric = task.R2
	if res := mustRun(t, s, c); *res.Test < 0.9 {
		t.Errorf("%s", res)
	}
}
