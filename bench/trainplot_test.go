package bench

import (
	"encoding/xml"
	"errors"
	"io"
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
		Row{"system": "auto", "sweep": "memory", "value": "1GiB", "epoch_s": 2.0, "hit_ratio": 0.5},
		Row{"system": "mmap", "sweep": "memory", "value": "1GiB", "epoch_s": 3.0, "hit_ratio": nil},
		Row{"system": "auto", "sweep": "memory", "value": "2GiB", "epoch_s": 1.0, "hit_ratio": 0.8})
	if !slices.Equal(got, []string{"train-memory-epoch.svg", "train-memory-speedup.svg",
		"train-memory-hits.svg"}) {
		t.Errorf("%v", got)
	}
	got = plot(Row{"system": "mmap", "sweep": "batch", "value": "9", "epoch_s": 3.0})
	if !slices.Equal(got, []string{"train-batch-epoch.svg", "train-batch-speedup.svg"}) {
		t.Errorf("%v", got)
	}
}
