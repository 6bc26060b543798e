package main

import (
	"path/filepath"
	"slices"
	"strings"

	"gdb/bench"
	"gdb/bench/gen"
	"gdb/cmd/gdb/benches"
	"gdb/cmd/gdb/cli"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/stream"
	"gdb/layout/ingest/table"
	"gdb/layout/partitioner"
	"gdb/shell/graph"
	"gdb/shell/result"
	"gdb/train/ivf"
	"gdb/train/model"
	"gdb/train/setting"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runNames proposes the runs of the store that is the first argument, with their settings.
func (a *app) runNames(cmd *cobra.Command, args []string, begin string) ([]string,
	cobra.ShellCompDirective) {
	var out []string
	if st := a.completedStore(cmd, args); st != nil {
		for _, r := range graph.RunNames(st) {
			out = append(out, r.Name+"\t"+r.Settings)
		}
	}
	return cli.Beginning(out, begin), cli.CompleteNothing
}

// runLists proposes the next of several runs with commas between.
func (a *app) runLists(cmd *cobra.Command, args []string, begin string) ([]string,
	cobra.ShellCompDirective) {
	var names []string
	if st := a.completedStore(cmd, args); st != nil {
		for _, r := range graph.RunNames(st) {
			if !slices.Contains(strings.Split(begin, ","), r.Name) {
				names = append(names, r.Name)
			}
		}
	}
	return cli.CompleteWordLists(names...)(cmd, args, begin)
}

// runFiles proposes the run.json of each run of the store, and other files.
func (a *app) runFiles(cmd *cobra.Command, args []string, begin string) ([]string,
	cobra.ShellCompDirective) {
	var out []string
	if st := a.completedStore(cmd, args); st != nil {
		for _, r := range graph.RunNames(st) {
			out = append(out, filepath.Join(args[0], "runs", r.Name, "run.json")+"\t"+r.Settings)
		}
	}
	return cli.Beginning(out, begin), cobra.ShellCompDirectiveDefault
}

// splitNames proposes the splits of the store that is the first argument.
func (a *app) splitNames(cmd *cobra.Command, args []string, begin string) ([]string,
	cobra.ShellCompDirective) {
	var out []string
	if st := a.completedStore(cmd, args); st != nil {
		for _, s := range st.Meta().Splits {
			base, _, _ := strings.Cut(s.Name, "@")
			out = append(out, s.Name, base)
		}
	}
	slices.Sort(out)
	return cli.Beginning(slices.Compact(out), begin), cli.CompleteNothing
}

// splitColumns proposes the K of the splits train@K of the store.
func (a *app) splitColumns(cmd *cobra.Command, args []string, begin string) ([]string,
	cobra.ShellCompDirective) {
	dir := args
	if f := cmd.Flags().Lookup("store"); f != nil {
		dir = []string{f.Value.String()}
	}
	var out []string
	if st := a.completedStore(cmd, dir); st != nil {
		for _, s := range st.Meta().Splits {
			if column, ok := strings.CutPrefix(s.Name, "train@"); ok {
				out = append(out, column)
			}
		}
	}
	return cli.Beginning(out, begin), cli.CompleteNothing
}

// completedStore opens the store on the line; nil if it cannot: the command will say why.
func (a *app) completedStore(cmd *cobra.Command, args []string) *layout.Store {
	if len(args) == 0 || args[0] == "" {
		return nil
	}
	st, err := layout.OpenLive(cmd.Context(), a.FS, args[0])
	if err != nil {
		return nil
	}
	return st
}

// runsArguments proposes what gdb runs does, and then names of runs that are not named yet.
func (a *app) runsArguments(cmd *cobra.Command, args []string, begin string) ([]string,
	cobra.ShellCompDirective) {
	if len(args) == 1 {
		return cli.Beginning(runsWords, begin), cli.CompleteNothing
	}
	names, then := a.runNames(cmd, args, begin)
	return slices.DeleteFunc(names, func(line string) bool {
		name, _, _ := strings.Cut(line, "\t")
		return slices.Contains(args[2:], name)
	}), then
}

// flagCompleters returns what proposes the values of flags, by "command flag", or by "flag" for all
// commands that have no entry of their own. A flag that is not here has no values to propose.
func (a *app) flagCompleters() map[string]cli.CompleteFunc {
	all := map[string]cli.CompleteFunc{
		"run": a.runNames, "resume": a.runNames, "train run": cli.CompleteNone,
		"plan run": cli.CompleteNone, "from": a.runFiles, "split-column": a.splitColumns,
		"eval split": a.splitNames, "predict split": a.splitNames, "report split": a.splitNames,
		"report run":          a.runLists,
		"ingest split-column": cli.CompleteNone,
		"ingest split":        cli.CompleteWordsOrFiles("random="),
		"ingest features":     cli.CompleteWordsOrFiles(source.MadeNames...),
		"ingest edges":        cli.CompleteFiles(),
		"index features":      cli.CompleteNone, "bench nearest features": cli.CompleteNone,
		"ingest nodes": cli.CompleteFiles(), "ingest labels": cli.CompleteFiles(),
		"store": cli.CompleteDirectories, "dir": cli.CompleteDirectories,
		"out":         cli.CompleteDirectories,
		"tensorboard": cli.CompleteDirectories, "plot": cli.CompleteDirectories,
		"shell file": cli.CompleteFiles("gdbq", "txt"), "report out": cli.CompleteFiles("html"),
		"predict out":         cli.CompleteFiles("csv", "parquet", "npy"),
		"runs out":            cli.CompleteFiles("svg", "safetensors"),
		"bench ingest source": cli.CompleteDirectories, "bench gen in": cli.CompleteFiles(),
	}
	for name, words := range flagWords() {
		all[name] = cli.CompleteWords(words...)
	}
	for name, words := range map[string][]string{"bench io io": cli.BackendNames(),
		"bench sample topology": bench.Topologies, "bench sample sample": bench.Draws,
		"bench ingest formats": bench.IngestFormats, "bench gather cache": bench.Caches(),
		"bench train systems": bench.Systems(), "bench link orders": bench.LinkOrders()} {
		all[name] = cli.CompleteWordLists(words...)
	}
	return all
}

// flagWords returns the values of flags that have few, from the packages that read them.
func flagWords() map[string][]string {
	all := map[string][]string{"color": colors, "log": logForms, "task": taskNames(),
		"shell mode": result.Modes, "split split": {"random="},
		"bench train model":     append(model.Names(), "none"),
		"bench sample compress": benches.CompressWords, "ingest format": source.Formats(),
		"ingest direction": cli.Directions, "ingest header": table.Headers,
		"ingest merge": stream.MergeNames, "ingest partitioner": ingest.Partitioners,
		"order partitioner": partitioner.Words(), "index by": ivf.Closenesses(),
		"ingest feature-dtype": ingest.FeatureDTypes, "ingest normalize": ingest.Normalizes,
		"ingest missing-nodes": ingest.MissingNodes,
		"ingest fill":          {"mean", "zero", "mean,indicator"}}
	for _, r := range setting.Rows {
		if _, own := all[r.Name]; r.Choices != nil && !own {
			all[r.Name] = r.Choices
		}
	}
	return all
}

// helpWords proposes commands and topics, and the commands of bench.
func helpWords(cmd *cobra.Command, args []string, begin string) ([]string,
	cobra.ShellCompDirective) {
	var names []string
	if about, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
		for _, c := range about.Commands() {
			if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
				names = append(names, c.Name()+"\t"+c.Short)
			}
		}
	}
	return cli.Beginning(names, begin), cli.CompleteNothing
}

// complete makes shells complete arguments and the values of flags.
func (a *app) complete(root *cobra.Command) {
	arguments := map[string]cli.CompleteFunc{"help": helpWords,
		"runs":        cli.CompleteStoreThen(a.runsArguments),
		"bench train": cli.CompleteStoreThen(cli.CompleteNone),
		"bench link":  cli.CompleteStoreThen(cli.CompleteNone),
		"bench gen":   cli.CompleteWords(append(gen.Kinds, benches.Kron)...)}
	for _, name := range []string{"info", "check", "plan", "train", "split", "report", "eval",
		"predict", "embed", "shell", "serve", "ui", "partition", "order", "export",
		"snapshots", "index"} {
		arguments[name] = cli.CompleteStoreThen(cli.CompleteNone)
	}
	flags := a.flagCompleters()
	walk(root, func(cmd *cobra.Command) {
		path := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), root.Name()), " ")
		if propose := arguments[path]; propose != nil {
			cmd.ValidArgsFunction = propose
		} else if path != "" && path != "ingest" && !cmd.HasSubCommands() {
			cmd.ValidArgsFunction = cli.CompleteNone
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name := f.Name
			for _, now := range f.Annotations[cli.AliasOf] {
				name = now
			}
			if f.NoOptDefVal != "" {
				return // it is set or not
			}
			propose := flags[path+" "+name]
			if propose == nil {
				propose = flags[name]
			}
			if propose == nil {
				propose = cli.CompleteNone
			}
			if _, known := cmd.GetFlagCompletionFunc(f.Name); known {
				return
			}
			if err := cmd.RegisterFlagCompletionFunc(f.Name, propose); err != nil {
				panic("BUG: " + err.Error())
			}
		})
	})
}
