package ingest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/source"
	"gdb/layout/inspect"
)

// TestShared: a column of numbers that is a feature too is stored once, where its values follow
// from the feature bit by bit, and reads as it was given in any case.
func TestShared(t *testing.T) {
	const rows = 20000
	cell := map[string]func(i int) string{
		"half":  func(i int) string { return fmt.Sprint(float64(i%1000) / 256) },
		"mixed": func(i int) string { return fmt.Sprintf("%.3f", float64(i%8000-4000)/1000) },
		"zero":  func(i int) string { return []string{"-0.000", "0.25", "0.1"}[i%3] },
		"third": func(i int) string { return fmt.Sprint(float64(i+1) / 300000) },
		"later": func(i int) string { // the last block has more digits
			return []string{"1.5", "0.123456789"}[i/(rows-9)]
		},
	}
	names := []string{"half", "later", "mixed", "third", "zero"}
	text := strings.Builder{}
	text.WriteString("id," + strings.Join(names, ",") + "\n")
	for i := range rows {
		fmt.Fprint(&text, i)
		for _, name := range names {
			text.WriteString("," + cell[name](i))
		}
		text.WriteString("\n")
	}
	for _, normalize := range []string{"none", "auto"} {
		fs := typedFiles(t, map[string]string{"users.csv": text.String(),
			"orders.csv": "user,item\n7,x\n"})
		opt := Options{Out: "store", Options: source.Options{IDCol: "item.sku", LabelCol: "none",
			FeatureCols: "*",
			NodeTables: []source.NodeTable{{Type: "item", File: "items.csv"},
				{Type: "user", File: "users.csv"}},
			Relations: []source.Relation{{Src: "user", Name: "buys", Dst: "item",
				File: "orders.csv"}}}, Normalize: normalize}
		if err := ingestTyped(t, fs, opt, 0); err != nil {
			t.Fatal(err)
		}
		r := open(t, fs, "store")
		user := r.meta.NodeTypes[1]
		for k, name := range names {
			c := user.Columns[k]
			var want []float64
			for i := range rows {
				var x float64
				if _, err := fmt.Sscan(cell[name](i), &x); err != nil {
					t.Fatal(err)
				}
				want = append(want, x)
			}
			of := kv.FeatureAt{Path: "features/features.rows", First: 2, Column: k}
			if normalize == "auto" { // which scales these
				of = kv.FeatureAt{}
			}
			if c.Shared != of {
				t.Errorf("--normalize %s: %s is of feature %+v", normalize, name, c.Shared)
			}
			r.sameFloats(c, want)
			at := slices.IndexFunc(r.meta.Files, func(f kv.FileMeta) bool {
				return f.Path == c.Path
			})
			size, least := r.meta.Files[at].Size, int64(13824)
			if shared := size <= least; of.Path != "" && shared != (name != "third") {
				t.Errorf("%s takes %d bytes", name, size)
			}
		}
		if whole := r.meta.NodeTypes[0].Columns[0]; whole.Shared.Path != "" {
			t.Errorf("integers are of feature %+v", whole.Shared)
		}
		found, err := inspect.Check(t.Context(), r.dev, r.store, inspect.CheckOptions{Full: true})
		if err != nil || len(found.Findings) > 0 {
			t.Errorf("check finds %+v, %v", found, err)
		}
	}
}

// sameFloats compares a column with values: as a scan, and by rows in any order.
func (r *reading) sameFloats(c kv.TableColumn, want []float64) {
	r.t.Helper()
	f, err := columnfile.Open(r.t.Context(), r.store, r.dev, c, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	same := func(row uint64, got float64) {
		if w := want[row]; math.Float64bits(got) != math.Float64bits(w) {
			r.t.Fatalf("row %d of %s is %g, want %g", row, c.Name, got, w)
		}
	}
	err = f.Scan(r.t.Context(), 5, c.Rows-5, nil, func(at uint64, v *columnfile.Values) error {
		for i, x := range v.Floats {
			same(at+uint64(i), x)
		}
		return nil
	})
	some := []uint64{c.Rows - 1, 3, 9000, 3, 17}
	var got columnfile.Values
	if err == nil {
		err = f.Gather(r.t.Context(), some, &got)
	}
	for i, x := range got.Floats {
		same(some[i], x)
	}
	if err != nil || f.Close() != nil {
		r.t.Fatal(err)
	}
}
