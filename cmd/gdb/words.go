package main

import (
	"gdb/cmd/gdb/flagvalue"

	"github.com/spf13/pflag"
)

// Help of flags that several commands have: one meaning, one text.
const (
	evalModeHelp = "exact (whole lists, layer by layer) or sampled (as batches of training are; " +
		"faster, noisy)"
	batchHelp = "seeds in a batch"
	plotHelp  = "directory for SVG files of the result"
	runHelp   = "run whose best weights are taken (default: the best run)"
	splitHelp = "nodes to look at: train, val, test, or a stored split such as test@3"
)

// ioHelp is the help of --io.
func ioHelp() string { return "how files are read: " + oneOf(backendNames()) }

// splitColumn is --split-column: one of several stored splits. Its first name was --split.
func splitColumn(f *pflag.FlagSet, column *string) {
	f.StringVar(column, "split-column", *column,
		"K, where the store has several splits: train@K, val@K and test@K")
	alias(f, "split", "split-column")
}

// aliasOf annotates a flag with the name that it has now.
const aliasOf = "gdb_alias_of"

// alias makes an old name of a flag go on to work, without help.
func alias(f *pflag.FlagSet, old, name string) {
	now := f.Lookup(name)
	f.AddFlag(&pflag.Flag{Name: old, Usage: "the old name of --" + name, Value: now.Value,
		DefValue: now.DefValue, Hidden: true, Annotations: map[string][]string{aliasOf: {name}}})
}

// oneOf lists words: a, b or c.
func oneOf(words []string) string { return flagvalue.OneOf(words) }
