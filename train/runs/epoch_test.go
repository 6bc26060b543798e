package runs

import "testing"

func TestFigure(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want string
	}{{0, "0.000"}, {0.5, "0.500"}, {0.0125, "0.013"}, {0.00012345, "0.0001234"}, {-2.5, "-2.500"},
		{1234.5678, "1234.568"}, {123456.78, "123456.8"}, {-123456.78, "-123456.8"},
		{1.5e12, "1.5e+12"}} {
		if got := Figure(c.v, 3); got != c.want {
			t.Errorf("Figure(%g) = %q, want %q", c.v, got, c.want)
		}
	}
}
