package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/internal/files"
	"gdb/kv"
	"gdb/layout"
	"gdb/serve/ui"
	"gdb/train"
	"gdb/train/report"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) reportCommand() *cobra.Command {
	var c train.EvalConfig
	var names []string
	var out string
	var force, recorded bool
	cmd := &cobra.Command{
		Use: "report STORE [--run NAME] --out FILE.html", Args: cli.ExactArgs(1),
		Short: "Write what a run was and reached as one HTML page",
		Long: `Write a page that needs no network: curves, scores by class, precision by
recall, reliability and the confusion matrix of the test split, vectors of some
nodes in two dimensions, a neighborhood, what the engine did, the settings, and
the data. Of a run that predicts links: curves, how it ranks the test edges, and
the rest. Several runs are laid beside each other: their scores, their curves in
one picture, and the settings in which they differ.`,
		Example: `  gdb report cora.gdb --out cora.html
  gdb report cora.gdb --run r0001,r0002 --out both.html
  gdb report cora.gdb --run r0002 --split val --out r0002.html`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if !strings.HasSuffix(out, ".html") {
				return cli.Usage(wantFile("report", out, "FILE.html"))
			}
			if err := checkRuns(cmd.Flags(), names); err != nil {
				return err
			}
			if err := a.MayWrite(out, force); err != nil {
				return err
			}
			st, dev, err := a.OpenStore(cmd.Context(), args[0], "auto")
			if err != nil {
				return fmt.Errorf("report: %w", err)
			}
			if len(names) > 1 {
				return a.reportSeveral(cmd.Context(), st, names, out)
			}
			if c.Run, err = a.Chosen(cmd, st, strings.Join(names, "")); err != nil {
				return err
			}
			if st, err = a.AtRun(cmd.Context(), st, c.Run); err != nil {
				return err
			}
			return a.reportOne(cmd, st, dev, c, out, recorded)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&names, "run", nil, "run to show, or several of a task: a,b (default: the "+
		"best run)")
	cli.Alias(f, "runs", "run")
	f.StringVar(&c.Split, "split", "test", cli.SplitHelp+testHelp)
	cli.OnlyFor(f, setting.OfNodes, "split")
	f.StringVar(&out, "out", "", "file to write")
	f.BoolVar(&recorded, "recorded", false, "show what the run recorded, and compute nothing: no "+
		"evaluation, no vectors, no neighborhood")
	f.BoolVar(&force, "force", false, "overwrite the file")
	return cmd
}

// reportOne writes the page of a run.
func (a *app) reportOne(cmd *cobra.Command, st *layout.Store, dev blockdev.Device,
	c train.EvalConfig, out string, recorded bool) error {
	d, err := report.Of(cmd.Context(), st, c.Run)
	if err != nil {
		return err
	}
	pictures := ui.PictureOptions{Run: c.Run, Limits: a.Limits()}
	if runs.PredictsLinks(st, c.Run) {
		if err := cli.CheckTask(cmd.Flags(), c.Run, setting.OfLinks); err != nil {
			return err
		}
	} else {
		c.Split = a.splitOf(cmd, c.Split, nodeSplits(st.Meta()))
		if err := a.addTest(cmd.Context(), st, dev, c, d, recorded); err != nil {
			return err
		}
		pictures.Split = c.Split
	}
	if !recorded {
		if d.Pictures, err = ui.Pictures(cmd.Context(), st, dev, pictures); err != nil {
			return err
		}
		for _, p := range d.Pictures {
			if p.Why != "" {
				a.Note("the report has no picture of " + strings.ToLower(p.Title) + ": " + p.Why)
			}
		}
	}
	return a.writeReport(out, d)
}

// addTest adds the evaluation on a split: what the run kept, or one that is made now.
func (a *app) addTest(ctx context.Context, st *layout.Store, dev blockdev.Device,
	c train.EvalConfig, d *report.Data, recorded bool) (err error) {
	if c.Split != "test" || !recorded && !d.IsComplete() {
		d.Test = nil
	}
	if d.Test == nil && hasSplit(st.Meta(), c.Split) && !recorded {
		c.Limits = a.Limits()
		if d.Test, err = train.Evaluate(ctx, st, dev, c); err != nil {
			return err
		}
	}
	if d.Test != nil && d.Test.Split == "val" {
		d.Val = nil
	}
	return nil
}

// wantFile is the error of an --out that is missing, or of another kind.
func wantFile(command, out, want string) error {
	if out == "" {
		return fmt.Errorf("%s: no --out %s: say where it goes", command, want)
	}
	return fmt.Errorf("%s: --out %s: want %s", command, out, want)
}

// hasSplit reports whether there is a split of that name, of one column or of several.
func hasSplit(m *kv.Meta, name string) bool {
	return slices.Contains(nodeSplits(m), name) ||
		slices.ContainsFunc(m.Splits, func(s kv.SplitMeta) bool { return s.Name == name })
}

// nodeSplits returns the names of the splits, without those of their columns.
func nodeSplits(m *kv.Meta) (names []string) {
	for _, s := range m.Splits {
		base, _, _ := strings.Cut(s.Name, "@")
		names = append(names, base)
	}
	return names
}

// checkRuns checks the names of runs.
func checkRuns(f *pflag.FlagSet, names []string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return cli.Usage(fmt.Errorf("report: --run names %s twice", name))
		}
	}
	switch {
	case slices.Contains(names, ""):
		return cli.Usage(errors.New("report: --run has an empty name: name the runs, as in a,b"))
	case len(names) > 1 && f.Changed("split"):
		return cli.Usage(errors.New("report: --split is of one run, and --run names several: " +
			"leave it out"))
	}
	return nil
}

// reportSeveral writes the page of several runs.
func (a *app) reportSeveral(ctx context.Context, st *layout.Store, names []string,
	out string) error {
	s, err := report.SeveralOf(ctx, st, names)
	if err != nil {
		return otherTasks("report", err)
	}
	var b bytes.Buffer
	if err := report.WriteSeveral(&b, s); err != nil {
		return err
	}
	return a.writePage(out, b.Bytes(), "runs "+strings.Join(names, ", "))
}

func (a *app) writeReport(out string, d *report.Data) error {
	var b bytes.Buffer
	if err := report.Write(&b, d); err != nil {
		return err
	}
	return a.writePage(out, b.Bytes(), "run "+d.Run)
}

func (a *app) writePage(out string, page []byte, of string) error {
	if err := files.WriteAtomic(a.FS, out, page); err != nil {
		return err
	}
	if a.Quiet {
		return nil
	}
	_, err := fmt.Fprintf(a.Out, "the report of %s is in %s\n", of, out)
	return err
}

// plotRuns draws the scores of runs over their epochs: to an SVG file, or without one on the
// screen.
func (a *app) plotRuns(st *layout.Store, all []kv.RunMeta, out string) error {
	if out != "" && !strings.HasSuffix(out, ".svg") {
		return cli.Usage(wantFile("runs plot", out, "FILE.svg"))
	}
	if len(all) == 0 {
		return cli.Usage(errors.New("runs plot: the store has no runs"))
	}
	var drawn []report.Run
	metric := all[0].Metric
	for _, r := range all {
		epochs, err := report.Epochs(runs.Open(st, r.Name))
		if err != nil {
			return err
		}
		drawn = append(drawn, report.Run{Name: r.Name, Epochs: epochs})
		if r.Metric != metric {
			metric = "score (of different metrics)"
		}
	}
	if out == "" {
		return report.PlotText(a.Out, metric, drawn)
	}
	return files.WriteAtomic(a.FS, out, report.Compare(metric, drawn))
}
