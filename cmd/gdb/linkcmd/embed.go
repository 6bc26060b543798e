package linkcmd

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/nodeids"
	"gdb/train/export"
	"gdb/train/runs/vectors"
)

// Embed is gdb embed of a run that predicts links: the vectors of all nodes.
func Embed(ctx context.Context, e *cli.App, st *layout.Store, dev blockdev.Device, run,
	out string) (err error) {
	v, err := vectors.Open(ctx, st, dev, run, mem.NewProcessBudget(e.Memory), e.Threads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if v.Note != "" {
		e.Note(v.Note)
	}
	names, err := nodeids.Open(ctx, st, dev, nil)
	if err != nil {
		return fmt.Errorf("embed: open ids: %w", err)
	}
	defer func() { err = errors.Join(err, names.Close()) }()
	if err := export.WriteVectors(ctx, export.TableSpec{FS: e.FS, Path: out, Meta: st.Meta(),
		Names: names}, v); err != nil {
		return fmt.Errorf("embed: run %s: %w", run, err)
	}
	return nil
}
