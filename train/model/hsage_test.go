package model

import "testing"

// TestHSAGEWithoutSources: the first layer reads no lists where no edge comes from a type with
// features, and the next does.
func TestHSAGEWithoutSources(t *testing.T) {
	a, err := Find("hsage")
	if err != nil {
		t.Fatal(err)
	}
	s := &Spec{Architecture: a, Dims: []int{6, 8, 3}}
	s.Relations, s.NodeTypes = 2, []int{0, 10, 20}
	s.TypeWidths, s.RelationSources = []int{0, 0, 6}, []int{0, 1}
	layers := s.ExactLayers()
	for i, want := range []int{0, 1} {
		if got := len(layers[i].Pulls()); got != want {
			t.Errorf("layer %d has %d sums of lists, want %d", i+1, got, want)
		}
	}
}
