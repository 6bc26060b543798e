package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// TestCurvesFitTheData: scores from .71 to .78 are not drawn in a tenth of the height, the best
// epoch has its word, and a gap is no line.
func TestCurvesFitTheData(t *testing.T) {
	c := &Curves{Title: "Score", XLabel: "epoch", YLabel: "accuracy", Mark: 3,
		MarkWord: "best: epoch 3", All: []Curve{
			{"val", []float64{1, 2, 3, 4}, []float64{0.71, math.NaN(), 0.78, 0.77}},
			{"a < b", []float64{1, 2}, []float64{0.72, 0.73}}}}
	svg := string(c.SVG())
	for _, want := range []string{">0.70<", ">0.78<", ">best: epoch 3<", ">1<", ">4<", "a &lt; b",
		`stroke-dasharray="2 3"`, "currentColor", "var(--grid"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in\n%s", want, svg)
		}
	}
	for _, no := range []string{">0.00<", ">0<", "NaN", ">5<"} {
		if strings.Contains(svg, no) {
			t.Errorf("%q in\n%s", no, svg)
		}
	}
	if !strings.Contains(svg, `d="M64.0 234.0M545.3 52.0L786.0 78.0"`) {
		t.Errorf("the first point is not at the left, apart from the others:\n%s", svg)
	}
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if file := string(c.File()); !strings.Contains(file, `fill="white"`) ||
		!strings.HasPrefix(file, "<svg") || len(file) <= len(svg) {
		t.Errorf("a file of its own has no paper:\n%s", file)
	}
}

// TestSpans: an axis holds its values, and one value has room around it.
func TestSpans(t *testing.T) {
	for _, c := range [][2]float64{{0, 1}, {0.712, 0.781}, {-3, 40}, {1e-6, 2e-6}, {5, 5}, {0, 0},
		{1e9, 3e9}} {
		s := spanOf(c[0], c[1], 5)
		steps := (s.hi - s.lo) / s.step
		if !(s.lo <= c[0]+1e-12 && s.hi >= c[1]-1e-12 && s.lo < s.hi) || steps < 1 || steps > 12 {
			t.Errorf("%v: %+v, %v steps", c, s, steps)
		}
		if c[1] > c[0] && (s.hi-s.lo) > 2.5*(c[1]-c[0]) {
			t.Errorf("%v: %+v is far wider than the values", c, s)
		}
	}
}

// TestCurvesOfManySeries says how many have no place in the legend.
func TestCurvesOfManySeries(t *testing.T) {
	c := &Curves{}
	for range 30 {
		c.All = append(c.All, Curve{"a-long-name-of-a-run", []float64{1}, []float64{2}})
	}
	if svg := string(c.SVG()); !strings.Contains(svg, "more<") || strings.Contains(svg, "NaN") {
		t.Error(svg)
	}
	if svg := string((&Curves{}).SVG()); strings.Contains(svg, "NaN") ||
		strings.Contains(svg, "Inf") {
		t.Errorf("curves of nothing: %s", svg)
	}
}
