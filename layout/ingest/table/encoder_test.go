package table

import (
	"context"
	"fmt"
	"io"
	"testing"

	"gdb/layout/ingest/input"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// encode makes rows of the columns age, city and score of a table.
func encode(t *testing.T, table, fill string) (rows [][]float32, e *Encoder) {
	t.Helper()
	fs := vfs.NewMem()
	layouttest.WriteFile(t, fs, "n.csv", []byte(table))
	f, err := ParseFill(fill)
	if err != nil {
		t.Fatal(err)
	}
	e = NewEncoder([]FeatureColumn{{Field: 1, Name: "age", Dim: 1},
		{Field: 2, Name: "city", Category: true},
		{Field: 3, Name: "score", Dim: 1}}, f)
	each := func(fn func(b *input.Batch) error) {
		r, err := input.OpenText(fs, "n.csv", input.Spec{Format: input.Format{Delim: ','}, Width: 4,
			Columns: []input.Column{{Field: 2, Kind: input.Text}}, Vector: []int{1, 3}, Gaps: f.On,
			Missing: []string{"NA"}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for {
			b, err := r.Next(context.Background())
			if err == io.EOF {
				return
			}
			if err == nil && len(b.Bad) > 0 {
				err = fmt.Errorf("%v", b.Bad)
			}
			if err == nil {
				err = fn(b)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	each(func(b *input.Batch) error { return e.Measure(b, 0) })
	e.Finish()
	each(func(b *input.Batch) error {
		all, err := e.Encode(b, 0)
		for i := range b.Rows {
			rows = append(rows, append([]float32(nil), all[i*e.Dim():(i+1)*e.Dim()]...))
		}
		return err
	})
	return rows, e
}

func TestEncode(t *testing.T) {
	const table = "1,20,Rome,true\n2,,Bonn,false\n3,40,NA,NA\n"
	for _, c := range []struct{ fill, want string }{
		{"mean", "[[20 0 1 1] [30 1 0 0] [40 0 0 0.5]]"},
		{"zero", "[[20 0 1 1] [0 1 0 0] [40 0 0 0]]"},
		{"-1", "[[20 0 1 1] [-1 1 0 0] [40 0 0 -1]]"},
		{"mean,indicator", "[[20 0 0 1 1 0] [30 1 1 0 0 0] [40 0 0 0 0.5 1]]"},
	} {
		rows, e := encode(t, table, c.fill)
		if got := fmt.Sprint(rows); got != c.want {
			t.Errorf("--fill %s: %s, want %s", c.fill, got, c.want)
		}
		if want := "city has 2 categories; 2 columns had gaps: 2 values are filled"; e.Describe() !=
			want {
			t.Errorf("%q, want %q", e.Describe(), want)
		}
	}
}

func TestNames(t *testing.T) {
	const table = "1,20,Rome,true\n2,,Bonn,false\n3,40,NA,NA\n"
	_, e := encode(t, table, "mean,indicator")
	want := "[{age 0} {age=missing 0} {city=Bonn 0} {city=Rome 0} {score 0} {score=missing 0}]"
	if got := fmt.Sprint(e.Names()); got != want || len(e.Names()) != e.Dim() {
		t.Errorf("%d columns are called %s, want %s", e.Dim(), got, want)
	}
	e = NewEncoder([]FeatureColumn{{Field: 1, Name: "x", Dim: 3, List: true}}, Fill{})
	if got := fmt.Sprint(e.Names()); got != "[{x 3}]" {
		t.Errorf("a list of 3 is called %s", got)
	}
}

func TestDescribeOneGap(t *testing.T) {
	_, e := encode(t, "1,20,Rome,true\n2,,Bonn,false\n", "mean")
	if want := "city has 2 categories; 1 column had gaps: 1 value is filled"; e.Describe() != want {
		t.Errorf("%q, want %q", e.Describe(), want)
	}
}

func TestParseFill(t *testing.T) {
	for _, s := range []string{"median", "nan", "inf", "mean,flag", "1,"} {
		if f, err := ParseFill(s); err == nil {
			t.Errorf("--fill %s is %+v", s, f)
		}
	}
}
