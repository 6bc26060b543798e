package query

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/shell/exec"
	"gdb/shell/words"
	"gdb/train/runs"

	"github.com/guptarohit/asciigraph"
)

// runRuns lists the runs, or plots a metric of one run.
func runRuns(ctx context.Context, x *exec.Execution) error {
	if x.Has("PLOT") {
		return plotRun(ctx, x)
	}
	if x.Has("METRIC") {
		return errors.New("METRIC wants PLOT run")
	}
	all, err := x.Graph.Store.Catalog().Runs(ctx)
	if err != nil {
		return err
	}
	x.Header("run", "status", "model", "epochs", "metric", "best", "test", "created")
	for _, r := range all {
		x.Row(r.Name, r.Status, r.Model, words.Count(r.Epochs), r.Metric,
			words.Score(r.BestScore()), words.Score(r.TestScore()),
			r.Created.UTC().Format("2006-01-02 15:04:05"))
	}
	return runs.Damaged(x.Graph.Store, runs.Names(all)...)
}

// findRun returns the record of a run; for "" the newest.
func findRun(ctx context.Context, x *exec.Execution, name string) (run kv.RunMeta, err error) {
	runs, err := x.Graph.Store.Catalog().Runs(ctx)
	if err != nil {
		return run, err
	}
	var names []string
	for _, r := range runs {
		if r.Name == name || name == "" && r.Created.After(run.Created) {
			run = r
		}
		names = append(names, r.Name)
	}
	if run.Name == "" {
		return run, fmt.Errorf("no run %s%s; RUNS lists them", words.Quoted(name), words.Near(name,
			names))
	}
	return run, nil
}

// newestRun returns the name of the newest run that predicts links, or of the newest one that does
// not; "" if there is none. If the settings of a run are damaged, it takes the kind of the run from
// the catalog; reading the run then reports the damage.
func newestRun(ctx context.Context, x *exec.Execution, links bool) (string, error) {
	all, err := x.Graph.Store.Catalog().Runs(ctx)
	if err != nil {
		return "", err
	}
	slices.SortStableFunc(all, func(a, b kv.RunMeta) int { return b.Created.Compare(a.Created) })
	for _, r := range all {
		f, err := runs.Open(x.Graph.Store, r.Name).ReadAny()
		isLink := f.Link != nil
		if err != nil {
			isLink = r.Metric == runs.LinkMetric
		}
		if isLink == links {
			return r.Name, nil
		}
	}
	return "", nil
}

// eachEpoch calls fn with the records of the epochs of a run.
func eachEpoch(x *exec.Execution, run string, fn func(epoch *runs.Epoch) error) error {
	return runs.Open(x.Graph.Store, run).Epochs(fn)
}

// The largest size of a plot on the screen, in characters.
const (
	plotHeight = 12
	plotWidth  = 72
)

// plotRun draws a metric of a run by epoch.
func plotRun(ctx context.Context, x *exec.Execution) error {
	run, err := findRun(ctx, x, x.Args["PLOT"].Text)
	if err != nil {
		return err
	}
	metric := "loss"
	if x.Has("METRIC") {
		metric = x.Args["METRIC"].Text
	}
	var values []float64
	known := map[string]bool{}
	err = eachEpoch(x, run.Name, func(epoch *runs.Epoch) error {
		for _, name := range epoch.Numbers() {
			known[name] = true
		}
		if v, ok := epoch.Number(metric); ok {
			values = append(values, v)
		}
		return nil
	})
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(known))
	if len(names) == 0 {
		return fmt.Errorf("run %s has no epoch yet", run.Name)
	}
	if len(values) == 0 {
		return fmt.Errorf("METRIC %s: run %s has no such metric%s; it has %s", metric, run.Name,
			words.Near(metric, names), strings.Join(names, ", "))
	}
	x.Header(fmt.Sprintf("%s of %s, %d epochs", metric, run.Name, len(values)))
	graph := asciigraph.Plot(values, asciigraph.Height(plotHeight),
		asciigraph.Width(min(plotWidth, len(values))))
	for line := range strings.Lines(graph) {
		x.Row(strings.TrimRight(line, " \n"))
	}
	return nil
}
