package main

import (
	"context"
	"fmt"
	"strings"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/inspect"
	"gdb/train/nearest"

	"github.com/spf13/cobra"
)

func (a *app) checkCommand() *cobra.Command {
	var opt inspect.CheckOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check STORE", Short: "Verify a store; exit 3 when it is damaged",
		Args: cli.ExactArgs(1),
		Long: `Verify every checksum of the graph: catalog, topology, features, labels and
ids, and with --full of indexes of vectors. What runs and caches keep in runs/
and prep/ is verified whenever it is read, and is only mentioned.`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			st, err := a.Open(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("check: %w", err)
			}
			dev, err := blockdev.Open(blockdev.Options{})
			if err != nil {
				return fmt.Errorf("check: %w", err)
			}
			defer func() { err = cli.FirstError(err, dev.Close()) }()
			p := a.Progress()
			opt.Progress = func(done, total int64) { p.Update("check", done, total, "bytes") }
			report, err := inspect.Check(cmd.Context(), dev, st, opt)
			p.Finish()
			if report == nil {
				return fmt.Errorf("check: %w", err)
			}
			if opt.Full && err == nil {
				err = checkIndexes(cmd.Context(), st, dev, report)
			}
			found := a.printReport(args[0], report, err == nil, asJSON)
			if err != nil {
				a.printError(fmt.Errorf("check: %w", err))
				return cli.FirstError(found, cli.Reported{Code: exitFailed})
			}
			return found
		},
	}
	cmd.Flags().BoolVar(&opt.Full, "full", false,
		"also check order, degrees, counts, id ranges, and that nothing else is there")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// checkIndexes reads the indexes of vectors, and adds what it finds to a report.
func checkIndexes(ctx context.Context, st *layout.Store, dev blockdev.Device,
	r *inspect.CheckReport) error {
	found, files, bytes, err := nearest.Check(ctx, st, dev)
	r.Findings, r.Files, r.Bytes = append(r.Findings, found...), r.Files+files, r.Bytes+bytes
	return err
}

// printReport prints what a check found; whole says that it could look into all files.
func (a *app) printReport(dir string, r *inspect.CheckReport, whole, asJSON bool) error {
	if asJSON {
		findings := r.Findings
		if findings == nil {
			findings = []kv.Finding{}
		}
		if r.Unchecked == nil {
			r.Unchecked = []string{}
		}
		if err := a.PrintJSON(map[string]any{"store": dir, "ok": len(findings) == 0 && whole,
			"files": r.Files, "bytes": r.Bytes, "findings": findings,
			"unchecked": r.Unchecked, "left": append([]string{}, r.Left...)}); err != nil {
			return err
		}
	} else if err := a.printFindings(dir, r, whole); err != nil {
		return err
	}
	if len(r.Findings) > 0 {
		return cli.Reported{Code: exitDamaged}
	}
	return nil
}

func (a *app) printFindings(dir string, r *inspect.CheckReport, whole bool) error {
	w := &cli.Lines{W: a.Out}
	for _, f := range r.Findings {
		switch {
		case f.Block >= 0:
			w.Printf("%s block %d at offset %d: %s\n", f.Path, f.Block, f.Offset, f.What)
		case f.Offset >= 0:
			w.Printf("%s at offset %d: %s\n", f.Path, f.Offset, f.What)
		default:
			w.Printf("%s: %s\n", f.Path, f.What)
		}
	}
	if n := len(r.Findings); n > 0 && n == r.Strangers && whole {
		w.Printf("%s is sound, but holds what does not belong there: %d files or folders; delete "+
			"them or move them away\n", dir, n)
	} else if n > 0 {
		w.Printf("%s is damaged: %d findings; restore these files from a copy, or ingest again\n",
			dir, n)
	} else if whole {
		w.Printf("%s is sound: %d files, %s verified\n", dir, r.Files, mem.FormatSize(r.Bytes))
	}
	if len(r.Unchecked) > 0 {
		w.Printf("not looked at: %s (verified when they are read)\n",
			strings.Join(r.Unchecked, ", "))
	}
	if len(r.Left) > 0 {
		w.Printf("left by a commit that was killed, removed by the next: %s\n",
			strings.Join(r.Left, ", "))
	}
	return w.Err
}
