package main

import (
	"path/filepath"

	"gdb/layout"
	"gdb/shell/graph"

	"github.com/spf13/cobra"
)

// completeRuns makes a shell complete the values of flags that name a run of the store, which is
// the first argument; flags of files get the run.json of each.
func (a *app) completeRuns(cmd *cobra.Command, names ...string) {
	for _, flag := range names {
		isFile := flag == "from"
		err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, args []string,
			_ string) ([]string, cobra.ShellCompDirective) {
			return a.runChoices(cmd, args, isFile)
		})
		if err != nil {
			panic("BUG: " + err.Error())
		}
	}
}

// runChoices are the runs of the store that is the first argument, with their settings.
func (a *app) runChoices(cmd *cobra.Command, args []string,
	files bool) (out []string, then cobra.ShellCompDirective) {
	then = cobra.ShellCompDirectiveNoFileComp
	if files {
		then = cobra.ShellCompDirectiveDefault
	}
	if len(args) == 0 {
		return nil, then
	}
	st, err := layout.Open(cmd.Context(), a.fs, args[0])
	if err != nil {
		return nil, then // the command will say why
	}
	for _, r := range graph.RunNames(st) {
		name := r.Name
		if files {
			name = filepath.Join(args[0], "runs", r.Name, "run.json")
		}
		out = append(out, name+"\t"+r.Settings)
	}
	return out, then
}
