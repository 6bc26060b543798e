package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/bench"
	"gdb/cmd/gdb/cli"
	"gdb/internal/codec"
	"gdb/internal/files"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
)

// The exit codes; "gdb help exit-codes" prints them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitDamaged     = 3
	exitInterrupted = cli.Interrupted
)

func exitCode(err error) int {
	var ue cli.UsageError
	var reported cli.Reported
	var option *bench.OptionError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &reported):
		return reported.Code
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, layout.ErrCorrupt), errors.Is(err, kv.ErrDamaged),
		errors.Is(err, codec.ErrChecksum), errors.Is(err, codec.ErrForeign),
		errors.Is(err, codec.ErrKind), errors.Is(err, files.ErrRefused):
		return exitDamaged
	case errors.As(err, &ue), errors.As(err, &option), errors.Is(err, ingest.ErrUsage):
		return exitUsage
	}
	return exitFailed
}

// printError writes one line: what failed, where, and what to do. What is wrong with a command line
// is read by who typed it: it is broken for a screen, wherever it goes.
func (a *app) printError(err error) {
	var reported cli.Reported
	if errors.As(err, &reported) {
		return
	}
	msg := strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
	if !a.Verbose {
		msg = message.Plain(plain(msg, a.Running))
	}
	line := message.Program + ": " + msg
	if _, asJSON := a.Err.(*cli.Notes); !asJSON && (a.ErrTTY || exitCode(err) == exitUsage) {
		line = message.Wrap(line)
	}
	fmt.Fprintln(a.Err, line)
}

// packages begin errors with their names, which say nothing to a user.
var packages = []string{"kv", "layout", "loader", "sample", "serve", "train", "ingest", "text",
	"runs", "split"}

// plain takes the names of packages from the beginning of an error, but for the command's own.
func plain(msg, command string) string {
	own := ""
	for {
		name, rest, ok := strings.Cut(msg, ": ")
		if !ok || !slices.Contains(packages, name) && name != command {
			return own + msg
		}
		if name == command {
			own = name + ": "
		}
		msg = rest
	}
}
