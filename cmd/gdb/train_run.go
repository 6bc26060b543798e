package main

import (
	"fmt"
	"strconv"

	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/linkcmd"
	"gdb/kv"
	"gdb/train"
	"gdb/train/link"
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
