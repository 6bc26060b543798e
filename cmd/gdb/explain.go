package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"gdb/cmd/gdb/cli"
	"gdb/internal/files"
	"gdb/train"
	"gdb/train/report"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/spf13/cobra"
)

func (a *app) explainCommand() *cobra.Command {
	var c train.ExplainConfig
	var out string
	var force, asJSON bool
	cmd := &cobra.Command{
		Use: "explain STORE [--run NAME] --node ID", Args: cli.ExactArgs(1),
		Short: "Show which edges and columns a prediction of a node depends on",
		Long: `Show which edges, columns and neighbors a run's prediction of a node depends
on, over its whole neighborhood. MASK is learned as GNNExplainer does: from 0
to 1, how far the prediction needs the edge or the column. GRADIENT is the
gradient of the class's output times the input: what the edge, column or node
adds to it, to first order.`,
		Example: `  gdb explain cora.gdb --node 31336
  gdb explain cora.gdb --run r0002 --node 31336 --class Theory --top 20 --json
  gdb explain cora.gdb --node 31336 --out why.html`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			switch {
			case c.Node == "":
				return cli.Usage(errors.New("explain: no --node ID: say which node"))
			case c.Top < 1:
				return cli.Usage(fmt.Errorf("explain: --top %d: give at least 1", c.Top))
			case out != "" && !strings.HasSuffix(out, ".html") && !strings.HasSuffix(out, ".svg"):
				return cli.Usage(wantFile("explain", out, "FILE.html or FILE.svg"))
			}
			if out != "" {
				if err := a.MayWrite(out, force); err != nil {
					return err
				}
			}
			st, dev, err := a.OpenRun(cmd, args[0], &c.Run)
			if err != nil {
				return err
			}
			if runs.PredictsLinks(st, c.Run) {
				return cli.Usage(fmt.Errorf("explain: run %s predicts links, and predictions of "+
					"nodes are explained alone so far", c.Run))
			}
			c.Limits = a.Limits()
			e, err := train.Explain(cmd.Context(), st, dev, c)
			if err != nil {
				return err
			}
			return a.showExplanation(e, out, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Run, "run", "", cli.RunHelp)
	f.StringVar(&c.Node, "node", "", "the node whose prediction is explained, by its id")
	f.StringVar(&c.Class, "class", "",
		"explain the probability of this class (default: the predicted one)")
	f.IntVar(&c.Top, "top", 10, "edges, columns and nodes to list")
	f.StringVar(&out, "out", "", "page or picture to write: FILE.html or FILE.svg")
	f.BoolVar(&force, "force", false, "overwrite the file")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	cli.OnlyFor(f, setting.OfNodes, "node", "class")
	return cmd
}

// showExplanation writes the page or the picture, if one is wanted, and prints the rest.
func (a *app) showExplanation(e *train.Explanation, out string, asJSON bool) error {
	if out != "" {
		page := report.ExplanationPicture(e)
		if strings.HasSuffix(out, ".html") {
			var b bytes.Buffer
			if err := report.WriteExplanation(&b, e); err != nil {
				return err
			}
			page = b.Bytes()
		}
		if err := files.WriteAtomic(a.FS, out, page); err != nil {
			return err
		}
	}
	if asJSON {
		return a.PrintJSON(e)
	}
	return report.ExplanationText(a.Out, e)
}
