package program

import (
	"math"
	"slices"
	"testing"

	"gdb/compute/backend"
)

// TestPaddedBatches: a padded batch has the loss and the gradients of the batch, for every model
// whose programs can be padded; where rows are read in place too. On the CPU, which pads nothing
// itself, those that have values of entries cannot: they are compared on a device.
func TestPaddedBatches(t *testing.T) {
	for name, m := range testModels {
		for _, inPlace := range []bool{false, true} {
			b := newBench(t, m, Options{InPlace: inPlace})
			if pads := name != "batch norm" && name != "relations"; b.program.Pads() != pads {
				t.Fatalf("%s: can be padded: %v", name, !pads)
			}
			if !b.program.Pads() || b.program.hasEntryValues() {
				continue
			}
			want := b.results(t)
			b.input.Padded = &Sizes{Nodes: []int{25, 13, 3}, Entries: []int{30, 20}}
			for i, got := range b.results(t) {
				if d := math.Abs(float64(got - want[i])); !(d < 2e-5) {
					t.Fatalf("%s: value %d of a padded batch is %g, not %g", name, i, got, want[i])
				}
			}
		}
	}
}

// hasEntryValues reports whether an operation computes values of entries.
func (p *Program) hasEntryValues() bool {
	return slices.ContainsFunc(p.values, func(v value) bool {
		return v.rows.kind == entryRows || v.rows.kind == loopRows
	})
}

// TestPad pads lists before the first.
func TestPad(t *testing.T) {
	var p paddedLists
	l := p.pad(backend.Lists{Off: []uint32{0, 2, 2, 3}, Idx: []uint32{4, 0, 1},
		At: []uint32{7, 8, 9}}, 5, 6, 10)
	for what, x := range map[string][2][]uint32{
		"off": {l.Off, {3, 3, 3, 5, 5, 6}},
		"idx": {l.Idx, {0, 0, 0, 14, 10, 11}},
		"at":  {l.At, {0, 0, 0, 7, 8, 9}},
	} {
		for i, v := range x[1] {
			if len(x[0]) != len(x[1]) || x[0][i] != v {
				t.Errorf("%s is %v, want %v", what, x[0], x[1])
				break
			}
		}
	}
}

// TestBounds: batches are padded once some were seen, and bounds grow where one is larger.
func TestBounds(t *testing.T) {
	var b Bounds
	sizes := func(n int) *Sizes {
		return &Sizes{Nodes: []int{n, 200, 50}, Entries: []int{2 * n, 300}}
	}
	for i := range boundsBatches {
		if p := b.Fit(sizes(1000 + i)); p != nil {
			t.Fatalf("batch %d is padded to %+v", i, p)
		}
	}
	first := *b.Fit(sizes(990))
	if want := []int{1072, 224, 50}; !slices.Equal(first.Nodes, want) {
		t.Fatalf("nodes are padded to %d, want a sixteenth more in sixteens, %d", first.Nodes, want)
	}
	if want := []int{2144, 320}; !slices.Equal(first.Entries, want) {
		t.Fatalf("entries are padded to %d, want %d", first.Entries, want)
	}
	if p := b.Fit(&Sizes{Nodes: []int{1100, 200, 50}, Entries: []int{2000, 300}}); p != nil {
		t.Errorf("one of more nodes is padded to %+v", p)
	}
	for what, s := range map[string]*Sizes{
		"one of fewer seeds": {Nodes: []int{900, 180, 40}, Entries: []int{1000, 100}},
		"a much smaller one": {Nodes: []int{300, 180, 50}, Entries: []int{500, 100}},
		"one of few entries": {Nodes: []int{1000, 180, 50}, Entries: []int{100, 100}},
		"a larger one":       sizes(1200),
	} {
		if p := b.Fit(s); p != nil {
			t.Errorf("%s is padded to %+v", what, p)
		}
	}
	if p := b.Fit(sizes(1200)); p == nil || p.Nodes[0] < 1200 {
		t.Errorf("after a larger one: %+v", p)
	}
	if p := b.Fit(&Sizes{Nodes: []int{2000, 400, 60}, Entries: []int{1000, 100}}); p != nil {
		t.Errorf("one of more seeds is padded to %+v", p)
	}
}
