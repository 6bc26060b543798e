package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/linkcmd"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/sample/superbatch"
	"gdb/train"
	"gdb/train/link"
	"gdb/train/plan"
	"gdb/train/setting"
	"gdb/train/tensorboard"

	"github.com/spf13/cobra"
)

func (a *app) trainCommand() *cobra.Command {
	t := &trainFlags{}
	cmd := &cobra.Command{
		Use: "train STORE", Short: "Train a graph neural network on a store",
		Long: `Train a graph neural network for node classification on the store's train
split; the best weights on val are kept, and tested on test. With --task link
it learns vectors that score edges, of the splits of the edges. Everything of a
run is in STORE/runs/NAME. Ctrl-C finishes the step at hand, writes a
checkpoint and prints the command that resumes.`,
		Example: `  gdb train cora.gdb --fanout 10,10 --hidden 64 --epochs 60 --patience 20
  gdb train big.gdb --memory 4GiB --batch 1000 --run big1
  gdb train big.gdb --resume big1`,
		Args: cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.train(cmd, t, args[0]) },
	}
	t.bindRun(cmd.Flags(), setting.Train)
	return cmd
}

// linkEnv is what commands of links get of this one.
func (a *app) linkEnv() *linkcmd.Env {
	return &linkcmd.Env{App: &a.App, Version: "gdb " + version, CommandLine: a.commandLine}
}

func (a *app) trainLink(cmd *cobra.Command, t *trainFlags, dir string) (err error) {
	c, err := t.link(a, cmd.Flags())
	if err != nil {
		return err
	}
	if err := link.Validate(&c); err != nil {
		return cli.Usage(err)
	}
	st, dev, err := a.OpenStore(cmd.Context(), dir, t.line.IO())
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	defer func() { err = cli.FirstError(err, dev.Close()) }()
	if c.Resume != "" {
		if c, err = t.resumedLink(a, cmd.Flags(), st); err != nil {
			return err
		}
	}
	for _, idle := range t.line.Idle(&c) {
		a.Note("--" + idle[0] + " changes nothing without " + idle[1])
	}
	return linkcmd.Train(cmd.Context(), a.linkEnv(), st, dev, dir, c, t.json)
}

func (a *app) train(cmd *cobra.Command, t *trainFlags, dir string) (err error) {
	if links, err := a.trainsLink(cmd, t, dir); err != nil || links {
		if err == nil {
			err = a.trainLink(cmd, t, dir)
		}
		return err
	}
	cfg, err := t.node(a, cmd.Flags())
	if err != nil {
		return err
	}
	st, dev, err := a.OpenStore(cmd.Context(), dir, cfg.IO)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	defer func() { err = cli.FirstError(err, dev.Close()) }()
	if cfg.Resume != "" {
		if cfg, err = t.resumedNode(a, cmd.Flags(), st); err != nil {
			return err
		}
	}
	if t.tensorboard != "" {
		if err := layout.CheckOutside(a.FS, t.tensorboard); err != nil {
			return cli.Usage(fmt.Errorf("train: --tensorboard %w", err))
		}
	}
	o := &trainObserver{app: a, json: t.json, bar: a.Progress(), events: t.tensorboard}
	defer func() { err = cli.FirstError(err, o.close()) }()
	res, err := train.Run(cmd.Context(), st, dev, cfg, o.event)
	o.bar.Finish()
	if errors.Is(err, context.Canceled) && o.run != "" {
		fmt.Fprintf(a.Err, "%s: stopped; go on with: %s\n", message.Program,
			a.commandLine([]string{"train", dir, "--resume", o.run}))
		return cli.Reported{Code: exitInterrupted}
	}
	if err = cli.FirstError(err, o.err); err != nil {
		return err
	}
	if res.Planned != nil && a.Verbose && !a.Quiet {
		fmt.Fprintln(a.Err, res.Actual.Compare(res.Planned))
	}
	if t.json {
		return a.PrintLine(map[string]any{"event": "done", "test": res.Test, "metric": res.Metric,
			"best_val": res.Best, "best_epoch": res.BestEpoch, "run": res.Run,
			"epochs": res.Epochs})
	}
	if _, err = fmt.Fprintln(a.Out, res); err == nil && !a.Quiet {
		a.trained(st.Meta(), dir, res)
	}
	return err
}

// trained says where a finished run is, and what may come next.
func (a *app) trained(m *kv.Meta, dir string, r *train.Result) {
	if r.OneSided != "" {
		a.Note(r.OneSided + ": it tells little; see the classes with eval, or train longer")
	}
	if r.Steep != "" {
		a.Note(r.Steep)
	}
	if r.BestEpoch == r.Epochs && !r.Stopped && r.Extends {
		fmt.Fprintf(a.Err, "the best epoch was the last: %s\n", a.commandLine([]string{"train",
			dir, "--resume", r.Run, "--epochs", strconv.Itoa(2 * r.Epochs)}))
	}
	fmt.Fprintf(a.Err, "run %s is in %s; next:\n", r.Run, filepath.Join(dir, "runs", r.Run))
	next := [][]string{{"eval", dir, "--run", r.Run},
		{"predict", dir, "--run", r.Run, "--out", "predictions.csv"},
		{"report", dir, "--run", r.Run, "--out", "report.html"}}
	if !hasSplit(m, "test") && !hasSplit(m, "val") {
		next = next[1:]
	}
	for _, next := range next {
		fmt.Fprintf(a.Err, "  %s\n", a.commandLine(next))
	}
}

// trainObserver prints a run as it goes.
type trainObserver struct {
	app  *app
	json bool
	bar  *cli.Bar
	run  string
	// events is the directory of --tensorboard, and board what writes there.
	events string
	board  *tensorboard.Writer
	shown  *superbatch.Reading // the last one
	// noted says that the first epoch is over: all have the same nodes.
	noted bool
	err   error
}

func (o *trainObserver) event(e train.Event) {
	switch {
	case o.err != nil:
	case e.Started != nil:
		o.started(e.Started)
	case e.Progress != nil:
		p := e.Progress
		o.bar.Update(fmt.Sprintf("epoch %d", p.Epoch), int64(p.Batch), int64(p.Batches), "batches")
	case e.Reading != nil:
		if o.app.Verbose && !o.app.Quiet && (o.shown == nil || o.shown.Swept != e.Reading.Swept) {
			o.bar.Finish()
			fmt.Fprintf(o.app.Err, "%s\n", e.Reading)
		}
		o.shown = e.Reading
	case e.Epoch != nil:
		o.bar.Finish()
		o.unlabeled(e.Epoch.Unlabeled)
		if o.board != nil {
			if o.err = o.board.Epoch(e.Epoch); o.err != nil {
				return
			}
		}
		if o.json {
			o.err = o.app.PrintLine(e.Epoch)
			return
		}
		if _, o.err = fmt.Fprintln(o.app.Out, e.Epoch); o.app.Verbose && !o.app.Quiet {
			fmt.Fprintln(o.app.Err, "  "+e.Epoch.Engine())
		}
	}
}

// close ends the event file.
func (o *trainObserver) close() error {
	if o.board == nil {
		return nil
	}
	return o.board.Close()
}

// unlabeled notes once that nodes teach nothing.
func (o *trainObserver) unlabeled(nodes uint64) {
	if nodes > 0 && !o.noted && !o.app.Quiet {
		fmt.Fprintf(o.app.Err, "note: %s nodes of the train split have no label, and are left out "+
			"of the loss\n", cli.Count(nodes))
	}
	o.noted = true
}

func (o *trainObserver) started(s *train.Started) {
	o.run = s.Run
	if o.events != "" {
		if o.board, o.err = tensorboard.Create(o.app.FS, o.events, s.Run); o.err != nil {
			return
		}
	}
	if o.app.Quiet {
		return
	}
	what := "run " + s.Run
	if s.Resumed {
		what += fmt.Sprintf(", resumed in epoch %d after %d batches", s.Epoch, s.Batch)
	}
	c := &s.Config
	fmt.Fprintf(o.app.Err, "%s: %s %s, hidden %d, on %s nodes, %s by %s\n", what, c.Model,
		c.Sampling(), c.Hidden, cli.Count(s.Train), c.Loss, c.Metric)
	until := cli.Plural(c.Epochs, "epoch")
	if c.Patience > 0 {
		until = fmt.Sprintf("until val is no better %d times, at most %d epochs", c.Patience,
			c.Epochs)
	}
	fmt.Fprintf(o.app.Err, "%s; %s, decay %g\n", until, c.Rate(), c.WeightDecay)
	if c.Before != nil {
		fmt.Fprintf(o.app.Err, "only edges before %s count\n", setting.FormatTime(*c.Before))
	}
	if len(s.Unused) > 0 {
		fmt.Fprintf(o.app.Err, "of the store it does not use: %s\n", strings.Join(s.Unused, ", "))
	}
	if c.Normalize == setting.NormalizeRow {
		fmt.Fprintln(o.app.Err, "features are counts: each row is divided by its sum "+
			"(--normalize none: not)")
	}
	o.engine(s.Plan)
	if s.Note != "" {
		o.app.Note(s.Note)
	}
}

// engine tells with --verbose how the memory is split, and why.
func (o *trainObserver) engine(p *plan.Plan) {
	if !o.app.Verbose {
		return
	}
	sampling := "exact sampling"
	if p.Partitions != nil {
		sampling = "sampling in partitions"
	}
	fmt.Fprintf(o.app.Err, "%s; %s\n", sampling, p)
	if f := p.Forecast; f != nil {
		fmt.Fprintf(o.app.Err, "plan: %s\n", f)
	}
	if why := p.Why(); why != "" {
		fmt.Fprintf(o.app.Err, "chosen: %s\n", why)
	}
	if on := p.OnDevice; on != nil && on.Bus != nil {
		fmt.Fprintf(o.app.Err, "rows that the device does not keep: %s\n", on.Bus)
	}
}
