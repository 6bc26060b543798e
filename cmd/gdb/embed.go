package main

import (
	"errors"
	"fmt"

	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/linkcmd"
	"gdb/train"
	"gdb/train/export"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/spf13/cobra"
)

func (a *app) embedCommand() *cobra.Command {
	var c train.EmbedConfig
	var applied cli.AppliedFlags
	var force bool
	cmd := &cobra.Command{
		Use: "embed STORE [--run NAME] --out FILE", Args: cli.ExactArgs(1),
		Short: "Write a vector for each node, to .csv, .parquet or .npy",
		Long: `Write a vector for each node under your own ids: of a run of links, the
vectors that it learned; of a run of nodes, what the last hidden layer of its
model gives, computed over whole lists. See gdb help link for what to do with
them.`,
		Example: `  gdb embed fb.gdb --run first --out vectors.parquet`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if c.Out == "" {
				return cli.Usage(errors.New("embed: no --out FILE.csv, .parquet or .npy, as in " +
					"--out vectors.parquet"))
			}
			if err := export.CheckPath("vectors", c.Out); err != nil {
				return cli.Usage(fmt.Errorf("embed: %w", err))
			}
			if err := a.MayWrite(c.Out, force); err != nil {
				return err
			}
			st, dev, err := a.OpenRun(cmd, args[0], &c.Run)
			if err != nil {
				return err
			}
			if !runs.PredictsLinks(st, c.Run) {
				if c.Limits, err = applied.Limits(&a.App); err == nil {
					err = train.Embed(cmd.Context(), st, dev, c)
				}
			} else if err = cli.CheckTask(cmd.Flags(), c.Run, setting.OfLinks); err == nil {
				err = linkcmd.Embed(cmd.Context(), &a.App, st, dev, c.Run, c.Out)
			}
			if err != nil || a.Quiet {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "vectors are in %s\n", c.Out)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Run, "run", "", cli.RunHelp)
	f.StringVar(&c.Out, "out", "", "file to write")
	applied.Bind(f, setting.Embed)
	f.BoolVar(&force, "force", false, "overwrite the file")
	return cmd
}
