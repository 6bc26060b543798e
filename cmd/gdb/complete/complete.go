// Package complete has what shells are told to propose.
package complete

import (
	"strings"

	"github.com/spf13/cobra"
)

// Func proposes the values of a flag or an argument that begin with a text.
type Func = func(cmd *cobra.Command, args []string, begin string) ([]string,
	cobra.ShellCompDirective)

// Nothing is the directive of values that are no files.
const Nothing = cobra.ShellCompDirectiveNoFileComp

// Words proposes some words.
func Words(all ...string) Func {
	return func(_ *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
		return Beginning(all, begin), Nothing
	}
}

// WordLists proposes the next of several words with commas between.
func WordLists(all ...string) Func {
	return func(_ *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
		at := strings.LastIndexByte(begin, ',') + 1
		var lists []string
		for _, word := range Beginning(all, begin[at:]) {
			lists = append(lists, begin[:at]+word)
		}
		return lists, Nothing | cobra.ShellCompDirectiveNoSpace
	}
}

// WordsOrFiles proposes some words, and files.
func WordsOrFiles(all ...string) Func {
	return func(_ *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
		return Beginning(all, begin), cobra.ShellCompDirectiveDefault
	}
}

// Beginning are the words that begin with a text.
func Beginning(all []string, begin string) (out []string) {
	for _, word := range all {
		if strings.HasPrefix(word, begin) {
			out = append(out, word)
		}
	}
	return out
}

// Files proposes files of some extensions, of any if none is given.
func Files(extensions ...string) Func {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		if len(extensions) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return extensions, cobra.ShellCompDirectiveFilterFileExt
	}
}

// Directories proposes directories; a store is one.
func Directories(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// None proposes nothing: a number, or a name that the user invents.
func None(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, Nothing
}

// StoreThen proposes directories for the first argument, and more for those after it.
func StoreThen(more Func) Func {
	return func(cmd *cobra.Command, args []string, begin string) ([]string,
		cobra.ShellCompDirective) {
		if len(args) == 0 {
			return Directories(cmd, args, begin)
		}
		return more(cmd, args, begin)
	}
}
