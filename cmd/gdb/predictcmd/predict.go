// Package predictcmd is gdb predict: of nodes of a store, of new ones in files, and of links.
package predictcmd

import (
	"errors"
	"fmt"
	"strconv"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/linkcmd"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/train"
	"gdb/train/export"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Reading is how files of nodes and edges are read: as gdb ingest reads them.
type Reading struct {
	// Flags are all flags of gdb ingest.
	Flags *pflag.FlagSet
	// Options returns what these were given, by a command that has some of them.
	Options func(of *pflag.FlagSet) (*ingest.Options, error)
}

// command is gdb predict as it was given.
type command struct {
	*cli.App
	config  train.PredictConfig
	applied cli.AppliedFlags
	out     string
	force   bool
	read    Reading
	links   linkcmd.PredictOptions
}

// Command returns gdb predict.
func Command(app *cli.App, read Reading) *cobra.Command {
	w := &command{App: app, read: read}
	c := &w.config
	cmd := &cobra.Command{
		Use: "predict STORE [--run NAME] --out FILE", Args: cli.ExactArgs(1),
		Short: "Predict labels under your own ids, to .csv, .parquet or .npy",
		Long: `Predict labels of nodes under your own ids: of all, of a split, of those that
came after a snapshot, or of new ones that the store does not have. Those are in
files, which are read as gdb append reads them, into a copy of the store that is
removed afterwards: the predictions are those that gdb append and --new-since
would give, and the store stays as it is. See docs/training.md.`,
		Example: `  gdb predict papers.gdb --run first --probabilities --out p.csv
  gdb predict papers.gdb --nodes new.csv --edges cites.csv --out p.csv
  gdb predict s.gdb --nodes user=n.csv --edges user:buys:item=e.csv --out p.csv
  gdb predict fb.gdb --run links --head /m/027rn --relation capital --top 5`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.check(cmd); err != nil {
				return err
			}
			return w.run(cmd, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Run, "run", "", cli.RunHelp)
	f.StringVar(&c.Split, "split", "", cli.SplitHelp+" (default: every node)")
	f.StringVar(&c.NewSince, "new-since", "", "only nodes that came after this snapshot, a "+
		"number, day or name as for --at, in the store as it is now")
	w.applied.Bind(f, setting.Predict)
	f.BoolVar(&c.Probabilities, "probabilities", false, "add a column p:LABEL for each class")
	f.BoolVar(&c.Calibrated, "calibrated", false, "with --probabilities: by the temperature "+
		"that gdb eval --calibrate kept in the run")
	f.StringVar(&w.out, "out", "", "file to write")
	f.BoolVar(&w.force, "force", false, "overwrite the file")
	cli.OnlyFor(f, setting.OfNodes, "split", "new-since", "probabilities",
		"calibrated")
	w.read.bind(f)
	w.links.Bind(f)
	return cmd
}

func (w *command) run(cmd *cobra.Command, dir string) (err error) {
	isNew, err := asksNew(cmd, w.At)
	if err == nil && w.out != "" {
		err = w.MayWrite(w.out, w.force)
	}
	if err != nil {
		return err
	}
	st, dev, err := w.OpenStore(cmd.Context(), dir, "auto")
	if err != nil {
		return fmt.Errorf("predict: %w", err)
	}
	c := w.config
	if c.Run, err = w.Chosen(cmd, st, c.Run); err != nil {
		return err
	}
	if c.NewSince == "" && !isNew { // else what is new is in the store as it is
		if st, err = w.AtRun(cmd.Context(), st, c.Run); err != nil {
			return err
		}
	}
	w.links.Run, w.links.Out = c.Run, w.out
	if runs.PredictsLinks(st, c.Run) {
		if err := cli.CheckTask(cmd.Flags(), c.Run, setting.OfLinks); err != nil {
			return err
		}
		return linkcmd.Predict(cmd.Context(), w.App, st, dev, &w.links)
	}
	if err := cli.CheckTask(cmd.Flags(), c.Run, setting.OfNodes); err != nil {
		return err
	}
	if c.Limits, err = w.applied.Limits(w.App); err != nil {
		return err
	}
	if c.Out = w.out; isNew {
		err = w.predictNew(cmd, st, dev, c)
	} else {
		err = train.Predict(cmd.Context(), st, dev, c)
	}
	if err != nil {
		return err
	}
	if w.Quiet {
		return nil
	}
	_, err = fmt.Fprintf(w.Out, "predictions are in %s\n", w.out)
	return err
}

// predictNew predicts nodes that the store does not have.
func (w *command) predictNew(cmd *cobra.Command, st *layout.Store, dev blockdev.Device,
	c train.PredictConfig) (err error) {
	with, err := w.draft(cmd, st, c.Run)
	if err != nil {
		return err
	}
	defer func() { err = cli.FirstError(err, with.Close()) }()
	c.NewSince = strconv.FormatUint(with.Since, 10)
	return train.Predict(cmd.Context(), with.Store, dev, c)
}

// check checks the flags before anything is opened.
func (w *command) check(cmd *cobra.Command) error {
	c, out := &w.config, w.out
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
