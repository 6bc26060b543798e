package predictcmd

import (
	"errors"
	"fmt"
	"slices"

	"gdb/cmd/gdb/cli"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/draft"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/live"
	"gdb/train"
	"gdb/train/setting"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newNodeFlags are the flags of ingest that say how files of new nodes and their edges are read.
var newNodeFlags = []string{"nodes", "edges", "format", "src-col", "dst-col", "rel-col",
	"weight-col", "time-col", "id-col", "feature-cols", "na", "fill", "delim", "comment", "header",
	"skip-bad"}

// bind adds the flags of new nodes to a command.
func (r *Reading) bind(f *pflag.FlagSet) {
	for _, name := range newNodeFlags {
		f.AddFlag(r.Flags.Lookup(name))
	}
	f.Lookup("nodes").Usage = "file of the nodes: ids and features or columns; repeatable as " +
		"TYPE=FILE"
	f.Lookup("edges").Usage = "file of their edges, to each other and to nodes of the store; " +
		"repeatable as SRC:REL:DST=FILE"
	cli.Part(f, "Nodes that the store does not have, in files with the columns of its ingest",
		newNodeFlags...)
	cli.OnlyFor(f, setting.OfNodes, newNodeFlags...)
}

// asksNew reports whether the command line names new nodes. It fails if that asks for others too.
func asksNew(cmd *cobra.Command, at string) (bool, error) {
	given := func(name string) bool { return cmd.Flags().Changed(name) }
	if !given("nodes") {
		if i := slices.IndexFunc(newNodeFlags, given); i >= 0 {
			return false, cli.Usage(fmt.Errorf("predict: --%s is of nodes that the store does not "+
				"have: give --nodes FILE too", newNodeFlags[i]))
		}
		return false, nil
	}
	for _, name := range []string{"split", "new-since"} {
		if given(name) {
			return false, cli.Usage(fmt.Errorf("predict: --nodes and --%s both say which nodes: "+
				"give one of them", name))
		}
	}
	if at != "" && at != layout.Latest {
		return false, cli.Usage(errors.New("predict: new nodes of --nodes join the store as it " +
			"is: leave --at out"))
	}
	return true, nil
}

// draft returns the store with the new nodes. The caller calls Close.
func (w *command) draft(cmd *cobra.Command, st *layout.Store, run string) (*draft.Nodes, error) {
	if err := train.PredictsLater(st, run); err != nil {
		return nil, fmt.Errorf("predict: %w", err)
	}
	opt, err := w.read.Options(cmd.Flags())
	if err == nil {
		err = checkType(st.Meta(), opt)
	}
	if err != nil {
		return nil, err
	}
	bar := w.Progress()
	opt.Progress = bar.Update
	with, err := draft.WithNodes(cmd.Context(), w.FS, st, run, *opt)
	bar.Finish()
	if err != nil {
		return nil, fmt.Errorf("predict: %w", err)
	}
	w.Note(describe(with.Added))
	return with, nil
}

// describe says what was added to a draft.
func describe(added *live.Added) string {
	text := "the files have " + cli.NodesAndEdges(added.Nodes, added.OfNew)
	if added.Between > 0 {
		text += fmt.Sprintf(" of theirs; %s between nodes of the store count too",
			cli.Plural(int(added.Between), "edge"))
	}
	return text
}

// checkType fails if a typed store has labels of a type that the files have no table of.
func checkType(m *kv.Meta, opt *ingest.Options) error {
	if m.Labels == nil || m.Labels.OfType == "" || opt.NodesType == m.Labels.OfType ||
		slices.ContainsFunc(opt.NodeTables, func(t source.NodeTable) bool {
			return t.Type == m.Labels.OfType
		}) {
		return nil
	}
	return cli.Usage(fmt.Errorf("predict: nodes of type %s have labels, and are predicted: give "+
		"new ones by --nodes %s=FILE", m.Labels.OfType, m.Labels.OfType))
}
