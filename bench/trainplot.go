package bench

import (
	"fmt"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// PlotTrain draws a report of Train as SVG files in dir, and returns their paths: without a sweep
// the time of an epoch by system, with one that time and the hit ratio over what was swept.
func PlotTrain(fs vfs.FS, dir string, r *Report) (paths []string, err error) {
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("bench: plot: %w", err)
	}
	draw := func(name string, svg []byte) {
		if err == nil {
			paths = append(paths, fs.PathJoin(dir, name))
			err = writeWhole(fs, paths[len(paths)-1], svg)
		}
	}
	sweep := ""
	if len(r.Rows) > 0 {
		sweep, _ = r.Rows[0]["sweep"].(string)
	}
	if sweep == "" {
		draw("train-epoch.svg", epochBars(r).svg())
		return paths, err
	}
	for _, c := range []struct{ file, title, label, field string }{
		{"epoch", "Time of an epoch", "seconds", "epoch_s"},
		{"hits", "Feature rows found in the cache", "share", "hit_ratio"},
	} {
		if chart := sweepLines(r, sweep, c.field); len(chart.series) > 0 {
			chart.title, chart.yLabel = c.title, c.label
			draw("train-"+sweep+"-"+c.file+".svg", chart.svg())
		}
	}
	return paths, err
}

// epochBars stacks how long the stages of each system were busy.
func epochBars(r *Report) *barChart {
	c := &barChart{title: "Time of an epoch, by system", yLabel: "seconds",
		note:  "stages overlap: bars are busy times, the mark is the epoch by the clock",
		parts: []string{"sample", "gather", "compute"}}
	for _, row := range r.Rows {
		var parts []float64
		for _, field := range []string{"sample_s", "gather_s", "compute_s"} {
			v := number(row[field])
			if math.IsNaN(v) {
				v = 0
			}
			parts = append(parts, v)
		}
		name := fmt.Sprint(row["system"])
		if math.IsNaN(number(row["epoch_s"])) {
			name += " (none)"
		}
		c.groups, c.values = append(c.groups, name), append(c.values, parts)
		c.marks = append(c.marks, number(row["epoch_s"]))
	}
	return c
}

// sweepLines has a line for each system that has the field at all.
func sweepLines(r *Report, sweep, field string) *lineChart {
	c := &lineChart{xLabel: sweep}
	for _, row := range r.Rows {
		if place := fmt.Sprint(row["value"]); !slices.Contains(c.places, place) {
			c.places = append(c.places, place)
		}
	}
	for _, row := range r.Rows {
		v, name := number(row[field]), fmt.Sprint(row["system"])
		if math.IsNaN(v) {
			continue
		}
		k := slices.Index(c.series, name)
		if k < 0 {
			k = len(c.series)
			c.series = append(c.series, name)
			line := make([]float64, len(c.places))
			for i := range line {
				line[i] = math.NaN()
			}
			c.values = append(c.values, line)
		}
		c.values[k][slices.Index(c.places, fmt.Sprint(row["value"]))] = v
	}
	return c
}

// number is a row's field, NaN where it was not measured.
func number(v any) float64 {
	if f, ok := v.(float64); ok {
		return f
	}
	return math.NaN()
}
