package main

import (
	"strings"

	"gdb/cmd/gdb/cli"
	"gdb/internal/message"
	"gdb/train/setting"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groupOf returns the part of the help that a flag of a training stands in; "" before all.
func groupOf(name string) setting.Group {
	if r := setting.Find(name); r != nil {
		return r.Group
	}
	return ""
}

// flagUsages returns the local flags of a command for its help: in groups, if it trains.
func flagUsages(c *cobra.Command) string {
	if c.LocalFlags().Lookup("lr") == nil {
		return partUsages(c)
	}
	var b strings.Builder
	b.WriteString("Flags:\n" + usagesOf(c, func(name string) bool { return groupOf(name) == "" }))
	for _, g := range setting.Groups {
		text := usagesOf(c, func(name string) bool { return groupOf(name) == g })
		if text != "" {
			b.WriteString("\n" + string(g) + ":\n" + text)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// partUsages returns the flags of a command that does not train: those of cli.Part come last.
func partUsages(c *cobra.Command) string {
	part, title := map[string]bool{}, ""
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if of := f.Annotations[cli.PartOf]; len(of) > 0 {
			part[f.Name], title = true, of[0]
		}
	})
	text := "Flags:\n" + usagesOf(c, func(name string) bool { return !part[name] })
	if title != "" {
		text += "\n" + title + ":\n" + usagesOf(c, func(name string) bool { return part[name] })
	}
	return strings.TrimRight(text, "\n")
}

// usagesOf returns the help of the local flags whose names belong to a group.
func usagesOf(c *cobra.Command, belongs func(name string) bool) string {
	part := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if belongs(f.Name) {
			part.AddFlag(f)
		}
	})
	return part.FlagUsagesWrapped(message.ScreenColumns)
}
