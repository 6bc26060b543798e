package train

import (
	"math"
	"slices"
	"testing"

	"gdb/layout"
	"gdb/layout/rowfile"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// plantedSparse is planted with features that are mostly zeros, stored as dtype.
func plantedSparse(t *testing.T, dtype string) *layout.Store {
	t.Helper()
	g := plantedEdges()
	const times = 12
	x := make([]float32, times*len(g.Features))
	for i, f := range g.Features {
		x[times*i+i%times] = f
	}
	g.Features, g.Dim, g.DType = x, times*g.Dim, dtype
	return mustBuild(t, g)
}

// TestSparseTrains: models learn from sparse rows what they learn from the same rows with all their
// zeros, dropouts included, and both are evaluated alike, on whole lists and on samples. Rows stay
// sparse where a model multiplies them first, and columns are not scaled.
func TestSparseTrains(t *testing.T) {
	kept := map[string]bool{"sage": true, "gcn": true, "gin": true, "gat": true, "gatv2": true,
		"mlp": true, "rgcn": true}
	for _, name := range []string{"sage", "gcn", "gin", "gat", "gatv2", "mlp", "sgc", "rgcn",
		"largest", "row", "zscore"} {
		if testing.Short() && !slices.Contains([]string{"gat", "sgc", "rgcn", "row"}, name) {
			continue // its rows are read and multiplied as those of the others are
		}
		c := testConfig()
		c.Epochs, c.Hidden, c.Normalize, c.Patience = 2, 8, "none", 0
		switch name {
		case "largest":
			c.Aggregate = "max"
		case "row", "zscore":
			c.Normalize = name
		default:
			c.Model = name
		}
		var losses [2][]float64
		var values [2]float64
		for i, dtype := range []string{rowfile.F32, rowfile.Sparse} {
			s := plantedSparse(t, dtype)
			_, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
				if r, ok := e.Epoch.(*runs.Epoch); ok {
					losses[i] = append(losses[i], r.Loss, *r.ValLoss)
				}
			})
			if err != nil {
				t.Fatal(name, err)
			}
			res, err := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: c.Run,
				Split: "val", Mode: setting.EvalSampled})
			if err != nil {
				t.Fatal(name, err)
			}
			values[i] = res.Value
			had, err := runs.Load(s, c.Run)
			if want := i == 1 && (kept[name] || name == "row"); err != nil ||
				(had.SparseWords > 0) != want {
				t.Errorf("%s: %d words a sparse row, %v", name, had.SparseWords, err)
			}
		}
		for i, want := range losses[0] {
			if got := losses[1][i]; !(math.Abs(got-want) <= 1e-4*want) {
				t.Errorf("%s: losses %v, of dense rows %v", name, losses[1], losses[0])
			}
		}
		if values[0] != values[1] {
			t.Errorf("%s: %g sampled, of dense rows %g", name, values[1], values[0])
		}
	}
}
