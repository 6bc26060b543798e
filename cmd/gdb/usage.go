package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"gdb/cmd/gdb/cli"
	"gdb/internal/message"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageTemplate is cobra's, with the texts of flags wrapped for a screen, and in groups where they
// are many.
func usageTemplate(root *cobra.Command) string {
	cobra.AddTemplateFunc("flagUsages", flagUsages)
	text := strings.Replace(root.UsageTemplate(),
		"Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}", "{{flagUsages .}}", 1)
	return strings.ReplaceAll(text, ".FlagUsages ",
		fmt.Sprintf(".FlagUsagesWrapped %d ", message.ScreenColumns))
}

// addHelp adds cobra's commands help, which here fails for what is no command or topic, and
// completion.
func addHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	walk(root, func(c *cobra.Command) {
		switch {
		case c.Name() == "help":
			c.Run, c.RunE = nil, func(_ *cobra.Command, args []string) error {
				about, rest, err := root.Find(args)
				if err != nil || len(rest) > 0 {
					return cli.Usage(fmt.Errorf("there is no command or topic %q; %s --help lists "+
						"them", strings.Join(args, " "), message.Program))
				}
				about.InitDefaultHelpFlag()
				about.InitDefaultVersionFlag()
				return about.Help()
			}
		case c.HasParent() && c.Parent().Name() == "completion":
			var lines []string
			for line := range strings.Lines(c.Long) {
				lines = append(lines, message.Wrap(strings.TrimRight(line, "\n")))
			}
			c.Long = strings.Join(lines, "\n")
		}
	})
}

// callByName writes the name that the program was called by into the help of all commands.
func callByName(root *cobra.Command) {
	if message.Program == "gdb" {
		return
	}
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	command := regexp.MustCompile(`\bgdb (` + strings.Join(names, "|") + `|COMMAND)\b`)
	named := func(text *string) {
		*text = command.ReplaceAllString(*text,
			strings.ReplaceAll(message.Program, "$", "$$")+" $1")
	}
	walk(root, func(c *cobra.Command) {
		named(&c.Short)
		named(&c.Long)
		named(&c.Example)
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { named(&f.Usage) })
	})
}

// walk calls do for a command and all below it.
func walk(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, sub := range c.Commands() {
		walk(sub, do)
	}
}

// logForm returns the value of --log or its variable, before flags are parsed: what is wrong with
// them is told in that form too.
func logForm(args []string) string {
	form := os.Getenv("GDB_LOG")
	for i, arg := range args {
		value, given := strings.CutPrefix(arg, "--log=")
		switch {
		case arg == "--":
			return form
		case given:
			form = value
		case arg == "--log" && i+1 < len(args):
			form = args[i+1]
		}
	}
	return form
}
