package program

import (
	"math"
	"slices"
	"testing"

	"gdb/compute/backend"
)

// TestLargestOfNaN: a NaN is larger than any number, the first of equal values and the first NaN
// are taken, and an empty list has zero and no row; of the backend as of the reference.
func TestLargestOfNaN(t *testing.T) {
	nan, none := float32(math.NaN()), math.Float32bits(math.Float32frombits(1<<32-1))
	x := []float32{1, nan, 2, 2, -3, nan}
	lists := backend.Lists{Off: []uint32{0, 3, 6, 6, 8, 9}, Idx: []uint32{0, 1, 2, 4, 2, 3, 5, 1,
		4}}
	want, rows := []float32{nan, 2, 0, nan, -3}, []uint32{1, 2, none, 5, 4}
	be, err := backend.OpenCPU(backend.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	if err := be.Begin(); err != nil {
		t.Fatal(err)
	}
	o := &backend.Operands{Out: be.Scratch(5, 1), Lists: be.Segments(lists),
		In: [4]backend.Tensor{be.Host(x, 6, 1)}, Extra: [2]backend.Tensor{be.Scratch(5, 1)}}
	plain := backend.ReadPlain(be, o, lists)
	opPullMax.Ref(plain)
	be.Run(&opPullMax.Op, o)
	for what, got := range map[string]*backend.Plain{"reference": plain,
		"backend": backend.ReadPlain(be, o, lists)} {
		if !slices.EqualFunc(got.To.V, want, func(a, b float32) bool {
			return a == b || a != a && b != b
		}) {
			t.Errorf("%s: largest %v, want %v", what, got.To.V, want)
		}
		for i, row := range got.More[0].V {
			if math.Float32bits(row) != rows[i] {
				t.Errorf("%s: list %d has row %d, want %d", what, i, math.Float32bits(row), rows[i])
			}
		}
	}
}
