package cli

import (
	"fmt"
	"strings"

	"gdb/internal/message"
	"gdb/train/setting"

	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"
)

// Help of flags that several commands have: one meaning, one text.
const (
	PlotHelp  = "directory for SVG files of the result"
	RunHelp   = "run whose best weights are taken (default: the best run)"
	SplitHelp = "nodes to look at: train, val, test, or a stored split such as test@3"
)

// HelpOf returns the help of a flag that is a setting of trainings, for all commands that have it.
func HelpOf(flag string) string {
	r := setting.Find(flag)
	help := strings.Replace(r.Help, "{gdb}", "gdb", 1)
	if r.Choices == nil {
		return help
	}
	return strings.Replace(help, "{choices}", message.OneOf(r.Choices), 1)
}

// SplitColumn is --split-column: one of several stored splits. Its first name was --split.
func SplitColumn(f *pflag.FlagSet, column *string) {
	f.StringVar(column, "split-column", *column, HelpOf("split-column"))
	Alias(f, "split", "split-column")
}

// AliasOf annotates a flag with the name that it has now.
const AliasOf = "gdb_alias_of"

// Alias makes an old name of a flag go on to work, without help.
func Alias(f *pflag.FlagSet, old, name string) {
	now := f.Lookup(name)
	f.AddFlag(&pflag.Flag{Name: old, Usage: "the old name of --" + name, Value: now.Value,
		DefValue: now.DefValue, Hidden: true, Annotations: map[string][]string{AliasOf: {name}}})
}

// Plural returns a number of things.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "s") {
		what += "e"
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Count returns a number with commas.
func Count(n uint64) string { return humanize.Comma(int64(n)) }

// Cut shortens a name to at most this number of characters.
func Cut(name string, most int) string {
	r := []rune(name)
	if len(r) <= most {
		return name
	}
	return string(r[:most-1]) + "…"
}

// NodesAndEdges returns two counts in words.
func NodesAndEdges(nodes, edges uint64) string {
	words := [2]string{Count(nodes) + " nodes", Count(edges) + " edges"}
	if nodes == 1 {
		words[0] = "1 node"
	}
	if edges == 1 {
		words[1] = "1 edge"
	}
	return words[0] + " and " + words[1]
}
