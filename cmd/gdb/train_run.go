package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"gdb/sample/superbatch"
	"gdb/train"
	"gdb/train/runs"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) trainCommand() *cobra.Command {
	t := &trainFlags{}
	cmd := &cobra.Command{
		Use: "train STORE", Short: "Train a graph neural network on a store",
		Long: `
Train a graph neural network for node classification on the store's train split; the best
weights on val are kept, and tested on test. Everything of a run is in STORE/runs/NAME.
Ctrl-C finishes the step at hand, writes a checkpoint and prints the command that resumes.`,
		Example: `  gdb train cora.gdb --fanout 10,10 --hidden 64 --epochs 60 --patience 20
  gdb train big.gdb --memory 4GiB --batch 1000 --run big1
  gdb train big.gdb --resume big1`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.train(cmd, t, args[0]) },
	}
	t.bind(cmd.Flags())
	a.completeRuns(cmd, "resume", "from")
	return cmd
}

func (a *app) train(cmd *cobra.Command, t *trainFlags, dir string) (err error) {
	cfg, err := t.config(a, cmd)
	if err != nil {
		return err
	}
	st, dev, err := a.openForRun(cmd, dir, cfg.IO)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	defer func() { err = firstError(err, dev.Close()) }()
	if cfg.Resume != "" {
		if run := cmd.Flags().Lookup("run"); run.Changed && cfg.Run != cfg.Resume {
			return usage(fmt.Errorf("train: --resume %s goes on with that run: leave --run out",
				cfg.Resume))
		}
		old, err := runs.Load(st, cfg.Resume)
		if err != nil {
			return err
		}
		if cfg, err = t.resumed(a, cmd.Flags(), old); err != nil {
			return err
		}
	}
	o := &trainObserver{app: a, json: t.json, bar: a.progress()}
	res, err := train.Run(cmd.Context(), st, dev, cfg, o.event)
	o.bar.finish()
	if errors.Is(err, context.Canceled) && o.run != "" {
		fmt.Fprintf(a.err, "gdb: stopped; go on with: gdb %s\n",
			commandLine([]string{"train", dir, "--resume", o.run}))
		return errReported{exitInterrupted}
	}
	if err = firstError(err, o.err); err != nil {
		return err
	}
	if res.Planned != nil && !a.quiet {
		fmt.Fprintln(a.err, res.Actual.Compare(res.Planned))
	}
	if t.json {
		return a.printLine(map[string]any{"event": "done", "test": res.Test, "metric": res.Metric,
			"best_val": res.Best, "best_epoch": res.BestEpoch, "run": res.Run,
			"epochs": res.Epochs})
	}
	_, err = fmt.Fprintln(a.out, res)
	return err
}

// resumed is the configuration of a run to go on with: as it was, but for the flags that were given
// on the command line.
func (t *trainFlags) resumed(a *app, f *pflag.FlagSet, old train.Config) (train.Config, error) {
	resume := t.cfg.Resume
	if err := t.rebase(f, old); err != nil {
		return old, err
	}
	c := t.cfg
	c.Fanout, c.Run, c.Resume = t.fanout, resume, resume
	c.Memory, c.Version = a.memory, "gdb "+version
	if f.Changed("threads") {
		c.Threads = a.threads
	}
	if f.Changed("seed") {
		c.Seed = a.seed
	}
	return c, nil
}

// rebase puts the flags that were given on the command line on top of base.
func (t *trainFlags) rebase(f *pflag.FlagSet, base train.Config) error {
	fresh := &trainFlags{}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	fresh.bind(set)
	fresh.cfg, fresh.fanout = base, base.Fanout
	var err error
	f.VisitAll(func(fl *pflag.Flag) {
		if fl.Changed && set.Lookup(fl.Name) != nil && err == nil {
			err = set.Set(fl.Name, fl.Value.String())
		}
	})
	if err != nil {
		return usage(err)
	}
	t.cfg, t.fanout = fresh.cfg, fresh.fanout
	return nil
}

// takeFrom loads --from run.json below the flags of the command line; the run gets a new name.
func (t *trainFlags) takeFrom(a *app, f *pflag.FlagSet) error {
	if t.from == "" {
		return nil
	}
	b, err := os.ReadFile(t.from)
	if err != nil {
		return usage(fmt.Errorf("train: --from: %w", err))
	}
	file := struct {
		Config train.Config `json:"config"`
	}{runs.Default()}
	if err := json.Unmarshal(b, &file); err != nil {
		return usage(fmt.Errorf("train: --from %s: %w", t.from, err))
	}
	file.Config.Run = ""
	if !f.Changed("seed") {
		a.seed = file.Config.Seed
	}
	return t.rebase(f, file.Config)
}

// trainObserver prints a run as it goes.
type trainObserver struct {
	app   *app
	json  bool
	bar   *progress
	run   string
	shown *superbatch.Reading // the last one
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
		o.bar.update(fmt.Sprintf("epoch %d", p.Epoch), int64(p.Batch), int64(p.Batches), "batches")
	case e.Reading != nil:
		if !o.app.quiet && (o.shown == nil || o.shown.Swept != e.Reading.Swept) {
			o.bar.finish()
			fmt.Fprintf(o.app.err, "%s\n", e.Reading)
		}
		o.shown = e.Reading
	case e.Epoch != nil:
		o.bar.finish()
		o.unlabeled(e.Epoch.Unlabeled)
		if o.json {
			o.err = o.app.printLine(e.Epoch)
			return
		}
		_, o.err = fmt.Fprintln(o.app.out, e.Epoch)
	}
}

// unlabeled notes once that nodes teach nothing.
func (o *trainObserver) unlabeled(nodes uint64) {
	if nodes > 0 && !o.noted && !o.app.quiet {
		fmt.Fprintf(o.app.err, "note: %s nodes of the train split have no label, and are left out "+
			"of the loss\n", count(nodes))
	}
	o.noted = true
}

func (o *trainObserver) started(s *train.Started) {
	o.run = s.Run
	if o.app.quiet {
		return
	}
	what := "run " + s.Run
	if s.Resumed {
		what += fmt.Sprintf(", resumed in epoch %d after %d batches", s.Epoch, s.Batch)
	}
	fmt.Fprintf(o.app.err, "%s: exact sampling; %s\n", what, s.Plan)
	if f := s.Plan.Forecast; f != nil {
		fmt.Fprintf(o.app.err, "plan: %s\n", f)
	}
	if why := s.Plan.Why(); why != "" {
		fmt.Fprintf(o.app.err, "chosen: %s\n", why)
	}
	if s.Note != "" {
		o.app.note(s.Note)
	}
}

func (a *app) printLine(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n", b)
	return err
}

func (a *app) evalCommand() *cobra.Command {
	var c train.EvalConfig
	var asJSON bool
	cmd := &cobra.Command{
		Use: "eval STORE --run NAME", Short: "Evaluate a run on a split, exactly",
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if c.Run == "" {
				return usage(errNoRun)
			}
			st, dev, err := a.openForRun(cmd, args[0], "auto")
			if err != nil {
				return fmt.Errorf("eval: %w", err)
			}
			defer func() { err = firstError(err, dev.Close()) }()
			c.Limits = a.limits()
			res, err := train.Evaluate(cmd.Context(), st, dev, c)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(res)
			}
			_, err = fmt.Fprintf(a.out, "%s %s %.4f, accuracy %.4f, micro-F1 %.4f, macro-F1 %.4f "+
				"over %s nodes (weights of epoch %d)\n", res.Split, res.Metric, res.Value,
				res.Accuracy, res.MicroF1, res.MacroF1, count(res.Nodes), res.Epoch)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Run, "run", "", "the run whose best weights are evaluated")
	f.StringVar(&c.Split, "split", "test", "train, val, test, or a stored set such as test@3")
	f.StringVar(&c.Mode, "mode", "", "exact (default) or sampled")
	f.StringVar(&c.Metric, "metric", "",
		"accuracy, micro-f1, macro-f1 or roc-auc (default: the run's)")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	a.completeRuns(cmd, "run")
	return cmd
}

func (a *app) predictCommand() *cobra.Command {
	var c train.PredictConfig
	var out string
	cmd := &cobra.Command{
		Use: "predict STORE --run NAME --out FILE", Args: exactArgs(1),
		Short: "Predict labels under your own ids, to .csv, .parquet or .npy",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if c.Run == "" {
				return usage(errNoRun)
			}
			if out == "" {
				return usage(errors.New("predict: no --out FILE.csv, .parquet or .npy"))
			}
			w, err := train.NewPredictionWriter(a.fs, out)
			if err != nil {
				return usage(err)
			}
			st, dev, err := a.openForRun(cmd, args[0], "auto")
			if err != nil {
				return fmt.Errorf("predict: %w", err)
			}
			defer func() { err = firstError(err, dev.Close()) }()
			c.Limits = a.limits()
			if err := train.Predict(cmd.Context(), st, dev, c, w); err != nil {
				return err
			}
			if a.quiet {
				return nil
			}
			_, err = fmt.Fprintf(a.out, "predictions are in %s\n", out)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Run, "run", "", "the run whose best weights predict")
	f.StringVar(&c.Split, "split", "", "train, val, test or a stored set (default: every node)")
	f.BoolVar(&c.Probabilities, "probabilities", false, "add a column p:LABEL for each class")
	f.StringVar(&out, "out", "", "file to write")
	a.completeRuns(cmd, "run")
	return cmd
}
