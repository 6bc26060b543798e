package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/linkcmd"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/train"
	"gdb/train/report"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) reportCommand() *cobra.Command {
	var c train.EvalConfig
	var several []string
	var out string
	var force bool
	cmd := &cobra.Command{
		Use: "report STORE [--run NAME] --out FILE.html", Args: cli.ExactArgs(1),
		Short: "Write what a run was and reached as one HTML page",
		Long: `Write a page that needs no network: curves, scores by class and the confusion
matrix of the test split, what the engine did, the settings, and the data. Of a
run that predicts links: curves, how it ranks the test edges, and the same.
--runs lays several beside each other: their scores, their curves in one
picture, and the settings in which they differ.`,
		Example: `  gdb report cora.gdb --out cora.html
  gdb report cora.gdb --runs r0001,r0002 --out both.html
  gdb report cora.gdb --run r0002 --split val --out r0002.html`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if !strings.HasSuffix(out, ".html") {
				return cli.Usage(wantFile("report", out, "FILE.html"))
			}
			if err := checkSeveral(cmd.Flags(), several); err != nil {
				return err
			}
			if err := a.MayWrite(out, force); err != nil {
				return err
			}
			st, dev, err := a.OpenStore(cmd.Context(), args[0], "auto")
			if err != nil {
				return fmt.Errorf("report: %w", err)
			}
			defer func() { err = cli.FirstError(err, dev.Close()) }()
			if several != nil {
				return a.reportSeveral(cmd, st, several, out)
			}
			if c.Run, err = a.Chosen(cmd, st, c.Run); err != nil {
				return err
			}
			if st, err = a.AtRun(cmd.Context(), st, c.Run); err != nil {
				return err
			}
			if runs.PredictsLinks(st, c.Run) {
				return a.reportLinks(cmd, st, args[0], c.Run, out)
			}
			c.Split = a.splitOf(cmd, c.Split, nodeSplits(st.Meta()))
			d, err := a.reportData(cmd, st, args[0], c)
			if err != nil {
				return err
			}
			if d.Test == nil && hasSplit(st.Meta(), c.Split) {
				c.Limits = a.Limits()
				if d.Test, err = train.Evaluate(cmd.Context(), st, dev, c); err != nil {
					return err
				}
			}
			if d.Test != nil && d.Test.Split == "val" {
				d.Val = nil
			}
			return a.writeReport(out, d)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Run, "run", "", cli.RunHelp)
	f.StringSliceVar(&several, "runs", nil, "several runs of a task, on one page: a,b")
	f.StringVar(&c.Split, "split", "test", cli.SplitHelp+testHelp)
	cli.OnlyFor(f, setting.OfNodes, "split")
	f.StringVar(&out, "out", "", "file to write")
	f.BoolVar(&force, "force", false, "overwrite the file")
	return cmd
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

// reportData reads what a run recorded.
func (a *app) reportData(cmd *cobra.Command, st *layout.Store, dir string,
	c train.EvalConfig) (*report.Data, error) {
	file, err := runs.Open(st, c.Run).ReadFile()
	if err != nil {
		return nil, err
	}
	d := &report.Data{Store: dir, Run: c.Run, Made: file.GDB, Data: storeFacts(st.Meta()),
		Settings: setting.SetTexts(&file.Config)}
	if err := noteStatus(cmd, st, d); err != nil {
		return nil, err
	}
	if d.Test, err = train.Kept(&file, c.Split); err != nil {
		return nil, err
	}
	d.Epochs, err = epochsOf(st, c.Run)
	for _, e := range d.Epochs {
		if e.Best {
			d.Best, d.Val = e.Epoch, e.Val
		}
	}
	return d, err
}

// noteStatus adds how far a run is, as the catalog has it.
func noteStatus(cmd *cobra.Command, st *layout.Store, d *report.Data) error {
	all, err := st.Catalog().Runs(cmd.Context())
	for _, r := range all {
		if r.Name == d.Run {
			d.Status, d.Metric, d.Tested = r.Status, r.Metric, r.TestScore()
		}
	}
	return err
}

// reportLinks writes the page of a run that predicts links.
func (a *app) reportLinks(cmd *cobra.Command, st *layout.Store, dir, run, out string) error {
	if err := cli.CheckTask(cmd.Flags(), run, setting.OfLinks); err != nil {
		return err
	}
	d, err := linkcmd.ReportData(runs.Open(st, run))
	if err != nil {
		return err
	}
	d.Store, d.Data = dir, storeFacts(st.Meta())
	if err := noteStatus(cmd, st, d); err != nil {
		return err
	}
	return a.writeReport(out, d)
}

// checkSeveral checks the flags of a report of several runs.
func checkSeveral(f *pflag.FlagSet, names []string) error {
	if !f.Changed("runs") {
		return nil
	}
	for _, flag := range []string{"run", "split"} {
		if f.Changed(flag) {
			return cli.Usage(fmt.Errorf("report: --%s is of one run, and --runs names several: "+
				"give one of them", flag))
		}
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return cli.Usage(fmt.Errorf("report: --runs names %s twice", name))
		}
	}
	if len(names) == 0 || slices.Contains(names, "") {
		return cli.Usage(errors.New("report: --runs has an empty name: name the runs, as in a,b"))
	}
	return nil
}

// reportSeveral writes the page of several runs.
func (a *app) reportSeveral(cmd *cobra.Command, st *layout.Store, names []string,
	out string) (err error) {
	s := &report.Several{Store: cmd.Flags().Arg(0), Data: storeFacts(st.Meta())}
	if s.Differing, err = differing(st, "report", names); err != nil {
		return err
	}
	for _, name := range names {
		var d *report.Data
		if runs.PredictsLinks(st, name) {
			d, err = linkcmd.ReportData(runs.Open(st, name))
		} else {
			d, err = a.reportData(cmd, st, s.Store, train.EvalConfig{Run: name, Split: "test"})
		}
		if err == nil {
			err = noteStatus(cmd, st, d)
		}
		if err != nil {
			return err
		}
		s.Runs = append(s.Runs, d)
	}
	var b bytes.Buffer
	if err := report.WriteSeveral(&b, s); err != nil {
		return err
	}
	return a.writePage(out, b.Bytes(), "runs "+strings.Join(names, ", "))
}

// epochsOf reads the epochs of a run.
func epochsOf(st *layout.Store, run string) (epochs []runs.Epoch, err error) {
	err = runs.Open(st, run).Epochs(func(e *runs.Epoch) error {
		epochs = append(epochs, *e)
		return nil
	})
	return epochs, err
}

// storeFacts returns the lines of gdb info that say what the data is.
func storeFacts(m *kv.Meta) (rows [][2]string) {
	add := func(name, format string, args ...any) {
		rows = append(rows, [2]string{name, fmt.Sprintf(format, args...)})
	}
	add("source", "%s: %s", m.Source.Format, strings.Join(m.Source.Paths, ", "))
	add("nodes", "%s", cli.Count(m.Nodes))
	add("edges", "%s", cli.Count(m.Edges))
	if n := len(m.EdgeTypes); n > 0 {
		add("edge types", "%d: %s", n, shorten(m.EdgeTypes, 20))
	}
	for _, t := range m.NodeTypes {
		add("nodes of type "+t.Name, "%s", cli.Count(t.Nodes))
	}
	for _, f := range m.Features {
		add("features "+f.Name, "%d x %s", f.Dim, f.DType)
		if names := m.FeatureColumns(f).Sources(); len(names) > 0 {
			add("columns of "+f.Name, "%d: %s", len(names), shorten(names, 20))
		}
	}
	if m.Labels != nil && m.Labels.Kind == "target" {
		add("labels", "numbers, %s nodes", cli.Count(m.Labels.Labeled))
	} else if m.Labels != nil {
		add("labels", "%s, %s nodes, %d classes", m.Labels.Kind, cli.Count(m.Labels.Labeled),
			len(m.Labels.Classes))
		if n := m.Labels.Unknown; n > 0 {
			add("unknown labels", "%s", cli.Count(n))
		}
	}
	for _, s := range m.Splits {
		add("split "+s.Name, "%s nodes", cli.Count(s.Count))
	}
	add("size", "%s", mem.FormatSize(storeBytes(m)))
	add("identity", "%s", m.UUID)
	return rows
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
		epochs, err := epochsOf(st, r.Name)
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
