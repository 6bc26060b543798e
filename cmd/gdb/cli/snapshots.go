package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/spf13/cobra"
)

// AtFlag gives commands that read a store the flag --at.
func (a *App) AtFlag(commands ...*cobra.Command) {
	for _, cmd := range commands {
		cmd.Flags().StringVar(&a.At, "at", "", "snapshot to read: a number, a day "+
			"(2026-11-01), a time, a name or "+layout.Latest+" (default: the run's, or "+
			layout.Latest+")")
	}
}

// Open opens a store as of the snapshot of --at. CloseStores closes it.
func (a *App) Open(ctx context.Context, dir string) (*layout.Store, error) {
	return a.openAt(ctx, dir, a.At)
}

func (a *App) openAt(ctx context.Context, dir, at string) (*layout.Store, error) {
	st, err := layout.OpenAt(ctx, a.FS, dir, at)
	if errors.Is(err, kv.ErrNoSnapshot) {
		return nil, Usage(err)
	}
	if err == nil {
		a.opened = append(a.opened, st)
	}
	return st, err
}

// AtRun returns the store as of the snapshot that a run is of, unless --at names one, and says so
// if the store is ahead of it. What is wrong with the run is left to who reads it.
func (a *App) AtRun(ctx context.Context, st *layout.Store, run string) (*layout.Store, error) {
	if a.At != "" || run == "" || setting.ValidName(run) != nil {
		return st, nil
	}
	f, err := runs.Open(st, run).File()
	if err != nil || f.Snapshot == st.Meta().Snapshot {
		return st, nil
	}
	of, err := a.openAt(ctx, st.Dir(), strconv.FormatUint(f.Snapshot, 10))
	if err != nil {
		return nil, fmt.Errorf("run %s is of snapshot %d: %w; --at %s reads the store as it is",
			run, f.Snapshot, err, layout.Latest)
	}
	if m := of.Meta(); m.Snapshot != st.Meta().Snapshot {
		a.Note(fmt.Sprintf("run %s is of snapshot %d, of %s, and so is what is read; the store is "+
			"at %d, which --at %s reads", run, m.Snapshot, m.SnapshotTime().Format(time.DateTime),
			st.Meta().Snapshot, layout.Latest))
	}
	return of, nil
}

// NoAt refuses --at where a run decides the snapshot.
func (a *App) NoAt(run string) error {
	if a.At != "" {
		return Usage(fmt.Errorf("--at %s: run %s goes on with the snapshot it is of: leave --at "+
			"out; %s train --from takes its settings to a new run", a.At, run, message.Program))
	}
	return nil
}

// CloseStores closes all stores that were opened, and the devices that they are read through.
func (a *App) CloseStores() (err error) {
	for _, dev := range a.devices {
		err = errors.Join(err, dev.Close())
	}
	for _, st := range a.opened {
		err = errors.Join(err, st.Close())
	}
	a.opened, a.devices = nil, nil
	return err
}
