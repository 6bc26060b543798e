package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

// mustXML checks that an SVG is well formed and returns its texts.
func mustXML(t *testing.T, svg []byte) (texts []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		if c, ok := tok.(xml.CharData); ok && strings.TrimSpace(string(c)) != "" {
			texts = append(texts, string(c))
		}
	}
}

func TestBarChart(t *testing.T) {
	c := Bars{Title: "a < b & c", YLabel: "s", Groups: []string{"one", "two"},
		Parts: []string{"p", "q"}, Values: [][]float64{{1, 2}, {0, 0}},
		Sums: []float64{3, math.NaN()}}
	svg := c.SVG()
	texts := mustXML(t, svg)
	for _, want := range []string{"a < b & c", "one", "two", "p", "q", "3", "failed"} {
		if !slices.Contains(texts, want) {
			t.Errorf("no text %q in %q", want, texts)
		}
	}
	// 324 units of height for values up to 3: part q of the first bar is 2 of them.
	if !strings.Contains(string(svg), `height="216.0" fill="#e69f00"`) {
		t.Errorf("the bar of 2 is not two thirds as high as the axis: %s", svg)
	}
}

func TestLineChart(t *testing.T) {
	nan := math.NaN()
	c := Lines{XLabel: "memory", Places: []string{"1", "2", "3", "4"}, Series: []string{"lru"},
		Values: [][]float64{{1, nan, 3, 2}}}
	svg := string(c.SVG())
	if mustXML(t, []byte(svg)); strings.Count(svg, "<circle") != 3 ||
		strings.Count(svg, "NaN") != 0 {
		t.Errorf("%s", svg)
	}
	empty := Lines{Places: []string{"1"}}
	if svg := empty.SVG(); strings.Contains(string(svg), "NaN") {
		t.Errorf("a chart of nothing: %s", svg)
	}
	empty.Series, empty.Values = []string{"zero"}, [][]float64{{0}}
	if svg := empty.SVG(); strings.Contains(string(svg), "NaN") || len(mustXML(t, svg)) == 0 {
		t.Errorf("a chart of zeros: %s", svg)
	}
}

func TestNiceStep(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, 0.3: 0.5, 1: 1, 1.2: 2, 4.9: 5, 6: 10, 120: 200,
		math.NaN(): 1} {
		if got := niceStep(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("%g: %g, want %g", v, got, want)
		}
	}
}
