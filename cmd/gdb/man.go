//go:build man

package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"gdb/cmd/gdb/cli"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// releaseCommands are for the program that release/build.sh makes to write man pages.
func (a *app) releaseCommands() []*cobra.Command {
	return []*cobra.Command{{
		Use: "man DIR", Short: "Write a man page for each command", Args: cli.ExactArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
			if err != nil {
				return fmt.Errorf("SOURCE_DATE_EPOCH, the date of the pages in seconds: %w", err)
			}
			date := time.Unix(seconds, 0).UTC()
			cmd.Root().DisableAutoGenTag = true
			return doc.GenManTree(cmd.Root(), &doc.GenManHeader{Title: "GDB", Section: "1",
				Date: &date, Source: "gdb " + version}, args[0])
		},
	}}
}
