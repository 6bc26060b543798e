package bench

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
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
	c := barChart{title: "a < b & c", yLabel: "s", groups: []string{"one", "two"},
		parts: []string{"p", "q"}, values: [][]float64{{1, 2}, {0, 0}},
		sums: []float64{3, math.NaN()}}
	svg := c.svg()
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
	c := lineChart{xLabel: "memory", places: []string{"1", "2", "3", "4"}, series: []string{"lru"},
		values: [][]float64{{1, nan, 3, 2}}}
	svg := string(c.svg())
	if mustXML(t, []byte(svg)); strings.Count(svg, "<circle") != 3 ||
		strings.Count(svg, "NaN") != 0 {
		t.Errorf("%s", svg)
	}
	empty := lineChart{places: []string{"1"}}
	if svg := empty.svg(); strings.Contains(string(svg), "NaN") {
		t.Errorf("a chart of nothing: %s", svg)
	}
	empty.series, empty.values = []string{"zero"}, [][]float64{{0}}
	if svg := empty.svg(); strings.Contains(string(svg), "NaN") || len(mustXML(t, svg)) == 0 {
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

func TestPlotTrain(t *testing.T) {
	fs := vfs.NewMem()
	plot := func(rows ...Row) []string {
		paths, err := PlotTrain(fs, "plots", &Report{Rows: rows})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range paths {
			f, err := fs.Open(p)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(f)
			if err != nil {
				t.Fatal(err)
			}
			mustXML(t, b)
			names = append(names, fs.PathBase(p))
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		return names
	}
	got := plot(Row{"system": "mmap", "epoch_s": 2.0, "sample_s": 1.0, "gather_s": 1.5},
		Row{"system": "belady", "epoch_s": nil})
	if !slices.Equal(got, []string{"train-epoch.svg", "train-stages.svg"}) {
		t.Errorf("%v", got)
	}
	got = plot(
		Row{"system": "lru", "sweep": "memory", "value": "1GiB", "epoch_s": 2.0, "hit_ratio": 0.5},
		Row{"system": "mmap", "sweep": "memory", "value": "1GiB", "epoch_s": 3.0, "hit_ratio": nil},
		Row{"system": "lru", "sweep": "memory", "value": "2GiB", "epoch_s": 1.0, "hit_ratio": 0.8})
	if !slices.Equal(got, []string{"train-memory-epoch.svg", "train-memory-speedup.svg",
		"train-memory-hits.svg"}) {
		t.Errorf("%v", got)
	}
	got = plot(Row{"system": "mmap", "sweep": "batch", "value": "9", "epoch_s": 3.0})
	if !slices.Equal(got, []string{"train-batch-epoch.svg", "train-batch-speedup.svg"}) {
		t.Errorf("%v", got)
	}
}
