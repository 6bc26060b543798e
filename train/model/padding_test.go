package model

import (
	"slices"
	"testing"

	"gdb/compute/program"
)

// TestPadding: the class of a batch is the smallest that holds it, of classes a sixteenth apart.
func TestPadding(t *testing.T) {
	sizes := func(n int) *program.Sizes {
		return &program.Sizes{Nodes: []int{n, 200, 50}, Entries: []int{2 * n, 300}}
	}
	p := NewPadding(sizes(1000))
	first, second := []int{1072, 224, 50}, []int{1152, 240, 50} // a sixteenth more in sixteens
	for n, want := range map[int][]int{990: first, 1000: first, 1072: first, 1073: second,
		1152: second} {
		s := sizes(n)
		s.Entries[0] = 2000
		if got := p.Fit(s); got == nil || !slices.Equal(got.Nodes, want) {
			t.Errorf("%d nodes are padded to %+v, want %d", n, got, want)
		}
	}
	if got, want := p.Fit(sizes(1000)).Entries, []int{2128, 320}; !slices.Equal(got, want) {
		t.Errorf("entries are padded to %d, want %d", got, want)
	}
	for what, s := range map[string]*program.Sizes{
		"one of fewer seeds": {Nodes: []int{1000, 180, 40}, Entries: []int{2000, 100}},
		"one of more seeds":  {Nodes: []int{1000, 180, 60}, Entries: []int{2000, 100}},
		"of other hops":      {Nodes: []int{1000, 50}, Entries: []int{2000}},
		"a much smaller one": {Nodes: []int{300, 180, 50}, Entries: []int{500, 100}},
		"one of few entries": {Nodes: []int{1000, 180, 50}, Entries: []int{100, 100}},
		"a much larger one":  sizes(4000),
	} {
		if got := p.Fit(s); got != nil {
			t.Errorf("%s is padded to %+v", what, got)
		}
	}
	if got := (&Padding{}).Fit(sizes(1000)); got != nil {
		t.Errorf("without classes: %+v", got)
	}
}
