// Package report writes what a run was and what it reached as one HTML page that needs no network:
// curves, scores by class, the confusion matrix, what the engine did, settings, and the data. The
// same page can compare several runs: their scores, curves, and the settings that differ.
package report

import (
	_ "embed" // of the page
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"

	"gdb/internal/chart"
	"gdb/internal/mem"
	"gdb/train"
	"gdb/train/runs"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"shade": shade, "figure": func(v float64) string { return runs.Figure(v, 4) },
	"count": count, "score": func(v float64) string { return fmt.Sprintf("%.3f", v) },
	"measured": measured,
}).Parse(pageText))

// Data is what a report shows.
type Data struct {
	Store, Run, Status, Made string
	Metric                   string
	Data, Settings           [][2]string
	Epochs                   []runs.Epoch
	Best                     int // the epoch whose weights are the result, from 1
	// Val is the score of that epoch on the validation nodes, or edges; nil if there is none, or if
	// Test is about these.
	Val *float64
	// Tested is the score of the test that the store's catalog has for the run; nil if it
	// was not tested.
	Tested *float64
	// Ranks says how a run that predicts links ranks the test edges, and Cost what its epochs cost;
	// nil for other runs.
	Ranks, Cost [][2]string
	// Test is the evaluation on a split; nil if there is none.
	Test *train.EvalResult
	// Pictures are of vectors and of a neighborhood, as SVG, with what else is to say of them.
	Pictures []Picture
	// Links lead to other pages of a server; nil in a file.
	Links []Link
}

// Picture is a section of a page: SVG, or a sentence that says why there is none.
type Picture struct {
	Title string
	SVG   template.HTML
	Why   string
}

// Link leads to another page.
type Link struct{ Text, To string }

// view is the data that fills the page.
type view struct {
	*Data
	Title       string
	Runs        []runRow        // nil in the report of one run
	Learned     []template.HTML // charts
	Time, Reads template.HTML
	// Quality has charts of precision and reliability, and Reliable the rows of the latter.
	Quality  []template.HTML
	Reliable [][4]string
	Names    []string
	Engine   [][2]string
	Settings [][]string
}

// Write writes the page.
func Write(w io.Writer, d *Data) error {
	v := &view{Data: d, Title: fmt.Sprintf("Run %s of %s", d.Run, d.Store),
		Learned: []template.HTML{scoreChart(d), lossChart(d)}, Time: timeChart(d),
		Reads: readChart(d), Engine: engine(d.Epochs)}
	for _, s := range d.Settings {
		v.Settings = append(v.Settings, s[:])
	}
	if d.Cost != nil {
		v.Engine = d.Cost
	}
	if d.Test != nil {
		v.Names = d.Test.Names()
		if m := d.Test.ClassMetrics; m != nil && m.Curves != nil {
			v.Quality = []template.HTML{precisionChart(m.Curves), reliabilityChart(m.Curves)}
			v.Reliable = reliabilityRows(m.Curves)
		}
	}
	return execute(w, v)
}

func execute(w io.Writer, v *view) error {
	if err := page.Execute(w, v); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// curve is a curve with a value for each epoch; NaN where there is none.
type curve struct {
	name string
	of   func(e *runs.Epoch) float64
}

// points returns a curve over the epochs.
func (c curve) points(epochs []runs.Epoch) chart.Curve {
	s := chart.Curve{Name: c.name}
	for i := range epochs {
		s.X, s.Y = append(s.X, float64(epochs[i].Epoch)), append(s.Y, c.of(&epochs[i]))
	}
	return s
}

// lines draws curves over the epochs, and marks the best epoch if it is known.
func lines(c *chart.Curves, d *Data, curves ...curve) template.HTML {
	c.XLabel = "epoch"
	for _, s := range curves {
		if points := s.points(d.Epochs); chart.HasNumber(points.Y) {
			c.All = append(c.All, points)
		}
	}
	if len(c.All) == 0 {
		return ""
	}
	return template.HTML(c.SVG())
}

// learned begins a chart that marks the epoch whose weights are the result.
func learned(d *Data, title, label string) *chart.Curves {
	c := &chart.Curves{Title: title, YLabel: label}
	if d.Best > 0 {
		c.Mark, c.MarkWord = float64(d.Best), fmt.Sprintf("best: epoch %d", d.Best)
	}
	return c
}

func lossChart(d *Data) template.HTML {
	return lines(learned(d, "Loss", "loss"), d,
		curve{"train", trainLoss}, curve{"val", valLoss})
}

func scoreChart(d *Data) template.HTML {
	return lines(learned(d, "Score", d.Metric), d,
		curve{"train", trainScore}, curve{"val", val})
}

func trainLoss(e *runs.Epoch) float64  { return e.Loss }
func valLoss(e *runs.Epoch) float64    { return valueOf(e.ValLoss) }
func trainScore(e *runs.Epoch) float64 { return e.Train }
func trainTime(e *runs.Epoch) float64  { return e.Time }

// val returns the score on the validation nodes, or edges.
func val(e *runs.Epoch) float64 { return valueOf(e.Val) }

// valueOf returns the value, or NaN for nil.
func valueOf(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

func timeChart(d *Data) template.HTML {
	return lines(&chart.Curves{Title: "Time of an epoch", YLabel: "seconds"}, d,
		curve{"training", trainTime},
		curve{"evaluation", func(e *runs.Epoch) float64 { return e.Eval }})
}

// readChart draws how much epochs read; it returns nothing for runs that read nothing.
func readChart(d *Data) template.HTML {
	if !slices.ContainsFunc(d.Epochs, func(e runs.Epoch) bool { return e.Read > 0 }) {
		return ""
	}
	return lines(&chart.Curves{Title: "Bytes read in an epoch", YLabel: "MiB"}, d,
		curve{"read", func(e *runs.Epoch) float64 { return float64(e.Read) / (1 << 20) }})
}

// engine sums what the epochs cost.
func engine(epochs []runs.Epoch) (rows [][2]string) {
	if len(epochs) == 0 {
		return nil
	}
	var seconds, eval, hit, wait float64
	var read, sampled, nodes, peak uint64
	busy := map[string]float64{}
	var stages []string
	for _, e := range epochs {
		seconds, eval = seconds+e.Time, eval+e.Eval
		hit, wait = hit+e.Hit, wait+e.IOWait
		read, sampled, nodes = read+e.Read, sampled+e.Sampled, nodes+e.Nodes
		peak = max(peak, uint64(e.RSSPeak))
		for _, s := range e.Stages {
			if _, seen := busy[s.Name]; !seen {
				stages = append(stages, s.Name)
			}
			busy[s.Name] += s.Busy
		}
	}
	n := float64(len(epochs))
	add := func(name, format string, args ...any) {
		rows = append(rows, [2]string{name, fmt.Sprintf(format, args...)})
	}
	add("epochs", "%d", len(epochs))
	add("time of training", "%.1f s", seconds)
	add("time of evaluation", "%.1f s", eval)
	add("edges sampled", "%s", count(sampled))
	add("rows gathered", "%s", count(nodes))
	add("read from the device", "%s", mem.FormatSize(int64(read)))
	add("rows found in the cache", "%.1f %%", 100*hit/n)
	add("waiting for reads", "%.1f %% of the time", 100*wait/n)
	if peak > 0 {
		add("peak of resident memory", "%s", mem.FormatSize(int64(peak)))
	}
	for _, name := range stages {
		add("busy: "+name, "%.1f s", busy[name])
	}
	return rows
}

// measured formats a score for people; a missing one as -.
func measured(score *float64) string {
	if score == nil {
		return "-"
	}
	return runs.Figure(*score, 4)
}

// shade returns how dark a cell of the confusion matrix is: its share of the row, from 0 to 1.
func shade(row []uint64, n uint64) string {
	sum := uint64(0)
	for _, v := range row {
		sum += v
	}
	return fmt.Sprintf("%.2f", 0.85*float64(n)/float64(max(sum, 1)))
}

// Run is a run to compare.
type Run struct {
	Name   string
	Epochs []runs.Epoch
}

// Compare draws the scores of several runs on the validation nodes.
func Compare(metric string, all []Run) []byte {
	c := &chart.Curves{Title: "Score of the validation nodes", XLabel: "epoch", YLabel: metric}
	for _, r := range all {
		c.All = append(c.All, curve{r.Name, val}.points(r.Epochs))
	}
	return c.File()
}
