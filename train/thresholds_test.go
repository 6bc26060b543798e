package train

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gdb/layout/layouttest"
	"gdb/train/runs"
	"gdb/train/task"
)

// plantedRare has labels of which one in three nodes has the last one, whatever its features say:
// no probability is over one half.
func plantedRare() layouttest.Graph {
	g := planted(true)
	for v, have := range g.Multi {
		if have == nil {
			continue
		}
		g.Multi[v] = []int{v % 2}
		if v*7919%11 < 4 {
			g.Multi[v] = append(g.Multi[v], plantedClasses-1)
		}
	}
	return g
}

// TestThresholdsOfRuns: labels are predicted above thresholds chosen on val, by the test of the run
// and by eval, and val was judged at them.
func TestThresholdsOfRuns(t *testing.T) {
	for _, metric := range []string{task.MicroF1, task.MacroF1, task.Accuracy, task.ROCAUC} {
		s, c := mustBuild(t, plantedRare()), testConfig()
		c.Metric = metric
		res := mustRun(t, s, c)
		for split, want := range map[string]float64{"val": res.Best, "test": *res.Test} {
			got, err := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: "t", Split: split})
			if err != nil || got.Value != want {
				t.Errorf("%s of %s: eval says %+v, %v; the run %v", metric, split, got, err, want)
			}
			last := got.Classes[plantedClasses-1]
			if last.Recall < 0.5 || !(last.Threshold > 0 && last.Threshold < 0.5) {
				t.Errorf("%s: the rare label is %+v", metric, last)
			}
		}
	}
}

// TestThresholdsOfPredictions: what predict says is what the probabilities and thresholds say.
func TestThresholdsOfPredictions(t *testing.T) {
	s := mustBuild(t, plantedRare())
	mustRun(t, s, testConfig())
	got, err := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: "t"})
	if err != nil {
		t.Fatal(err)
	}
	b := mustPredict(t, s, PredictConfig{Run: "t", Split: "test", Probabilities: true}, "out.csv")
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	below := 0 // one half, and predicted
	for _, row := range rows[1:] {
		var want []string
		for k, c := range got.Classes {
			p, err := strconv.ParseFloat(row[2+k], 64)
			if err != nil {
				t.Fatal(err)
			}
			if p > c.Threshold {
				want = append(want, c.Class)
				if p < 0.5 {
					below++
				}
			}
		}
		if row[1] != strings.Join(want, ";") {
			t.Errorf("node %s is %q, want %q", row[0], row[1], want)
		}
	}
	if below == 0 {
		t.Error("no label below one half is predicted")
	}
}

func TestThresholdsResume(t *testing.T) { checkResumes(t, plantedRare(), resumeConfig()) }

// TestRunsWithoutThresholds: of a run whose checkpoint has none, labels are predicted above one
// half.
func TestRunsWithoutThresholds(t *testing.T) {
	s := mustBuild(t, plantedRare())
	mustRun(t, s, testConfig())
	dir := runs.Open(s, "t")
	c, err := currentCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	kept := slices.DeleteFunc(c.arrays, func(a array) bool { return a.Name == thresholdsName })
	if len(kept) == len(c.arrays) {
		t.Fatal("the checkpoint has no thresholds")
	}
	if err := dir.WriteState(c.pos, kept, nil); err != nil {
		t.Fatal(err)
	}
	got, err := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: "t"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range got.Classes {
		if c.Threshold != 0.5 {
			t.Errorf("label %+v", c)
		}
	}
}
