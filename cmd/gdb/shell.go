package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/shell"

	"github.com/spf13/cobra"
)

func (a *app) shellCommand() *cobra.Command {
	var statements []string
	var file, mode string
	var keepGoing bool
	cmd := &cobra.Command{
		Use:   "shell STORE [-c STATEMENT]... [-f FILE]",
		Short: "Ask a store questions",
		Long: `
Ask a store questions. Statements come from -c (repeatable), from a file (-f), or from
standard input, and end with a semicolon. HELP lists them. Results go to standard output: a
box on a terminal, CSV in a pipe.`,
		Example: `  gdb shell cora.gdb -c "NEIGHBORS 42"
  gdb shell cora.gdb -c "SAMPLE 42,7 FANOUT 10,5 SHOW layers" --mode json
  echo "STATS GRAPH; DEGREES IN TOP 5;" | gdb shell cora.gdb`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			opt := shell.Options{Statements: statements, In: a.in, Out: a.out, Err: a.err,
				InTTY: a.inTTY, OutTTY: a.outTTY, ErrTTY: a.errTTY, Mode: mode,
				OutColor: a.colored(a.outTTY), ErrColor: a.colored(a.errTTY), Width: a.width,
				KeepGoing: keepGoing, Memory: a.memory, Seed: a.seed, Quiet: a.quiet}
			if err := shell.CheckMode(mode); err != nil {
				return usage(err)
			}
			if file != "" && len(statements) > 0 {
				return usage(errors.New("shell: -c and -f exclude each other"))
			}
			if file != "" {
				if opt.Script, err = readScript(file); err != nil {
					return err
				}
			}
			if opt.Store, err = layout.Open(cmd.Context(), a.fs, args[0]); err != nil {
				return fmt.Errorf("shell: %w", err)
			}
			if opt.Dev, err = blockdev.Open(blockdev.Options{}); err != nil {
				return fmt.Errorf("shell: %w", err)
			}
			defer func() { err = firstError(err, opt.Dev.Close()) }()
			return a.shellError(shell.Run(cmd.Context(), opt))
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&statements, "command", "c", nil, "statement to run; repeatable")
	f.StringVarP(&file, "file", "f", "", "file of statements to run")
	f.StringVar(&mode, "mode", "auto", "auto, box, csv, tsv, json, jsonl, md, line or none")
	f.BoolVar(&keepGoing, "keep-going", false,
		"run on after a failed statement, and say how many failed; the exit code is then 1")
	return cmd
}

// readScript reads a file of statements; an empty one is a mistake.
func readScript(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", usage(fmt.Errorf("shell: -f: %w", err))
	}
	b, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("shell: -f %s: %w", file, err)
	}
	if len(b) == 0 {
		return "", usage(fmt.Errorf("shell: -f %s: the file is empty", file))
	}
	return string(b), nil
}

// shellError prints a syntax error as it is, with its caret on a line of its own.
func (a *app) shellError(err error) error {
	var syntax *shell.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	fmt.Fprintf(a.err, "%v\n", syntax)
	return errReported{exitUsage}
}
