package ingest

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/layout/ingest/source"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestSparseRows: features that come as compressed rows are stored so where that is smaller, in
// any order of nodes, and hold what the same ingest stores with all values. Entries of one column
// add up, wherever they stand, and those of 0 are none.
func TestSparseRows(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("d", 0o755); err != nil {
		t.Fatal(err)
	}
	mustArray(t, fs, "d/edges.npy", "<i8", []uint64{0, 1, 1, 2, 2, 3}, 3, 2)
	mustArray(t, fs, "d/x_indptr.npy", "<i8", []int64{0, 3, 3, 4, 7}, 5)
	mustArray(t, fs, "d/x_indices.npy", "<i4", []int32{90, 4, 90, 0, 7, 9, 11}, 7)
	mustArray(t, fs, "d/x_shape.npy", "<i8", []int64{4, 100}, 2)
	for name, c := range map[string]struct {
		values []float32
		opt    Options
		row    int // bytes
	}{
		"values":  {[]float32{1, 2, 3, 4, 0, 5, 6}, Options{}, 8 + 4 + 2*4},
		"ones":    {[]float32{1, 1, 0, 1, 1, 1, 1}, Options{FeatureDType: "auto"}, 8 + 2*4},
		"moved":   {[]float32{1, 2, 3, 4, 0, 5, 6}, Options{Partitioner: "random", Seed: 3}, 20},
		"to one":  {[]float32{1, 2, 3, 4, 0, 5, 6}, Options{Normalize: "row"}, 20},
		"zscore":  {[]float32{1, 2, 3, 4, 0, 5, 6}, Options{Normalize: "zscore"}, 400},
		"asked":   {[]float32{1, 2, 3, 4, 0, 5, 6}, Options{FeatureDType: "f32"}, 400},
		"counted": {[]float32{1, 1, 1, 1, 1, 1, 1}, Options{}, 8 + 8 + 3*4},
	} {
		mustArray(t, fs, "d/x_values.npy", "<f4", c.values, 7)
		notes := &strings.Builder{}
		ingest := func(out string, opt Options) *reading {
			opt.Options = source.Options{Sources: []string{"d"}, Memory: 128 << 20, Notes: notes}
			opt.Out = name + out
			if _, err := Run(t.Context(), fs, opt); err != nil {
				t.Fatal(name, err)
			}
			return open(t, fs, opt.Out)
		}
		got := ingest("", c.opt)
		c.opt.FeatureDType = "f32"
		want := ingest("-f32", c.opt)
		m := got.meta.Features[0]
		if m.RowBytes != c.row || (m.DType == rowfile.Sparse) != (c.row < 400) || m.Dim != 100 {
			t.Errorf("%s: rows %+v, want %d bytes", name, m, c.row)
		}
		if counts := got.meta.Stats.CountFeatures; !slices.Equal(counts,
			want.meta.Stats.CountFeatures) {
			t.Errorf("%s: counts %v", name, counts)
		}
		dense := want.rows(want.meta.Features[0])
		for i, v := range got.rows(m) {
			if math.Abs(float64(v-dense[i])) > 1e-6 {
				t.Fatalf("%s: value %d of node %d is %g, want %g", name, i%100, i/100, v, dense[i])
			}
		}
		if sparse := strings.Contains(notes.String(), "are stored so"); sparse != (c.row < 400) {
			t.Errorf("%s: notes %s", name, notes)
		}
	}
	mustArray(t, fs, "d/x_values.npy", "<f4", slices.Repeat([]float32{float32(math.NaN())}, 7), 7)
	_, err := Run(t.Context(), fs, Options{Options: source.Options{Sources: []string{"d"},
		Memory: 128 << 20}, Out: "nan"})
	if err == nil || !strings.Contains(err.Error(), "d/x_indptr.npy row 0: feature 4 is NaN") {
		t.Errorf("NaN: %v", err)
	}
}
