package main

import (
	"gdb/cmd/gdb/topics"

	"github.com/spf13/cobra"
)

// helpTopics are pages without a command: "gdb help exit-codes" and the like.
func helpTopics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "What the exit codes mean", Long: topics.ExitCodes},
		{Use: "environment", Short: "Environment variables", Long: topics.Environment},
		{Use: "link", Short: "Link prediction", Long: topics.Link},
		{Use: "formats", Short: "Source formats that ingest reads", Long: topics.Formats},
		{Use: "strategies", Short: "Training strategies", Long: topics.Strategies},
	}
}
