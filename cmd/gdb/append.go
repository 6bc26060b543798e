package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/predictcmd"
	"gdb/internal/mem"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/live"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// appendFlags are the flags of ingest that say what is read; the others shape the store.
var appendFlags = []string{"format", "edges", "nodes", "labels", "split", "src-col",
	"dst-col", "rel-col", "weight-col", "time-col", "id-col", "label-col", "feature-cols",
	"split-col", "na", "fill", "delim", "comment", "header", "skip-bad", "allow-nan"}

func (a *app) appendCommand() *cobra.Command {
	opt := &ingest.Options{}
	var more ingestWords
	var del deleteWords
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "append STORE SRC...",
		Short: "Add edges and nodes to a store, all of them or none",
		Long: `Add what files hold to a store: edges, and nodes whose ids it lacks, with
features, labels and splits. Those of nodes that it has replace what they had.
Files are read as gdb ingest reads them, and the store is as it was ingested,
directed or not, with or without duplicates. What is added is durable when the
command ends, and is read beside what was there; gdb compact writes both anew as
one. See docs/live.md for what is not read so.

A store with types of nodes takes edges of its relations, and rows of its tables
of nodes: new ids are new nodes, and known ones get the values of the columns
that the file has. Rows of nodes, and deletions, write such a store anew, which
takes longer than gdb compact; so does each commit to a store whose edges are in
splits.

An append of files of more than 1 MiB that was killed, or stopped, goes on with
--resume; without it the next one removes what it had made.

--delete-edges and --delete-nodes delete what files name instead: edges by their
ends and, if the file has them, type and time, all that are parallel too; nodes
with all their edges. What a file names and the store lacks is counted.`,
		Example: `  gdb append shop.gdb --edges today.csv --nodes new.csv --label-col kind
  gdb append typed.gdb --nodes user=new.csv --edges user:buys:item=today.csv
  gdb append typed.gdb --delete-nodes user=closed.txt
  gdb append shop.gdb --nodes changed.csv --label-col kind
  gdb append shop.gdb --delete-edges returned.csv --delete-nodes closed.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(errors.New("append: no STORE: name the store and its sources"))
			}
			if len(del.edges)+len(del.nodes) > 0 {
				return a.delete(cmd, args, opt, &more, del, asJSON)
			}
			if err := a.appendOptions(opt, args[1:], &more, cmd.Flags()); err != nil {
				return err
			}
			return a.append(cmd.Context(), args[0], opt, asJSON)
		},
	}
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	ingestFlags(all, opt, &more)
	for _, name := range appendFlags {
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	cmd.Flags().StringArrayVar(&del.edges, "delete-edges", nil,
		"file of edges to delete; repeatable as\nSRC:REL:DST=FILE")
	cmd.Flags().StringArrayVar(&del.nodes, "delete-nodes", nil,
		"text file with an id a line: nodes to delete, with\nall their edges; repeatable as "+
			"TYPE=FILE")
	cmd.Flags().BoolVar(&opt.Resume, "resume", false, "go on with an append that was stopped")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cli.OnlyOnce(cmd.Flags())
	return cmd
}

// appendOptions are the options of what is added to a store, which has its shape.
func (a *app) appendOptions(opt *ingest.Options, sources []string, more *ingestWords,
	flags *pflag.FlagSet) error {
	opt.NoEdges, opt.Out = true, "-" // they are checked as those of an ingest
	err := a.ingestOptions(opt, sources, more, flags)
	opt.Found, opt.BlockBytes = nil, 0
	return err
}

// reading is how gdb predict reads new nodes.
func (a *app) reading() predictcmd.Reading {
	all, opt, more := pflag.NewFlagSet("", pflag.ContinueOnError), &ingest.Options{}, &ingestWords{}
	ingestFlags(all, opt, more)
	return predictcmd.Reading{Flags: all,
		Options: func(flags *pflag.FlagSet) (*ingest.Options, error) {
			return opt, a.appendOptions(opt, nil, more, flags)
		}}
}

func (a *app) append(ctx context.Context, dir string, opt *ingest.Options, asJSON bool) error {
	bar := a.Progress()
	opt.Progress = bar.Update
	done, err := live.Append(ctx, a.FS, dir, *opt)
	bar.Finish()
	switch {
	case errors.Is(err, live.ErrStopped) && ctx.Err() != nil:
		return a.stopped("append", ctx.Err())
	case err != nil:
		return err
	case asJSON:
		return a.printFields(done)
	case a.Quiet:
		return nil
	}
	w := &cli.Lines{W: a.Out}
	if done.Before {
		w.Printf("%s: snapshot %d has the files already\n", dir, done.Snapshot)
		return w.Err
	}
	w.Printf("%s: snapshot %d adds %s, %s\n", dir, done.Snapshot,
		cli.NodesAndEdges(done.Nodes, done.Edges), mem.FormatSize(done.Bytes))
	if done.Replaced > 0 {
		w.Printf("%s had other values before\n", cli.Plural(int(done.Replaced), "node"))
	}
	switch {
	case done.Anew && !done.Plain && done.Nodes+done.Replaced == 0:
		w.Printf("its edges are in splits, so the store was written anew, as by gdb compact\n")
	case done.Plain:
		w.Printf("its edges are in splits or have columns, so the store was written anew, " +
			"as by gdb compact\n")
	case done.Anew:
		w.Printf("nodes of a type follow each other, so the store was written anew, as by gdb " +
			"compact\n")
	}
	return w.Err
}

// deleteFlags say how a file of edges to delete is read.
var deleteFlags = []string{"format", "src-col", "dst-col", "rel-col", "weight-col", "time-col",
	"na", "delim", "comment", "header", "delete-edges", "delete-nodes", "json"}

// deleteWords are the flags that name what is deleted, as they were given.
type deleteWords struct{ edges, nodes []string }

// deletion takes the types and relations before the files apart.
func (w *deleteWords) deletion(opt *ingest.Options) (del live.Deletion, err error) {
	del.Options = *opt
	for _, s := range w.nodes {
		r, named := source.ParseRelation(s)
		switch {
		case named && r.Src == "":
			del.NodeTables = append(del.NodeTables, source.NodeTable{Type: r.Name, File: r.File})
		case del.DeleteNodes != "":
			return del, cli.Usage(fmt.Errorf("append: --delete-nodes %s: put the ids into one "+
				"file, or write the type of each: --delete-nodes TYPE=FILE", s))
		default:
			del.DeleteNodes = s
		}
	}
	for _, s := range w.edges {
		r, named := source.ParseRelation(s)
		switch {
		case named && r.Src != "":
			del.Relations = append(del.Relations, r)
		case del.Edges != "":
			return del, cli.Usage(fmt.Errorf("append: --delete-edges %s: put the edges into one "+
				"file, or write --delete-edges SRC:REL:DST=FILE", s))
		default:
			del.Edges = s
		}
	}
	return del, nil
}

//lint:parameters the command, and its flags as they were given
func (a *app) delete(cmd *cobra.Command, args []string, opt *ingest.Options, more *ingestWords,
	words deleteWords, asJSON bool) error {
	if len(args) > 1 {
		return cli.Usage(errors.New("append: --delete-edges and --delete-nodes name what they " +
			"read: add other sources by a command of their own"))
	}
	var wrong error
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && !slices.Contains(deleteFlags, f.Name) {
			wrong = cli.Usage(fmt.Errorf("append: --%s does not go with --delete-edges or "+
				"--delete-nodes", f.Name))
		}
	})
	if wrong != nil {
		return wrong
	}
	del, err := words.deletion(opt)
	if err != nil {
		return err
	}
	del.Out = "-"
	if del.Edges != "" || len(del.Relations) > 0 {
		if err := a.ingestOptions(&del.Options, nil, more, cmd.Flags()); err != nil {
			return err
		}
	}
	del.Out, del.Found, del.BlockBytes, del.Memory = "", nil, 0, a.Memory
	bar := a.Progress()
	del.Progress = bar.Update
	done, err := live.Delete(cmd.Context(), a.FS, args[0], del)
	bar.Finish()
	switch {
	case err != nil:
		return err
	case asJSON:
		return a.printFields(done)
	}
	w := &cli.Lines{W: a.Out}
	if !a.Quiet {
		w.Printf("%s: snapshot %d is without %s\n", args[0], done.Snapshot,
			cli.NodesAndEdges(done.Nodes, done.Edges))
	}
	if done.LostNodes+done.LostEdges > 0 {
		a.Note("the files name " + cli.NodesAndEdges(done.LostNodes, done.LostEdges) +
			" that the store does not have")
	}
	return w.Err
}
