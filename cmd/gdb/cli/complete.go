package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// CompleteFunc proposes the values of a flag or an argument that begin with a text.
type CompleteFunc = func(cmd *cobra.Command, args []string, begin string) ([]string,
	cobra.ShellCompDirective)

// CompleteNothing is the directive of values that are no files.
const CompleteNothing = cobra.ShellCompDirectiveNoFileComp

// CompleteWords proposes some words.
func CompleteWords(all ...string) CompleteFunc {
	return func(_ *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
		return Beginning(all, begin), CompleteNothing
	}
}

// CompleteWordLists proposes the next of several words with commas between.
func CompleteWordLists(all ...string) CompleteFunc {
	return func(_ *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
		at := strings.LastIndexByte(begin, ',') + 1
		var lists []string
		for _, word := range Beginning(all, begin[at:]) {
			lists = append(lists, begin[:at]+word)
		}
		return lists, CompleteNothing | cobra.ShellCompDirectiveNoSpace
	}
}

// CompleteWordsOrFiles proposes some words, and files.
func CompleteWordsOrFiles(all ...string) CompleteFunc {
	return func(_ *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
		return Beginning(all, begin), cobra.ShellCompDirectiveDefault
	}
}

// Beginning returns the words that begin with a text.
func Beginning(all []string, begin string) (out []string) {
	for _, word := range all {
		if strings.HasPrefix(word, begin) {
			out = append(out, word)
		}
	}
	return out
}

// CompleteFiles proposes files of some extensions, of any if none is given.
func CompleteFiles(extensions ...string) CompleteFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		if len(extensions) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return extensions, cobra.ShellCompDirectiveFilterFileExt
	}
}

// CompleteDirectories proposes directories; a store is one.
func CompleteDirectories(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// CompleteNone proposes nothing: a number, or a name that the user invents.
func CompleteNone(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, CompleteNothing
}

// CompleteStoreThen proposes directories for the first argument, and more for those after it.
func CompleteStoreThen(more CompleteFunc) CompleteFunc {
	return func(cmd *cobra.Command, args []string, begin string) ([]string,
		cobra.ShellCompDirective) {
		if len(args) == 0 {
			return CompleteDirectories(cmd, args, begin)
		}
		return more(cmd, args, begin)
	}
}
