package train

import (
	"context"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"
	"gdb/sample"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// aheadConfigs are models of which sums can be computed before, on whole lists: then the sums are
// the same in each step.
func aheadConfigs() map[string]setting.Options {
	return map[string]setting.Options{
		"sage":          {},
		"sage sum":      {Aggregate: "sum", Norm: "layer"},
		"sage max":      {Aggregate: "max", Residual: true},
		"sage weighted": {EdgeWeight: true},
		"gcn":           {},
		"gcn residual":  {Residual: true},
		"gcn mean":      {Aggregate: "mean"},
		"gcn weighted":  {EdgeWeight: true},
		"gin":           {Norm: "layer"},
		"gin residual":  {Aggregate: "mean", Residual: true},
		"sgc":           {},
		"sgc mean":      {Aggregate: "mean"},
	}
}

// TestSumsAheadAreThose: a training on whole lists has the same losses whether the sums of features
// are computed in each step or before, and its evaluation sees the same.
func TestSumsAheadAreThose(t *testing.T) {
	notShort(t)
	for name, o := range aheadConfigs() {
		t.Run(name, func(t *testing.T) {
			c := testConfig()
			c.Model, _, _ = strings.Cut(name, " ")
			c.Fanout, c.Dropout, c.Epochs, c.Options = []int{sample.All, sample.All}, 0, 4, o
			var losses [2][]float64
			var tests [2]float64
			for i := range 2 {
				c.Precompute = i == 1
				s := mustBuild(t, plantedEdges())
				res, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
					if e.Epoch != nil {
						losses[i] = append(losses[i], e.Epoch.(*runs.Epoch).Loss)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				tests[i] = *res.Test
				got, err := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: c.Run})
				if err != nil || got.Value != tests[i] {
					t.Errorf("eval gives %v, %v; the run %g", got, err, tests[i])
				}
			}
			if len(losses[0]) != 4 || len(losses[1]) != 4 {
				t.Fatalf("losses %v", losses)
			}
			for i, want := range losses[0] {
				if got := losses[1][i]; math.Abs(got-want) > 1e-4*want {
					t.Errorf("epoch %d: loss %g with sums ahead, %g without", i+1, got, want)
				}
			}
			if tests[0] != tests[1] {
				t.Errorf("test %g and %g", tests[1], tests[0])
			}
		})
	}
}

// TestSumsOfHops: an mlp has the features and their sums over 1, 2 and 3 hops beside each other, as
// computed one by one, whatever the memory.
func TestSumsOfHops(t *testing.T) {
	g := planted(false)
	s := mustBuild(t, g)
	c := testConfig()
	c.Model, c.Fanout, c.Options = "mlp", []int{1, 1, 1}, setting.Options{Precompute: true}
	for _, memory := range []int64{1 << 30, 160 << 20} {
		c.Memory = memory
		of, err := withSums(t.Context(), s, mustDevice(t), &c, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		want, got := propagated(&g, 3), readFeatures(t, of)
		if len(got) != len(want) {
			t.Fatalf("%d values, want %d", len(got), len(want))
		}
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-5 {
				t.Fatalf("memory %d: value %d is %g, want %g", memory, i, got[i], want[i])
			}
		}
		names, err := s.FS().List(s.Path("prep"))
		slices.Sort(names)
		if err != nil || len(names) != 2 || !strings.HasSuffix(names[0], ".crc") {
			t.Errorf("prep has %v, %v", names, err)
		}
		if err := s.FS().RemoveAll(s.Path("prep")); err != nil {
			t.Fatal(err)
		}
	}
}

// propagated are the features of nodes and their propagations as gcn has them, computed plainly.
func propagated(g *layouttest.Graph, hops int) (rows []float32) {
	degree := make([]float64, g.Nodes)
	for _, e := range g.Edges {
		degree[e.Dst]++
	}
	now := make([]float64, len(g.Features))
	for i, x := range g.Features {
		now[i] = float64(x)
	}
	all := [][]float64{now}
	for range hops {
		next := make([]float64, len(now))
		add := func(from, to int) {
			f := 1 / math.Sqrt((1+degree[from])*(1+degree[to]))
			for k := range g.Dim {
				next[to*g.Dim+k] += f * now[from*g.Dim+k]
			}
		}
		for _, e := range g.Edges {
			add(int(e.Src), int(e.Dst))
		}
		for v := range int(g.Nodes) {
			add(v, v)
		}
		now = next
		all = append(all, now)
	}
	for v := range int(g.Nodes) {
		for _, x := range all {
			for k := range g.Dim {
				rows = append(rows, float32(x[v*g.Dim+k]))
			}
		}
	}
	return rows
}

// readFeatures reads the features of all nodes.
func readFeatures(t *testing.T, s *layout.Store) []float32 {
	t.Helper()
	m := s.Meta()
	r, err := rowfile.Open(t.Context(), s, mustDevice(t), m.Features[0], mem.NewBudget(1<<30))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	out := make([]float32, int(m.Nodes)*m.Features[0].Dim)
	if err := r.Scan(t.Context(), 0, int(m.Nodes), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSumsAheadAreMadeAgain: what an interrupted training left of them is replaced, a whole file is
// used, and damage in it is found.
func TestSumsAheadAreMadeAgain(t *testing.T) {
	dir := t.TempDir()
	s := layouttest.Build(t, vfs.Default, dir, planted(false))
	c := testConfig()
	c.Model, c.Options = "mlp", setting.Options{Precompute: true}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var notes string
	note := func(text string) { notes += text }
	if _, err := withSums(ctx, s, mustDevice(t), &c, note); err == nil {
		t.Fatal("an interrupted computation gave sums")
	}
	of, err := withSums(t.Context(), s, mustDevice(t), &c, note)
	if err != nil || !strings.Contains(notes, "were computed") {
		t.Fatalf("%v, %v", notes, err)
	}
	want := readFeatures(t, of)
	notes = ""
	of, err = withSums(t.Context(), s, mustDevice(t), &c, note)
	if err != nil || notes != "" || !slices.Equal(readFeatures(t, of), want) {
		t.Fatalf("again: %v, %v", notes, err)
	}
	path := s.Path(of.Meta().Features[0].Path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(b); i += 512 {
		b[i] ^= 1
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), s, mustDevice(t), c, nil)
	if err == nil || !strings.Contains(err.Error(), "delete the file") ||
		!strings.Contains(err.Error(), of.Meta().Features[0].Path) {
		t.Errorf("error %v", err)
	}
}

// TestSumsAheadAreRefused: where sums change with what is learned.
func TestSumsAheadAreRefused(t *testing.T) {
	for _, tc := range []struct {
		model string
		o     setting.Options
		want  string
	}{
		{"gat", setting.Options{}, "sage, gcn, gin, sgc, mlp can"},
		{"sage", setting.Options{NodeEmbedding: 4}, "change with each step"},
	} {
		c := testConfig()
		c.Model, c.Options = tc.model, tc.o
		c.Precompute = true
		_, err := Run(t.Context(), mustBuild(t, planted(false)), mustDevice(t), c, nil)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q in it", tc.model, err, tc.want)
		}
	}
}
