package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gdb/cmd/gdb/cli"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/live"

	"github.com/spf13/cobra"
)

func (a *app) snapshotsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "snapshots STORE [keep NAME|drop NAME]",
		Short: "List snapshots of a store, keep them by names, drop names",
		Long: `List the snapshots that can be read, each with what it has and who keeps it, or
give one a name that keeps it (keep: the last one, or that of --at), or take
the name away (drop). Each commit makes a snapshot. One that no name and no run
keeps goes when compaction would have to hold its files only for it.`,
		Example: `  gdb snapshots shop.gdb
  gdb snapshots shop.gdb keep before-sale --at 17
  gdb snapshots shop.gdb drop before-sale`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1:
				return a.listSnapshots(cmd.Context(), args[0], asJSON)
			case len(args) == 3 && args[1] == "keep":
				return a.keepSnapshot(cmd.Context(), args[0], args[2])
			case len(args) == 3 && args[1] == "drop":
				return a.dropSnapshot(cmd.Context(), args[0], args[2])
			}
			return cli.Usage(fmt.Errorf("snapshots: want %s", cmd.Use))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	a.AtFlag(cmd)
	return cmd
}

// listedSnapshot is a snapshot as JSON has it.
type listedSnapshot struct {
	Number   uint64
	Time     time.Time
	Nodes    uint64
	Edges    uint64
	Keepers  []string
	Readable bool
	Same     uint64 `json:",omitempty"` // the compaction that is read in its place
}

func (a *app) listSnapshots(ctx context.Context, dir string, asJSON bool) error {
	if a.At != "" {
		return cli.Usage(errors.New("snapshots: --at says which one to keep: snapshots STORE " +
			"keep NAME --at NUMBER"))
	}
	st, err := a.Open(ctx, dir)
	if err != nil {
		return err
	}
	h, err := st.History(ctx)
	if err != nil {
		return err
	}
	readable, err := st.Readable(h)
	if err != nil {
		return err
	}
	holders, all := h.Holders(), []listedSnapshot{}
	for _, s := range h.All() {
		all = append(all, listedSnapshot{Number: s.Number, Time: s.Created, Nodes: s.Nodes,
			Edges: s.Edges, Keepers: append([]string{}, holders[s.Number]...),
			Readable: readable(s.Number), Same: s.Same})
	}
	if asJSON {
		return a.printFields(map[string]any{"snapshots": all})
	}
	return a.printSnapshots(all)
}

func (a *app) printSnapshots(all []listedSnapshot) error {
	w, gone := &cli.Lines{W: a.Out}, 0
	w.Printf("%8s  %-19s %14s %15s  %s\n", "snapshot", "time", "nodes", "edges", "kept by")
	for _, s := range all {
		if !s.Readable {
			gone++
			continue
		}
		by := cli.Cut(strings.Join(s.Keepers, ", "), 15)
		if s.Same > 0 {
			by = fmt.Sprintf("read as %d", s.Same)
		}
		line := fmt.Sprintf("%8d  %s %14s %15s  %s", s.Number, s.Time.UTC().Format(time.DateTime),
			cli.Count(s.Nodes), cli.Count(s.Edges), by)
		w.Printf("%s\n", strings.TrimRight(line, " "))
	}
	if gone > 0 && !a.Quiet {
		a.Note(fmt.Sprintf("%s that nothing kept cannot be read any more",
			cli.Plural(gone, "snapshot")))
	}
	return w.Err
}

// keepSnapshot gives the snapshot of --at, or the last, a name.
func (a *app) keepSnapshot(ctx context.Context, dir, name string) error {
	if err := layout.CheckSnapshotName(name); err != nil {
		return cli.Usage(fmt.Errorf("snapshots: %w", err))
	}
	st, err := a.Open(ctx, dir)
	if err != nil {
		return err
	}
	number := st.Meta().Snapshot
	if err := st.Catalog().Hold(ctx, name, number); err != nil || a.Quiet {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "%s keeps snapshot %d of %s\n", name, number, dir)
	return err
}

// dropSnapshot takes a name away, and removes what it alone kept.
func (a *app) dropSnapshot(ctx context.Context, dir, name string) error {
	if a.At != "" {
		return cli.Usage(errors.New("snapshots: drop takes a name away: leave --at out"))
	}
	st, err := layout.OpenLive(ctx, a.FS, dir)
	if err != nil {
		return err
	}
	err = st.Catalog().Unhold(ctx, name)
	if errors.Is(err, kv.ErrNotFound) {
		return cli.Usage(fmt.Errorf("snapshots: no snapshot is kept as %q; %s snapshots STORE "+
			"lists names; what runs keep goes with them: "+
			"%s runs STORE rm RUN", name, message.Program,
			message.Program))
	}
	if err == nil {
		err = live.Sweep(ctx, a.FS, dir)
	}
	return err
}
