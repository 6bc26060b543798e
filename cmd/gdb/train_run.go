package main

import (
	"fmt"
	"strconv"
	"strings"

	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/linkcmd"
	"gdb/kv"
	"gdb/train"
	"gdb/train/link"
	"gdb/train/plan"
	"gdb/train/run"
	"gdb/train/setting"

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

// linkEnv returns what commands of links get of this one.
func (a *app) linkEnv() *linkcmd.Env {
	return &linkcmd.Env{App: &a.App, Version: "gdb " + version}
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
	return a.observe(t, dir, func(obs func(run.Event)) (*linkcmd.Finished, error) {
		res, err := link.Run(cmd.Context(), st, dev, c, obs)
		if err != nil {
			return nil, err
		}
		return linkcmd.FinishedOf(dir, res), nil
	})
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
	return a.observe(t, dir, func(obs func(run.Event)) (*linkcmd.Finished, error) {
		res, err := train.Run(cmd.Context(), st, dev, cfg, obs)
		if err != nil {
			return nil, err
		}
		return a.trained(st.Meta(), dir, res), nil
	})
}

// trained returns the end of a run of nodes.
func (a *app) trained(m *kv.Meta, dir string, r *train.Result) *linkcmd.Finished {
	end := &linkcmd.Finished{Line: r.String(), Done: map[string]any{"event": "done", "test": r.Test,
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
		end.Advice = append(end.Advice, "the best epoch was the last: "+a.commandLine([]string{
			"train", dir, "--resume", r.Run, "--epochs", strconv.Itoa(2 * r.Epochs)}))
	}
	if hasSplit(m, "test") || hasSplit(m, "val") {
		end.Next = append(end.Next, []string{"eval", dir, "--run", r.Run})
	}
	end.Next = append(end.Next,
		[]string{"predict", dir, "--run", r.Run, "--out", "predictions.csv"},
		[]string{"report", dir, "--run", r.Run, "--out", "report.html"})
	return end
}

// begun says what a run of nodes trains, after the name of the run.
func (a *app) begun(b *train.Begun) {
	c := &b.Config
	fmt.Fprintf(a.Err, "%s %s, hidden %d, on %s nodes, %s by %s\n", c.Model, c.Sampling(), c.Hidden,
		cli.Count(b.Train), c.Loss, c.Metric)
	until := cli.Plural(c.Epochs, "epoch")
	if c.Patience > 0 {
		until = fmt.Sprintf("until val is no better %d times, at most %d epochs", c.Patience,
			c.Epochs)
	}
	fmt.Fprintf(a.Err, "%s; %s, decay %g\n", until, c.Rate(), c.WeightDecay)
	if c.Before != nil {
		fmt.Fprintf(a.Err, "only edges before %s count\n", setting.FormatTime(*c.Before))
	}
	if len(b.Unused) > 0 {
		fmt.Fprintf(a.Err, "of the store it does not use: %s\n", strings.Join(b.Unused, ", "))
	}
	if c.Normalize == setting.NormalizeRow {
		fmt.Fprintln(a.Err, "features are counts: each row is divided by its sum "+
			"(--normalize none: not)")
	}
	a.engine(b.Plan)
}

// engine tells with --verbose how the memory is split, and why.
func (a *app) engine(p *plan.Plan) {
	if !a.Verbose {
		return
	}
	sampling := "exact sampling"
	if p.Partitions != nil {
		sampling = "sampling in partitions"
	}
	fmt.Fprintf(a.Err, "%s; %s\n", sampling, p)
	if f := p.Forecast; f != nil {
		fmt.Fprintf(a.Err, "plan: %s\n", f)
	}
	if why := p.Why(); why != "" {
		fmt.Fprintf(a.Err, "chosen: %s\n", why)
	}
	if on := p.OnDevice; on != nil && on.Bus != nil {
		fmt.Fprintf(a.Err, "rows that the device does not keep: %s\n", on.Bus)
	}
}
