package train

import (
	"bytes"
	"encoding/csv"
	"math"
	"strconv"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/sample"
	"gdb/train/runs"
	"gdb/train/task"
)

// plantedUnknown has labels of which half are unknown.
func plantedUnknown() layouttest.Graph {
	g := planted(true)
	g.Unknown = make([][]int, g.Nodes)
	for v, have := range g.Multi {
		if have == nil {
			continue
		}
		var known []int
		for k := range plantedClasses {
			if (v*7919+k*31)%7 < 3 {
				g.Unknown[v] = append(g.Unknown[v], k)
			} else if k == have[0] || k == have[1] {
				known = append(known, k)
			}
		}
		g.Multi[v] = append([]int{}, known...)
	}
	return g
}

// probabilitiesOf predicts the nodes of a split.
func probabilitiesOf(t *testing.T, s *layout.Store, split string) map[int][]float64 {
	t.Helper()
	b := mustPredict(t, s, PredictConfig{Run: "t", Split: split, Probabilities: true}, split+".csv")
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := map[int][]float64{}
	for _, row := range rows[1:] {
		v, err := strconv.Atoi(row[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, cell := range row[2:] {
			p, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				t.Fatal(err)
			}
			out[v] = append(out[v], p)
		}
	}
	return out
}

// knownOf calls fn with each known label of the nodes of a split that have labels.
func knownOf(g *layouttest.Graph, split string, fn func(v, class int, set bool)) {
	for _, v := range g.Splits[split] {
		if g.Multi[v] == nil {
			continue
		}
		is := map[int]string{}
		for _, k := range g.Unknown[v] {
			is[k] = "unknown"
		}
		for _, k := range g.Multi[v] {
			is[k] = "set"
		}
		for k := range plantedClasses {
			if is[k] != "unknown" {
				fn(int(v), k, is[k] == "set")
			}
		}
	}
}

// TestUnknownLabelsLoss: the loss of training is the mean over the labels that are known, also over
// batches that know more and less of theirs. A rate of nearly zero keeps the model as it began.
func TestUnknownLabelsLoss(t *testing.T) {
	g := plantedUnknown()
	s, c := mustBuild(t, g), testConfig()
	c.Epochs, c.Dropout, c.LR, c.Fanout = 1, 0, 1e-12, []int{sample.All, sample.All}
	mustRun(t, s, c)
	got := math.NaN()
	err := runs.Open(s, "t").Epochs(func(e *runs.Epoch) error {
		got = e.Loss
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	probabilities, loss, n := probabilitiesOf(t, s, "train"), 0.0, 0.0
	knownOf(&g, "train", func(v, class int, set bool) {
		p := probabilities[v][class]
		if !set {
			p = 1 - p
		}
		loss, n = loss-math.Log(p), n+1
	})
	if !(math.Abs(got-loss/n) < 1e-4) {
		t.Errorf("loss %v, want %v over %v known labels", got, loss/n, n)
	}
}

// TestUnknownLabelsMetrics: metrics count the labels that are known, and a model learns from them.
func TestUnknownLabelsMetrics(t *testing.T) {
	g := plantedUnknown()
	s, c := mustBuild(t, g), testConfig()
	c.Epochs = 15
	res := mustRun(t, s, c)
	got, err := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: "t"})
	if err != nil {
		t.Fatal(err)
	}
	var hit, wrong, missed uint64
	of, probabilities := make([]uint64, plantedClasses), probabilitiesOf(t, s, "test")
	knownOf(&g, "test", func(v, class int, set bool) {
		if set {
			of[class]++
		}
		switch yes := probabilities[v][class] > got.Classes[class].Threshold; {
		case yes && set:
			hit++
		case yes:
			wrong++
		case set:
			missed++
		}
	})
	f, _ := task.F1(hit, wrong, missed)
	if got.Value != f || *res.Test != f || f < 0.6 {
		t.Errorf("eval says %v and the run %v, want %v and that it learns", got.Value, *res.Test, f)
	}
	for k, class := range got.Classes {
		if class.Nodes != of[k] {
			t.Errorf("class %d is known of %d nodes, want %d", k, class.Nodes, of[k])
		}
	}
}

// TestUnknownLabelsOnDevice: a device would take unknown labels for values.
func TestUnknownLabelsOnDevice(t *testing.T) {
	s, c := mustBuild(t, plantedUnknown()), testConfig()
	c.Backend = "cuda"
	if err := resolve(&c, s.Meta()); err == nil || !strings.Contains(err.Error(), "are unknown") {
		t.Errorf("cuda: %v", err)
	}
}
