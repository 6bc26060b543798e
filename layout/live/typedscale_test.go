package live

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/openfiles"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// featureRowsOf returns the rows of features of the first n nodes.
func featureRowsOf(t *testing.T, fs vfs.FS, n int) (rows [][]float32) {
	t.Helper()
	s, dev := mustOpenOn(t, fs, "s")
	defer dev.Close()
	open := openfiles.New(s, dev, nil)
	defer open.Close()
	f := s.Meta().Features[0]
	r, err := open.Rows(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float32, n*f.Dim)
	if err := r.Scan(t.Context(), 0, n, values); err != nil {
		t.Fatal(err)
	}
	return slices.Collect(slices.Chunk(values, f.Dim))
}

// TestTypedScale: features that the first ingest scaled keep its scale: those of new nodes, of
// columns that change, and of those that a table lacks, whatever the values of later rows are.
func TestTypedScale(t *testing.T) {
	fs := vfs.NewMem()
	// The mean of age is 20 and its deviation 10; those of pay are 5000 and 1000.
	writeText(t, fs, "user.csv", "id,age,pay\n1,10,4000\n2,30,6000\n")
	writeText(t, fs, "item.csv", "id,name\na,Pen\n")
	writeText(t, fs, "buys.csv", "user,item\n1,a\n")
	opt := ingest.Options{Out: "s", Normalize: "auto"}
	opt.Memory, opt.FeatureCols, opt.LabelCol, opt.SplitCol = 1<<30, "user.age,user.pay", "none",
		"none"
	opt.Fill = "mean"
	opt.NodeTables = []source.NodeTable{{Type: "user", File: "user.csv"},
		{Type: "item", File: "item.csv"}}
	opt.Relations = buysFrom("buys.csv")
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	is := func(why string, want ...[]float32) {
		t.Helper()
		if got := featureRowsOf(t, fs, len(want)); !slices.EqualFunc(got, want,
			slices.Equal[[]float32]) {
			t.Errorf("%s: rows %v, want %v", why, got, want)
		}
	}
	is("of the ingest", []float32{-1, -1}, []float32{1, 1})
	for _, c := range []struct {
		table string
		want  [][]float32
	}{
		{"id,pay,age\n3,9000,50\n1,5000,20\n", [][]float32{{0, 0}, {1, 1}, {3, 4}}},
		{"id,age\n2,0\n4,120\n", [][]float32{{0, 0}, {-2, 1}, {3, 4}, {10, 0}}},
		{"id,pay\n4,\n5,3000\n", [][]float32{{0, 0}, {-2, 1}, {3, 4}, {10, 0}, {0, -2}}},
	} {
		writeText(t, fs, "more.csv", c.table)
		opt := ingest.Options{}
		opt.Memory = 1 << 30
		opt.NodeTables = []source.NodeTable{{Type: "user", File: "more.csv"}}
		if _, err := Append(t.Context(), fs, "s", opt); err != nil {
			t.Fatal(err)
		}
		is(c.table, c.want...)
	}
}

// TestTypedLittleMemory: a table whose text ids alone are more than the memory that the commit has
// is added all the same, and with less than the least memory the commit says what that is.
func TestTypedLittleMemory(t *testing.T) {
	fs := typedCrashStore(t)
	var text strings.Builder
	text.WriteString("id,name\n")
	const rows, letters = 40_000, 900 // 36 MB, of which a commit of 128 MiB has 32 MiB
	for i := range rows {
		fmt.Fprintf(&text, "%s%d,n%d\n", strings.Repeat("x", letters), i, i)
	}
	writeText(t, fs, "many.csv", text.String())
	opt := ingest.Options{}
	opt.NodeTables = []source.NodeTable{{Type: "item", File: "many.csv"}}
	opt.Memory = 127 << 20
	if _, err := Append(t.Context(), fs, "s", opt); !errors.Is(err, ErrUsage) ||
		!strings.Contains(err.Error(), "--memory 127.0 MiB is too small") ||
		!strings.Contains(err.Error(), "the least is 128.0 MiB") {
		t.Errorf("127 MiB: %v", err)
	}
	opt.Memory = 128 << 20
	done, err := Append(t.Context(), fs, "s", opt)
	if err != nil || done.Nodes != rows || done.Snapshot != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
}
