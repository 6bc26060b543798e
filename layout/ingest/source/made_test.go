package source

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestDegree(t *testing.T) {
	m, err := NewMaker("degree", 10, 7, 1)
	if err != nil || m.Dim() != 5 {
		t.Fatal(m.Dim(), err)
	}
	for degree, want := range map[uint64]string{0: "[0 1 0 0 0]", 1: "[0.33333334 0 1 0 0]",
		3: "[0.6666667 0 0 1 0]", 7: "[1 0 0 0 1]"} {
		row := []float32{9, 9, 9, 9, 9}
		if m.Row(row, 4, degree); fmt.Sprint(row) != want {
			t.Errorf("degree %d: %v, want %s", degree, row, want)
		}
	}
	if m, err = NewMaker("degree", 3, 0, 1); err != nil || m.Dim() != 2 { // a graph without edges
		t.Fatal(m.Dim(), err)
	}
	row := make([]float32, 2)
	if m.Row(row, 0, 0); row[0] != 0 || row[1] != 1 {
		t.Error(row)
	}
}

// TestRandom: rows have length 1 and angles of 90 degrees, nearly, and are the node's own.
func TestRandom(t *testing.T) {
	m, err := NewMaker("random:2000", 100, 7, 1)
	if err != nil {
		t.Fatal(err)
	}
	a, b, again := make([]float32, 2000), make([]float32, 2000), make([]float32, 2000)
	m.Row(a, 1, 0)
	m.Row(b, 2, 0)
	m.Row(again, 1, 5)
	dot := func(a, b []float32) (sum float64) {
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
		}
		return sum
	}
	if math.Abs(dot(a, a)-1) > 0.15 || math.Abs(dot(a, b)) > 0.15 || !slices.Equal(a, again) {
		t.Error(dot(a, a), dot(a, b))
	}
}

func TestOneHot(t *testing.T) {
	if _, err := NewMaker("one-hot", oneHotMost+1, 1, 1); err == nil {
		t.Error("too many nodes are taken")
	}
	m, err := NewMaker("one-hot", 3, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	row := make([]float32, m.Dim())
	if m.Row(row, 2, 1); fmt.Sprint(row) != "[0 0 1]" {
		t.Error(row)
	}
}

func TestParse(t *testing.T) {
	for _, s := range []string{"random:0", "random:x", "random:99999", "f.npy", "degree:3:4"} {
		if k, err := NewMaker(s, 1, 1, 1); err == nil {
			t.Errorf("%s is %v", s, k)
		}
	}
}
