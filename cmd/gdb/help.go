package main

import (
	"gdb/cmd/gdb/cli"

	"github.com/spf13/cobra"
)

// helpTopics are pages without a command: "gdb help exit-codes" and the like.
func helpTopics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "What the exit codes mean", Long: cli.TopicExitCodes},
		{Use: "environment", Short: "Environment variables", Long: cli.TopicEnvironment},
		{Use: "link", Short: "Link prediction", Long: cli.TopicLink},
		{Use: "formats", Short: "Source formats that ingest reads", Long: cli.TopicFormats},
		{Use: "strategies", Short: "Training strategies", Long: cli.TopicStrategies},
		{Use: "search", Short: "Search of settings", Long: cli.TopicSearch},
	}
}
