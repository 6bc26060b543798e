package main

import (
	"context"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/linkcmd"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/train"
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
			st, dev, err := a.OpenRun(cmd, args[0], &c.Run)
			if err != nil {
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
