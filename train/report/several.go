package report

import (
	"fmt"
	"html/template"
	"io"
	"slices"

	"gdb/internal/chart"
	"gdb/train/runs"
)

// Several is what a report of several runs of one task shows.
type Several struct {
	Store string
	Data  [][2]string
	Runs  []*Data
	// Differing lists the settings that are not the same in all runs: a name, and a
	// value for each run.
	Differing [][]string
	Links     []Link // as in Data
}

// runRow is a line of the table of runs.
type runRow struct {
	*Data
	Color   string // of the run's curves
	Seconds float64
}

// WriteSeveral writes a page that compares runs.
func WriteSeveral(w io.Writer, s *Several) error {
	v := &view{Data: &Data{Store: s.Store, Data: s.Data, Links: s.Links}, Settings: s.Differing,
		Title: fmt.Sprintf("%d runs of %s", len(s.Runs), s.Store)}
	var metrics []string
	for i, d := range s.Runs {
		row := runRow{Data: d, Color: chart.Color(i)}
		for _, e := range d.Epochs {
			row.Seconds += e.Time
		}
		v.Runs = append(v.Runs, row)
		if !slices.Contains(metrics, d.Metric) {
			metrics = append(metrics, d.Metric)
		}
	}
	for _, m := range metrics {
		of := func(d *Data) bool { return d.Metric == m }
		v.Learned = append(v.Learned, overlay("Score of val", m, s.Runs, of, val),
			overlay("Score of train", m, s.Runs, of, trainScore))
	}
	all := func(*Data) bool { return true }
	v.Learned = append(v.Learned, overlay("Loss of train", "loss", s.Runs, all, trainLoss),
		overlay("Loss of val", "loss", s.Runs, all, valLoss))
	v.Time = overlay("Time of an epoch", "seconds", s.Runs, all, trainTime)
	return execute(w, v)
}

// overlay draws a curve for each run that is wanted; each run has its color in all charts. It draws
// no chart if no curve has a number.
func overlay(title, label string, all []*Data, wanted func(*Data) bool,
	of func(e *runs.Epoch) float64) template.HTML {
	c := &chart.Curves{Title: title, XLabel: "epoch", YLabel: label}
	some := false
	for _, d := range all {
		drawn := chart.Curve{} // keeps its place
		if points := (curve{d.Run, of}).points(d.Epochs); wanted(d) && chart.HasNumber(points.Y) {
			drawn, some = points, true
		}
		c.All = append(c.All, drawn)
	}
	if !some {
		return ""
	}
	return template.HTML(c.SVG())
}
