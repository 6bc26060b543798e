package main

import (
	"context"

	"gdb/cmd/gdb/cli"
	"gdb/internal/mem"
	"gdb/layout/live"
	"gdb/layout/parts"

	"github.com/spf13/cobra"
)

func (a *app) compactCommand() *cobra.Command {
	return &cobra.Command{
		Use: "compact STORE", Short: "Write a store that was appended to anew as one",
		Long: `Write all that gdb append added to a store, and what was there before, anew
as one. Nodes keep their numbers, and runs stay. Killed, it leaves the store as
it was.`,
		Example: `  gdb compact shop.gdb`,
		Args:    cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.compact(cmd.Context(), args[0])
		},
	}
}

func (a *app) compact(ctx context.Context, dir string) error {
	bar := a.Progress()
	m, err := live.Compact(ctx, a.FS, dir, parts.OrderOptions{Memory: a.Memory,
		Threads: a.Threads, Version: "gdb " + version, Progress: bar.Update})
	bar.Finish()
	if err != nil || a.Quiet {
		return err
	}
	w := &cli.Lines{W: a.Out}
	w.Printf("%s: %s nodes, %s edges, %s\n", dir, cli.Count(m.Nodes), cli.Count(m.Edges),
		mem.FormatSize(m.Bytes()))
	return w.Err
}
