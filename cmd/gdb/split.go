package main

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/layout"
	"gdb/layout/live"
	"gdb/layout/splits"

	"github.com/spf13/cobra"
)

func (a *app) splitCommand() *cobra.Command {
	var text string
	cmd := &cobra.Command{
		Use:   "split STORE --split random=60/20/20",
		Short: "Make train, val and test by random, or replace them",
		Long: `Draw the splits train, val and test of the labeled nodes of a store, and
replace those that it has. Each class gives each split its share; the same
--seed gives the same splits. Splits of the edges, which link prediction
needs, are made as the store is: gdb ingest SRC --edge-split random=85/5/10.`,
		Example: `  gdb split my.gdb --split random=60/20/20`,
		Args:    cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if text == "" {
				return cli.Usage(errors.New("split: no --split random=TRAIN/VAL/TEST"))
			}
			return a.split(cmd.Context(), args[0], text)
		},
	}
	cmd.Flags().StringVar(&text, "split", "", "random=TRAIN/VAL/TEST: shares in percent")
	return cmd
}

// split draws splits of a store.
func (a *app) split(ctx context.Context, dir, text string) (err error) {
	shares, err := splits.ParseShares(text)
	if err != nil {
		return cli.Usage(err)
	}
	st, err := layout.OpenLive(ctx, a.FS, dir)
	if err != nil {
		return err
	}
	dev, err := cli.OpenDevice(string(blockdev.Auto))
	if err != nil {
		return err
	}
	defer func() { err = cli.FirstError(err, dev.Close()) }()
	sets, err := splits.Random(ctx, st, dev, shares, a.Seed)
	if err != nil {
		return err
	}
	if st.Meta().Snapshot > 0 {
		err = live.PutSplits(ctx, a.FS, dir, sets)
	} else {
		err = st.Catalog().PutSplits(ctx, sets)
	}
	if err != nil {
		return err
	}
	if a.Quiet {
		return nil
	}
	_, err = fmt.Fprintf(a.Out, "splits: train %s, val %s, test %s nodes (seed %d)\n",
		cli.Count(sets["train"].GetCardinality()), cli.Count(sets["val"].GetCardinality()),
		cli.Count(sets["test"].GetCardinality()), a.Seed)
	return err
}
