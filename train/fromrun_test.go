package train

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/rowfile"
	"gdb/train/runs"
	"gdb/train/setting"
)

// arraysOf returns the arrays of the last checkpoint of a run, by their names.
func arraysOf(t *testing.T, s *layout.Store, c Config) map[string][]float32 {
	t.Helper()
	last, err := currentCheckpoint(runs.Open(s, c.Run))
	if err != nil {
		t.Fatal(err)
	}
	by := map[string][]float32{}
	for _, a := range last.arrays {
		by[a.Name] = a.Values
	}
	return by
}

// still makes a training whose steps change weights by less than they can show.
func still(c Config, from string) Config {
	c.Run, c.FromRun, c.Epochs, c.LR, c.WeightDecay = "after-"+from, from, 1, 1e-12, 0
	return c
}

// TestFromRun: a run begins with the weights and the vectors of nodes of another, those of its best
// evaluation, with the scale of its labels and what it measured of the features; its metrics before
// any step are therefore those of the other.
func TestFromRun(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"sage":    func(*Config) {},
		"norm":    func(c *Config) { c.Norm = "batch" },
		"vectors": func(c *Config) { c.NodeEmbedding = 4 },
		"early":   func(c *Config) { c.LR, c.Epochs = 0.05, 25 }, // the best epoch is not the last
		"scaled": func(c *Config) { // otherwise than it would be measured
			c.Normalize = setting.NormalizeColumns
			c.Scale = &rowfile.Scale{Mean: slices.Repeat([]float32{2}, plantedDim),
				Inverse: slices.Repeat([]float32{3}, plantedDim)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustBuild(t, planted(false))
			c := testConfig()
			c.Epochs, c.Dropout = 4, 0
			change(&c)
			first := mustRun(t, s, c)
			next := still(c, c.Run)
			next.Scale = nil
			res := mustRun(t, s, next)
			was, is := arraysOf(t, s, c)["best weights"], arraysOf(t, s, next)["weights"]
			if len(was) == 0 || len(was) != len(is) {
				t.Fatalf("%d weights, and %d", len(was), len(is))
			}
			if name == "early" && slices.Equal(was, arraysOf(t, s, c)["weights"]) {
				t.Fatal("the best weights are the last")
			}
			for i := range was {
				if math.Abs(float64(was[i]-is[i])) > 1e-6 && name != "norm" {
					t.Fatalf("weight %d is %g, and was %g", i, is[i], was[i])
				}
			}
			if name != "norm" && *first.Test != *res.Test { // its statistics go on
				t.Errorf("test %v, and was %v", *res.Test, *first.Test)
			}
		})
	}
}

// TestFromRunNumbers: labels that are numbers keep the scale that the weights were learned with.
func TestFromRunNumbers(t *testing.T) {
	g := plantedNumbers()
	s := mustBuild(t, g)
	c := numbersConfig()
	c.Epochs = 4
	first := mustRun(t, s, c)
	next := still(c, c.Run)
	next.Epochs = 2
	if res := mustRun(t, s, next); math.Abs(*res.Test-*first.Test) > 1e-6**first.Test {
		t.Errorf("test %v, and was %v", *res.Test, *first.Test)
	}
	was, err := currentCheckpoint(runs.Open(s, c.Run))
	if err != nil {
		t.Fatal(err)
	}
	is, err := currentCheckpoint(runs.Open(s, next.Run))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := was.pos.Scale, is.pos.Scale; a == nil || b == nil || *a != *b {
		t.Errorf("the scale is %v, and was %v", b, a)
	}
}

// TestFromRunResumes: a run that began with the weights of another goes on from its own checkpoint,
// also when the other is gone, and ends as one that was never stopped.
func TestFromRunResumes(t *testing.T) {
	c := resumeConfig()
	next := c
	next.Run, next.FromRun = "next", c.Run
	whole := mustBuild(t, planted(false))
	mustRun(t, whole, c)
	mustRun(t, whole, next)
	want, weights := finalState(t, whole, next.Run)

	s := mustBuild(t, planted(false))
	mustRun(t, s, c)
	part := next
	part.Epochs = 2
	mustRun(t, s, part)
	if err := s.FS().RemoveAll(s.Path("runs", c.Run)); err != nil {
		t.Fatal(err)
	}
	rest := next
	rest.Run, rest.Resume = "", next.Run
	mustRun(t, s, rest)
	checkFinal(t, s, next, want, weights)
	mustRun(t, s, c) // and without the other's weights it would end elsewhere
	alone := next
	alone.Run, alone.FromRun = "alone", ""
	mustRun(t, s, alone)
	if _, b := finalState(t, s, alone.Run); string(b) == string(weights) {
		t.Error("it ends with the same weights as a run from the beginning")
	}
}

// TestFromRunRefused: weights that do not fit are refused, with what differs.
func TestFromRunRefused(t *testing.T) {
	s := mustBuild(t, planted(false))
	c := testConfig()
	c.Epochs = 1
	mustRun(t, s, c)
	for _, bad := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { c.FromRun = "r9" }, `no run "r9"`},
		{func(c *Config) { c.Hidden = 8 }, "hidden is 8 here, and the weights"},
		{func(c *Config) { c.Model = "gcn" }, "model is gcn here"},
		{func(c *Config) { c.Residual = true }, "residual is true here"},
		{func(c *Config) { c.NodeEmbedding = 4 }, "node-embedding is 4 here"},
		{func(c *Config) { c.Fanout = []int{4, 3, 2} }, "its layers have the widths"},
		{func(c *Config) { c.Normalize = setting.NormalizeRow }, "and this one stored and row"},
	} {
		next := still(c, c.Run)
		bad.change(&next)
		_, err := Run(context.Background(), s, mustDevice(t), next, nil)
		if err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("error %v, want %q", err, bad.want)
		}
		if _, err := s.FS().Stat(s.Path("runs", next.Run)); err == nil {
			t.Errorf("%s: the run was made", bad.want)
		}
	}
}
