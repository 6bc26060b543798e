package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/linkcmd"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/train"
	"gdb/train/export"
	"gdb/train/report"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/spf13/cobra"
)

// testHelp says what eval and report look at where a store has no test split.
const testHelp = "; without test and --split: val"

// splitOf returns the split that was asked for, or val where none was and the store has no test.
func (a *app) splitOf(cmd *cobra.Command, split string, there []string) string {
	if cmd.Flags().Changed("split") || slices.Contains(there, split) ||
		!slices.Contains(there, "val") {
		return split
	}
	if !a.Quiet {
		a.Note("the store has no test split: this is val, by which the best epoch was chosen")
	}
	return "val"
}

// edgeSplits returns the names of the splits of the edges.
func edgeSplits(m *kv.Meta) (names []string) {
	for _, s := range m.EdgeSplits {
		names = append(names, s.Name)
	}
	return names
}

func (a *app) evalCommand() *cobra.Command {
	var c train.EvalConfig
	var applied cli.AppliedFlags
	var asJSON, calibrate bool
	candidates := 0
	cmd := &cobra.Command{
		Use: "eval STORE [--run NAME]", Short: "Evaluate a run on a split, exactly",
		Args: cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := checkEval(&c, &applied); err != nil {
				return err
			}
			st, dev, err := a.OpenStore(cmd.Context(), args[0], "auto")
			if err != nil {
				return fmt.Errorf("eval: %w", err)
			}
			defer func() { err = cli.FirstError(err, dev.Close()) }()
			if c.Run, err = a.Chosen(cmd, st, c.Run); err != nil {
				return err
			}
			if st, err = a.AtRun(cmd.Context(), st, c.Run); err != nil {
				return err
			}
			if c.Limits, err = applied.Limits(&a.App); err != nil {
				return err
			}
			if runs.PredictsLinks(st, c.Run) {
				if err := cli.CheckTask(cmd.Flags(), c.Run, setting.OfLinks); err != nil {
					return err
				}
				c.Split = a.splitOf(cmd, c.Split, edgeSplits(st.Meta()))
				return linkcmd.Eval(cmd.Context(), &a.App, st, dev, linkcmd.EvalOptions{
					Run: c.Run, Split: c.Split, Candidates: candidates, JSON: asJSON,
					Where: c.Limits.Where})
			}
			if err := cli.CheckTask(cmd.Flags(), c.Run, setting.OfNodes); err != nil {
				return err
			}
			c.Split = a.splitOf(cmd, c.Split, nodeSplits(st.Meta()))
			if calibrate {
				if err := a.calibrate(cmd.Context(), st, dev, c); err != nil {
					return err
				}
			}
			return a.evaluate(cmd.Context(), st, dev, c, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Run, "run", "", cli.RunHelp)
	f.StringVar(&c.Split, "split", "test", cli.SplitHelp+testHelp)
	f.StringVar(&c.Mode, "eval-mode", "auto", cli.HelpOf("eval-mode"))
	cli.Alias(f, "mode", "eval-mode")
	f.StringVar(&c.Metric, "metric", "", "what the split is judged by: "+
		message.OneOf(setting.Choices("metric"))+" (default: the run's)")
	applied.Bind(f, setting.Eval)
	f.IntVar(&candidates, "candidates", 0,
		cli.HelpOf("candidates"))
	f.BoolVar(&calibrate, "calibrate", false, "fit a temperature on val that makes "+
		"probabilities as high as they are right, and keep it in the run")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	cli.OnlyFor(f, setting.OfNodes, "eval-mode", "mode", "metric", "calibrate")
	cli.OnlyFor(f, setting.OfLinks, "candidates")
	return cmd
}

// checkEval checks the words of flags of gdb eval.
func checkEval(c *train.EvalConfig, applied *cli.AppliedFlags) error {
	for name, value := range map[string]string{"metric": c.Metric, "eval-mode": c.Mode,
		"precision": applied.Precision()} {
		if known := setting.Choices(name); value != "" && !slices.Contains(known, value) {
			return cli.Usage(fmt.Errorf("eval: --%s %q: want %s", name, value,
				message.OneOf(known)))
		}
	}
	return nil
}

// calibrate fits the temperature of a run, and says what it is.
func (a *app) calibrate(ctx context.Context, st *layout.Store, dev blockdev.Device,
	c train.EvalConfig) error {
	r, err := train.Calibrate(ctx, st, dev, c)
	if err != nil {
		return err
	}
	a.Note(fmt.Sprintf("temperature %.4f, fitted on val: its loss is %s, and was %s; kept in "+
		"run %s", r.Temperature, runs.Figure(r.LossAfter, 4), runs.Figure(r.LossBefore, 4), c.Run))
	return nil
}

// evaluate evaluates a run that predicts nodes, and prints the result.
func (a *app) evaluate(ctx context.Context, st *layout.Store, dev blockdev.Device,
	c train.EvalConfig, asJSON bool) error {
	res, err := train.Evaluate(ctx, st, dev, c)
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(res)
	}
	return report.Text(a.Out, res)
}

// saysWhere says where predictions are.
func (a *app) saysWhere(out string) error {
	if a.Quiet {
		return nil
	}
	_, err := fmt.Fprintf(a.Out, "predictions are in %s\n", out)
	return err
}

// checkPredict checks the flags of gdb predict before anything is opened.
func checkPredict(cmd *cobra.Command, c *train.PredictConfig, out string) error {
	if c.NewSince != "" && c.Split != "" {
		return cli.Usage(errors.New("predict: --new-since and --split both say which nodes: " +
			"give one of them"))
	}
	if c.Calibrated && !c.Probabilities {
		return cli.Usage(errors.New("predict: --calibrated changes nothing but probabilities: " +
			"give --probabilities too"))
	}
	asks := cli.Asks(cmd.Flags(), setting.OfLinks) != ""
	if out == "" && !asks {
		return cli.Usage(errors.New("predict: no --out FILE.csv, .parquet or .npy, as in " +
			"--out predictions.csv (of a run of links: --head ID, --tail ID or " +
			"--pairs FILE)"))
	}
	if err := export.CheckPath("predictions", out); err != nil && !asks {
		return cli.Usage(fmt.Errorf("train: %w", err))
	}
	return nil
}

func (a *app) predictCommand() *cobra.Command {
	var c train.PredictConfig
	var applied cli.AppliedFlags
	var out string
	var force bool
	links := &linkcmd.PredictOptions{}
	cmd := &cobra.Command{
		Use: "predict STORE [--run NAME] --out FILE", Args: cli.ExactArgs(1),
		Short: "Predict labels under your own ids, to .csv, .parquet or .npy",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := checkPredict(cmd, &c, out); err != nil {
				return err
			}
			if out != "" {
				if err := a.MayWrite(out, force); err != nil {
					return err
				}
			}
			st, dev, err := a.OpenStore(cmd.Context(), args[0], "auto")
			if err != nil {
				return fmt.Errorf("predict: %w", err)
			}
			defer func() { err = cli.FirstError(err, dev.Close()) }()
			if c.Run, err = a.Chosen(cmd, st, c.Run); err != nil {
				return err
			}
			if c.NewSince == "" { // else what is new is in the store as it is
				if st, err = a.AtRun(cmd.Context(), st, c.Run); err != nil {
					return err
				}
			}
			links.Run, links.Out = c.Run, out
			if runs.PredictsLinks(st, c.Run) {
				if err := cli.CheckTask(cmd.Flags(), c.Run, setting.OfLinks); err != nil {
					return err
				}
				return linkcmd.Predict(cmd.Context(), &a.App, st, dev, links)
			}
			if err := cli.CheckTask(cmd.Flags(), c.Run, setting.OfNodes); err != nil {
				return err
			}
			if c.Limits, err = applied.Limits(&a.App); err != nil {
				return err
			}
			c.Out = out
			if err := train.Predict(cmd.Context(), st, dev, c); err != nil {
				return err
			}
			return a.saysWhere(out)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Run, "run", "", cli.RunHelp)
	f.StringVar(&c.Split, "split", "", cli.SplitHelp+" (default: every node)")
	f.StringVar(&c.NewSince, "new-since", "", "only nodes that came after this snapshot, a "+
		"number, day or name as for --at, in the store as it is now")
	applied.Bind(f, setting.Predict)
	f.BoolVar(&c.Probabilities, "probabilities", false, "add a column p:LABEL for each class")
	f.BoolVar(&c.Calibrated, "calibrated", false, "with --probabilities: by the temperature "+
		"that gdb eval --calibrate kept in the run")
	f.StringVar(&out, "out", "", "file to write")
	f.BoolVar(&force, "force", false, "overwrite the file")
	cli.OnlyFor(f, setting.OfNodes, "split", "new-since", "probabilities",
		"calibrated")
	links.Bind(f)
	return cmd
}
