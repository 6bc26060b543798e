package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/cmd/gdb/cli"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/live"
	"gdb/train"
	"gdb/train/export"
	"gdb/train/report"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/spf13/cobra"
)

// runsWords are what gdb runs does.
var runsWords = []string{"list", "show", "compare", "plot", "export", "rm"}

func (a *app) runsCommand() *cobra.Command {
	var asJSON, force bool
	var out string
	cmd := &cobra.Command{
		Use:   "runs STORE [list|show|compare|plot|export|rm] [RUN...]",
		Short: "List, compare, plot, export and remove runs",
		Long: `List the runs of a store (list, what it does without a word), show the
settings and the epochs of one (show), print the settings in which several
differ beside what they reached (compare), draw their scores (plot), write the
best weights of one for other programs (export), or remove some (rm).`,
		Example: `  gdb runs cora.gdb
  gdb runs cora.gdb compare r0001 r0002
  gdb runs cora.gdb plot r0001 r0002
  gdb runs cora.gdb plot r0001 r0002 --out scores.svg
  gdb runs cora.gdb export r0001 --out weights.safetensors
  gdb runs cora.gdb rm r0001`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(fmt.Errorf("runs: no store: %s", cmd.UseLine()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := layout.OpenLive(cmd.Context(), a.FS, args[0])
			if err != nil {
				return fmt.Errorf("runs: %w", err)
			}
			what, names := "list", []string{}
			if len(args) > 1 {
				what, names = args[1], args[2:]
			}
			if out != "" && (what == "plot" || what == "export") {
				if err := a.MayWrite(out, force); err != nil {
					return fmt.Errorf("runs %s: %w", what, err)
				}
			}
			return a.runs(cmd, st, what, names, out, asJSON)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file that plot (.svg; without one it draws here) or "+
		"export (.safetensors) writes")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite the file")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) runs(cmd *cobra.Command, st *layout.Store, what string, names []string,
	out string, asJSON bool) error {
	all, err := st.Catalog().Runs(cmd.Context())
	if err != nil {
		return err
	}
	for _, n := range names {
		known := slices.ContainsFunc(all, func(r kv.RunMeta) bool { return r.Name == n })
		if what == "rm" && !known { // killed before the catalog had it
			known = setting.ValidName(n) == nil && runs.Open(st, n).Exists()
		}
		if !known {
			return cli.Usage(fmt.Errorf("runs: there is no run %s: %s runs STORE lists them",
				n, message.Program))
		}
	}
	if len(names) > 0 && what != "rm" {
		all = slices.DeleteFunc(all, func(r kv.RunMeta) bool {
			return !slices.Contains(names, r.Name)
		})
	}
	switch {
	case what == "list" || what == "compare" && asJSON:
		return cli.FirstError(a.listRuns(all, asJSON), runs.Damaged(st, runs.Names(all)...))
	case what == "show" && len(names) == 1:
		return a.showRun(st, all[0], asJSON)
	case what == "plot":
		return a.plotRuns(st, all, out)
	case what == "export" && len(names) == 1:
		return a.exportRun(cmd.Context(), st, names[0], out)
	case what == "compare":
		return a.compareRuns(st, all)
	case what == "rm" && len(names) > 0:
		for _, n := range names {
			if err := runs.Remove(cmd.Context(), st, n); err != nil {
				return fmt.Errorf("runs: %w", err)
			}
		}
		if st.Meta().Snapshot > 0 { // what they kept
			return live.Sweep(cmd.Context(), a.FS, st.Dir())
		}
		return nil
	case what == "show" || what == "rm" || what == "export":
		return cli.Usage(fmt.Errorf("runs %s: name the run", what))
	}
	return cli.Usage(fmt.Errorf("runs: %q is not one of %s", what, strings.Join(runsWords, ", ")))
}

func (a *app) listRuns(all []kv.RunMeta, asJSON bool) error {
	if asJSON {
		return a.printFields(map[string]any{"runs": scored(all)})
	}
	if len(all) == 0 && !a.Quiet {
		a.Note("the store has no runs yet: " + message.Program + " train makes one")
	}
	return printRuns(&cli.Lines{W: a.Out}, all)
}

// scoredRun is a run as JSON has it: its own Best and Test hide the embedded ones, and are null
// where nothing was measured.
type scoredRun struct {
	kv.RunMeta
	Best, Test *float64
}

func scored(all []kv.RunMeta) []scoredRun {
	out := make([]scoredRun, len(all))
	for i, r := range all {
		out[i] = scoredRun{r, r.BestScore(), r.TestScore()}
	}
	return out
}

// figure returns a score as people read it, or - where nothing was measured.
func figure(score *float64) string {
	if score == nil {
		return "-"
	}
	return runs.Figure(*score, 4)
}

// printRuns prints a line for each run, under a heading.
func printRuns(w *cli.Lines, all []kv.RunMeta) error {
	if len(all) > 0 {
		w.Printf("%-14s %-11s %-5s %6s  %-9s %7s %7s  %s\n", "run", "status", "model", "epochs",
			"metric", "val", "test", "when")
	}
	for _, r := range all {
		w.Printf("%-14s %-11s %-5s %6d  %-9s %7s %7s  %s\n", cli.Cut(r.Name, 14), r.Status, r.Model,
			r.Epochs, r.Metric, figure(r.BestScore()), figure(r.TestScore()),
			r.Updated.Format("Jan 2 15:04"))
	}
	return w.Err
}

// showRun prints the settings of a run and its epochs.
func (a *app) showRun(st *layout.Store, r kv.RunMeta, asJSON bool) error {
	dir := runs.Open(st, r.Name)
	file, err := dir.ReadAny()
	if err != nil {
		return err
	}
	var epochs []runs.Record
	if err := dir.Records(&file, func(e runs.Record) error {
		epochs = append(epochs, e)
		return nil
	}); err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(map[string]any{"run": r.Name, "status": r.Status,
			"config": file.Settings(), "epochs": epochs, "test": file.Test})
	}
	w := &cli.Lines{W: a.Out}
	w.Printf("run %s, %s, made by %s\n", r.Name, r.Status, file.GDB)
	for _, s := range setting.SetTexts(file.Settings()) {
		w.Printf("%-18s %s\n", s[0], s[1])
	}
	for _, e := range epochs {
		w.Printf("%s\n", e)
	}
	if file.Link != nil || w.Err != nil {
		return w.Err
	}
	tested, err := train.Tested(&file)
	if tested == nil || err != nil {
		return err
	}
	w.Printf("\n")
	return report.Text(a.Out, tested)
}

// exportRun writes the best weights of a run.
func (a *app) exportRun(ctx context.Context, st *layout.Store, run, out string) error {
	if !strings.HasSuffix(out, export.WeightsExtension) {
		return cli.Usage(wantFile("runs export", out, "FILE"+export.WeightsExtension))
	}
	note, err := export.WriteWeights(ctx, st, run, out)
	if errors.Is(err, runs.ErrOtherTask) {
		return cli.Usage(fmt.Errorf("runs export: run %s predicts links: %s embed writes its "+
			"vectors", run, message.Program))
	}
	if err != nil {
		return fmt.Errorf("runs export: %w", err)
	}
	if a.Quiet {
		return nil
	}
	if note != "" {
		a.Note(note)
	}
	_, err = fmt.Fprintf(a.Out, "the weights of run %s are in %s\n", run, out)
	return err
}

// compareRuns prints the runs, and the settings that are not the same in all.
func (a *app) compareRuns(st *layout.Store, all []kv.RunMeta) error {
	w := &cli.Lines{W: a.Out}
	if err := printRuns(w, all); err != nil {
		return err
	}
	rows, err := report.Differing(st, runs.Names(all))
	if err != nil {
		return otherTasks("runs compare", err)
	}
	for _, row := range rows {
		for i, r := range all {
			name := ""
			if i == 0 {
				name = row[0]
			}
			w.Printf("%-18s %-14s %s\n", name, cli.Cut(r.Name, 14), row[1+i])
		}
	}
	return w.Err
}

// otherTasks returns the error of runs that a command compares.
func otherTasks(command string, err error) error {
	if errors.Is(err, report.ErrOtherTasks) {
		return cli.Usage(fmt.Errorf("%s: %w", command, err))
	}
	return err
}
