package main

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/layout"
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
--seed gives the same splits.`,
		Example: `  gdb split my.gdb --split random=60/20/20`,
		Args:    exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if text == "" {
				return usage(errors.New("split: no --split random=TRAIN/VAL/TEST"))
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
		return usage(err)
	}
	st, err := layout.Open(ctx, a.fs, dir)
	if err != nil {
		return err
	}
	dev, err := openDevice(string(blockdev.Auto))
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, dev.Close()) }()
	sets, err := splits.Random(ctx, st, dev, shares, a.seed)
	if err != nil {
		return err
	}
	if err := st.Catalog().PutSplits(ctx, sets); err != nil {
		return err
	}
	if a.quiet {
		return nil
	}
	_, err = fmt.Fprintf(a.out, "splits: train %s, val %s, test %s nodes (seed %d)\n",
		count(sets["train"].GetCardinality()), count(sets["val"].GetCardinality()),
		count(sets["test"].GetCardinality()), a.seed)
	return err
}
