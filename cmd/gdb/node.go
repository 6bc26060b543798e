package main

import (
	"context"
	"fmt"
	"strconv"

	"gdb/bench"
	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/train"
	"gdb/train/model"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/spf13/pflag"
)

// nodeTask predicts labels of nodes.
var nodeTask = task{name: "node", owns: func(st *layout.Store, run string) bool {
	return !runs.PredictsLinks(st, run)
}, take: func(r *request) (job, error) {
	cfg, err := r.flags.node(r.app, r.cmd.Flags(), r.from)
	if err == nil && cfg.OfEdges() {
		err = cli.Usage(fmt.Errorf("%s: --target says what is predicted of edges: add --task edge",
			r.cmd.Name()))
	}
	return &nodeJob{r, cfg}, err
}}

// edgeTask predicts a number or a class of edges, with the models of nodes.
var edgeTask = task{name: "edge", owns: func(st *layout.Store, run string) bool {
	c, err := runs.Load(st, run)
	return err == nil && c.OfEdges()
}, take: func(r *request) (job, error) {
	cfg, err := r.flags.node(r.app, r.cmd.Flags(), r.from)
	if err == nil && !cfg.OfEdges() && cfg.Resume == "" {
		err = cli.Usage(fmt.Errorf("%s: --task edge: give --target, what is predicted of edges: "+
			"weight, or weight<0", r.cmd.Name()))
	}
	return &nodeJob{r, cfg}, err
}}

// nodeJob trains for nodes.
type nodeJob struct {
	*request
	cfg train.Config
}

func (j *nodeJob) io() string { return j.cfg.IO }

func (j *nodeJob) goOn(st *layout.Store) (err error) {
	j.cfg, err = resumed(j.flags.line, func(run string) (train.Config, error) {
		return runs.Load(st, run)
	}, j.flags.line.OnNode)
	j.app.process(j.cmd.Flags(), &j.cfg.Identity, &j.cfg.Process, true)
	return err
}

func (j *nodeJob) train(ctx context.Context, st *layout.Store, dev blockdev.Device,
	obs func(run.Event)) (*cli.Finished, error) {
	res, err := train.Run(ctx, st, dev, j.cfg, obs)
	if err != nil {
		return nil, err
	}
	return j.finished(st.Meta(), res), nil
}

// finished returns the end of a run of nodes.
func (j *nodeJob) finished(m *kv.Meta, r *train.Result) *cli.Finished {
	dir := j.store
	end := &cli.Finished{Line: r.String(), Done: map[string]any{"event": "done", "test": r.Test,
		"metric": r.Metric, "best_val": r.Best, "best_epoch": r.BestEpoch, "run": r.Run,
		"epochs": r.Epochs}}
	if r.Planned != nil {
		end.Cost = r.Actual.Compare(r.Planned)
	}
	if r.OneSided != "" {
		end.Advice = append(end.Advice, "note: "+r.OneSided+
			": it tells little; see the classes with eval, or train longer")
	}
	if r.Steep != "" {
		end.Advice = append(end.Advice, "note: "+r.Steep)
	}
	if r.BestEpoch == r.Epochs && !r.Stopped && r.Extends {
		end.Advice = append(end.Advice, "the best epoch was the last: "+j.app.commandLine([]string{
			"train", dir, "--resume", r.Run, "--epochs", strconv.Itoa(2 * r.Epochs)}))
	}
	end.Next = j.next(r.Run, m)
	return end
}

func (j *nodeJob) next(run string, m *kv.Meta) (next [][]string) {
	if hasSplit(m, "test") || hasSplit(m, "val") {
		next = append(next, []string{"eval", j.store, "--run", run})
	}
	return append(next, []string{"predict", j.store, "--run", run, "--out", "predictions.csv"},
		[]string{"report", j.store, "--run", run, "--out", "report.html"})
}

func (j *nodeJob) same(st *layout.Store) error {
	was, err := runs.Load(st, j.cfg.Run)
	if err != nil {
		return err
	}
	return j.cfg.SameResult(&was)
}

func (j *nodeJob) shares(other job) bool {
	o, ok := other.(*nodeJob)
	return ok && j.cfg.SameBatches(&o.cfg) == nil
}

func (j *nodeJob) schedule(m *kv.Meta) setting.Schedule {
	return train.ScheduleOf(j.cfg, m)
}

func (j *nodeJob) plan(ctx context.Context, st *layout.Store, dev blockdev.Device) error {
	if j.flags.ops {
		return j.planOperations(ctx, st, dev)
	}
	p, err := train.MakePlan(ctx, st, dev, j.cfg)
	if err != nil {
		return err
	}
	if j.flags.json {
		return j.app.PrintJSON(p)
	}
	return j.app.printTrainPlan(p)
}

// opIndent is where the operations of a step stand in a line.
const opIndent = 9 + 1 + 9 + 1 + 13 + 2

// planOperations prints the operations of a step, what they were taken to cost, and what they took.
func (j *nodeJob) planOperations(ctx context.Context, st *layout.Store,
	dev blockdev.Device) error {
	ops, err := bench.MeasureStep(ctx, st, dev, j.cfg)
	if err != nil {
		return err
	}
	if j.flags.json {
		return j.app.PrintJSON(map[string]any{"operations": ops})
	}
	w := &cli.Lines{W: j.app.Out}
	w.Printf("%9s %9s %13s  operation\n", "expected", "measured", "shape")
	total := 0.0
	for _, o := range ops {
		expected := "-"
		if o.EstimatedMS > 0 {
			expected = fmt.Sprintf("%.2f ms", o.EstimatedMS)
		}
		shape := fmt.Sprintf("%d x %d", o.Rows, o.Cols)
		text := message.WrapIndented(o.Text, opIndent)
		w.Printf("%9s %9s %13s  %s\n", expected, fmt.Sprintf("%.2f ms", o.MeasuredMS), shape,
			text[opIndent:])
		total += o.MeasuredMS
	}
	w.Printf("%9s %9s\n", "", fmt.Sprintf("%.1f ms", total))
	return w.Err
}

// node completes the settings of a training of nodes.
func (t *trainFlags) node(a *app, f *pflag.FlagSet, from *cli.From) (train.Config, error) {
	base := setting.Default()
	if from != nil {
		if err := from.Node(&base); err != nil {
			return base, err
		}
		base.Run = ""
	}
	c, err := t.line.Node(base)
	if err != nil {
		return c, cli.Usage(err)
	}
	a.process(f, &c.Identity, &c.Process, false)
	c.Profiles = cli.ProfilesDir()
	if err := model.Of(&c).Validate(); err != nil {
		return c, cli.Usage(err)
	}
	return c, nil
}
