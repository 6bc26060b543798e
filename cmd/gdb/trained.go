package main

import (
	"errors"
	"fmt"
	"slices"

	"gdb/cmd/gdb/linkcmd"
	"gdb/internal/program"
	"gdb/layout"
	"gdb/train"
	"gdb/train/report"
	"gdb/train/runs"

	"github.com/spf13/cobra"
)

func (a *app) evalCommand() *cobra.Command {
	var c train.EvalConfig
	var asJSON bool
	candidates := 0
	cmd := &cobra.Command{
		Use: "eval STORE [--run NAME]", Short: "Evaluate a run on a split, exactly",
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			for name, value := range map[string]string{"metric": c.Metric, "eval-mode": c.Mode} {
				if known := runs.Choices(name); value != "" && !slices.Contains(known, value) {
					return usage(fmt.Errorf("eval: --%s %q: want %s", name, value, oneOf(known)))
				}
			}
			st, dev, err := a.openForRun(cmd, args[0], "auto")
			if err != nil {
				return fmt.Errorf("eval: %w", err)
			}
			defer func() { err = firstError(err, dev.Close()) }()
			if c.Run, err = a.chosen(cmd, st, c.Run); err != nil {
				return err
			}
			if linkcmd.IsLink(st, c.Run) {
				return linkcmd.Eval(cmd.Context(), a.linkEnv(), st, dev, linkcmd.EvalOptions{
					Run: c.Run, Split: c.Split, Candidates: candidates, JSON: asJSON})
			}
			c.Limits = a.limits()
			res, err := train.Evaluate(cmd.Context(), st, dev, c)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(res)
			}
			return report.Text(a.out, res)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Run, "run", "", runHelp)
	f.StringVar(&c.Split, "split", "test", splitHelp)
	f.StringVar(&c.Mode, "eval-mode", "exact", evalModeHelp)
	alias(f, "mode", "eval-mode")
	f.StringVar(&c.Metric, "metric", "", "what the split is judged by: "+
		oneOf(runs.Choices("metric"))+" (default: the run's)")
	f.IntVar(&candidates, "candidates", 0,
		"of a run of links: entities that an end is ranked among; 0: all")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) predictCommand() *cobra.Command {
	var c train.PredictConfig
	var out string
	var force bool
	links := &linkcmd.PredictOptions{}
	cmd := &cobra.Command{
		Use: "predict STORE [--run NAME] --out FILE", Args: exactArgs(1),
		Short: "Predict labels under your own ids, to .csv, .parquet or .npy",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			flag, asks := linkcmd.AsksLink(cmd.Flags())
			if out == "" && !asks {
				return usage(errors.New("predict: no --out FILE.csv, .parquet or .npy"))
			}
			w, err := train.NewPredictionWriter(a.fs, out)
			if err != nil && !asks {
				return usage(err)
			}
			if out != "" {
				if err := a.mayWrite(out, force); err != nil {
					return err
				}
			}
			st, dev, err := a.openForRun(cmd, args[0], "auto")
			if err != nil {
				return fmt.Errorf("predict: %w", err)
			}
			defer func() { err = firstError(err, dev.Close()) }()
			if c.Run, err = a.chosen(cmd, st, c.Run); err != nil {
				return err
			}
			links.Run, links.Out = c.Run, out
			if linkcmd.IsLink(st, c.Run) {
				return linkcmd.Predict(cmd.Context(), a.linkEnv(), st, dev, links)
			}
			if asks {
				return usage(fmt.Errorf("predict: --%s is for runs of links, and %s predicts nodes",
					flag, c.Run))
			}
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
	f.StringVar(&c.Run, "run", "", runHelp)
	f.StringVar(&c.Split, "split", "", splitHelp+" (default: every node)")
	f.BoolVar(&c.Probabilities, "probabilities", false, "add a column p:LABEL for each class")
	f.StringVar(&out, "out", "", "file to write")
	f.BoolVar(&force, "force", false, "overwrite the file")
	links.Bind(f)
	return cmd
}

// chosen is the run that is asked for, or the best one, which it tells.
func (a *app) chosen(cmd *cobra.Command, st *layout.Store, run string) (string, error) {
	if run != "" {
		return run, nil
	}
	best, err := runs.Best(cmd.Context(), st)
	if errors.Is(err, runs.ErrNone) {
		return "", usage(fmt.Errorf("%w: %s train %s", err, program.Name,
			cmd.Flags().Arg(0)))
	}
	if err != nil {
		return "", err
	}
	if !a.quiet {
		a.note(fmt.Sprintf("run %s, the best on val (%s %s); --run chooses another", best.Name,
			best.Metric, runs.Figure(best.Best, 4)))
	}
	return best.Name, nil
}

// mayWrite fails if a file is there that would be overwritten, or its directory is not.
func (a *app) mayWrite(file string, force bool) error {
	if _, err := a.fs.Stat(file); err == nil && !force {
		return fmt.Errorf("%s is there already: --force overwrites it", file)
	}
	dir := a.fs.PathDir(file)
	if _, err := a.fs.Stat(dir); err != nil {
		return fmt.Errorf("%s: there is no directory %s: make it first", file, dir)
	}
	return nil
}

// cut shortens a name to so many characters.
func cut(name string, most int) string {
	r := []rune(name)
	if len(r) <= most {
		return name
	}
	return string(r[:most-1]) + "…"
}
