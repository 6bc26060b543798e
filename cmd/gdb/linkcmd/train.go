// Package linkcmd is what the commands of gdb print of link prediction: training, evaluation and
// predictions of runs of --task link.
package linkcmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/internal/message"
	"gdb/layout"
	"gdb/train/link"
	"gdb/train/link/rank"
	"gdb/train/runs"
	"gdb/train/setting"
)

// Env is what a command gets of the program around it.
type Env struct {
	*cli.App
	Version string
	// CommandLine is a command that can be typed.
	CommandLine func(args []string) string
}

// Train is gdb train of --task link.
//
//lint:parameters what each command of links gets
func Train(ctx context.Context, e *Env, st *layout.Store, dev blockdev.Device, dir string,
	c setting.Link, asJSON bool) error {
	o := &observer{Env: e, json: asJSON, bar: e.Progress()}
	res, err := link.Run(ctx, st, dev, c, o.event)
	o.bar.Finish()
	if errors.Is(err, context.Canceled) && o.run != "" {
		fmt.Fprintf(e.Err, "%s: stopped; go on with: %s\n", message.Program,
			e.CommandLine([]string{"train", dir, "--resume", o.run}))
		return cli.Reported{Code: cli.Interrupted}
	}
	if err = errors.Join(err, o.err); err != nil {
		return err
	}
	if asJSON {
		return e.PrintLine(doneOf(res))
	}
	if _, err := fmt.Fprintln(e.Out, lastLine(res)); err != nil || e.Quiet {
		return err
	}
	fmt.Fprintf(e.Err, "run %s is in %s; next:\n", res.Run, filepath.Join(dir, "runs", res.Run))
	for _, next := range [][]string{{"eval", dir, "--run", res.Run},
		{"predict", dir, "--run", res.Run, "--pairs", "pairs.csv", "--out", "scores.csv"}} {
		fmt.Fprintf(e.Err, "  %s\n", e.CommandLine(next))
	}
	return nil
}

// done is the last line of --json.
type done struct {
	Event  string `json:"event"`
	Metric string `json:"metric"`
	// Test is null if there is no test split.
	Test      *float64 `json:"test"`
	Hits1     *float64 `json:"hits@1,omitempty"`
	Hits3     *float64 `json:"hits@3,omitempty"`
	Hits10    *float64 `json:"hits@10,omitempty"`
	MeanRank  *float64 `json:"mean_rank,omitempty"`
	Best      float64  `json:"best_val"`
	BestEpoch int      `json:"best_epoch"`
	Epochs    int      `json:"epochs"`
	Run       string   `json:"run"`
}

func doneOf(r *link.Result) *done {
	d := &done{Event: "done", Metric: runs.LinkMetric, Best: r.Best, BestEpoch: r.BestEpoch,
		Epochs: r.Epochs, Run: r.Run}
	if m := r.Test; m != nil {
		d.Test, d.Hits1, d.Hits3 = &m.MRR, &m.Hits1, &m.Hits3
		d.Hits10, d.MeanRank = &m.Hits10, &m.MeanRank
	}
	return d
}

// lastLine is the last line on standard output.
func lastLine(r *link.Result) string {
	test := "-"
	if r.Test != nil {
		test = runs.Figure(r.Test.MRR, 4) + " " + hits(&r.Test.Metrics)
	}
	return fmt.Sprintf("test mrr %s (epoch %d, best val %s)", test, r.BestEpoch,
		runs.Figure(r.Best, 4))
}

// hits are the shares of hits of some ranks.
func hits(m *rank.Metrics) string {
	return fmt.Sprintf("hits@1 %s @3 %s @10 %s", runs.Figure(m.Hits1, 3), runs.Figure(m.Hits3, 3),
		runs.Figure(m.Hits10, 3))
}

// observer prints a run as it goes.
type observer struct {
	*Env
	json bool
	bar  *cli.Bar
	run  string
	err  error
}

func (o *observer) event(e link.Event) {
	switch {
	case o.err != nil:
	case e.Started != nil:
		o.started(e.Started)
	case e.Progress != nil:
		p := e.Progress
		o.bar.Update("epoch "+strconv.Itoa(p.Epoch), int64(p.Batch), int64(p.Batches), "batches")
	case e.Epoch != nil:
		o.bar.Finish()
		if o.json {
			o.err = o.PrintLine(e.Epoch)
			return
		}
		if _, o.err = fmt.Fprintln(o.Out, e.Epoch); o.Verbose && !o.Quiet {
			fmt.Fprintln(o.Err, "  "+e.Epoch.Engine())
		}
	}
}

func (o *observer) started(s *link.Started) {
	o.run = s.Run
	if o.Quiet {
		return
	}
	what := "run " + s.Run
	if s.Resumed {
		what += fmt.Sprintf(", resumed in epoch %d after %d batches", s.Epoch, s.Batch)
	}
	c := &s.Config
	fmt.Fprintf(o.Err, "%s: %s\n", what, c.Text())
	fmt.Fprintf(o.Err, "on %d edges between %d entities; at most %d epochs, %s at rate %g\n",
		s.Edges, s.Entities, c.Epochs, c.Optimizer, c.LR)
	if c.Candidates > 0 {
		o.Note(fmt.Sprintf("ranks are those among %d entities: they are not those among all",
			c.Candidates))
	}
	for _, note := range []string{s.Disk, s.Note} {
		if note != "" {
			o.Note(note)
		}
	}
}
