package stream

import (
	"math"
	"testing"
)

func TestCountWatch(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		rows [][]float32
		want bool
	}{
		{[][]float32{{0, 0, 3, 1}, {0, 1, 0, 0}}, true},
		{[][]float32{{0, 0, 1, 1}, {0, 1, 0, 0}}, false},       // a set of words
		{[][]float32{{1, 2, 3, 0}, {0, 4, 5, 6}}, false},       // mostly not 0
		{[][]float32{{0, 0, 3, 1}, {0, -1, 0, 0}}, false},      // a loss
		{[][]float32{{0, 0, 3, 1}, {0, 0.5, 0, 0}}, false},     // a share
		{[][]float32{{0, 0, 3, 1}, {0, nan, 0, 0}}, false},     // nothing
		{[][]float32{{0, 0, 3, 1}, {0, 1 << 25, 0, 0}}, false}, // not exact
		{nil, false},
	} {
		var w CountWatch
		for _, r := range c.rows {
			w.Observe(r)
		}
		if w.Are() != c.want {
			t.Errorf("%v are counts: %t", c.rows, w.Are())
		}
	}
}
