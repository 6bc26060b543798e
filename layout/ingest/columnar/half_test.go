package columnar

import (
	"context"
	"os"
	"testing"

	"gdb/layout/ingest/input"
)

// TestHalf reads a column of 16 bits, as pyarrow 16.1 wrote it.
func TestHalf(t *testing.T) {
	data, err := os.ReadFile("testdata/half.parquet")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(memFile(t, "half.parquet", data), "half.parquet", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := Read(f, input.Spec{Width: 2, Names: f.Names(), NaN: true, Vector: []int{0},
		Columns: []input.Column{{Field: 0, Kind: input.Optional}}}, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := r.Next(context.Background())
	if err != nil || b.Rows != 5 {
		t.Fatalf("%d rows, %v", b.Rows, err)
	}
	for i, want := range []float32{-1.5, 0, 65504, 1.0 / (1 << 24), 0.099975586} {
		x, y := b.Vector[i], b.Columns[0].Floats[i]
		if i == 1 {
			if x == x || y == y {
				t.Errorf("a gap is %v and %v", x, y)
			}
			continue
		}
		if x != want || y != want {
			t.Errorf("row %d is %v and %v, want %v", i, x, y, want)
		}
	}
	if head, err := f.Head(1); err != nil || head[0][0] != "-1.5" {
		t.Errorf("the first row is %q, %v", head, err)
	}
}
