package main

import (
	"slices"
	"strings"

	"gdb/internal/message"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroup is a part of the flags in the help of a command that has many.
type flagGroup struct {
	title string
	flags []string
}

// trainingGroups are the parts of the flags of train, and of other commands that plan or time a
// training. A flag in none of them stands with those of the command itself, which come first.
var trainingGroups = []flagGroup{
	{"Model", []string{"model", "hidden", "heads", "bases", "aggregate", "residual", "norm",
		"activation", "node-embedding", "precompute", "tune"}},
	{"Neighbors and features", []string{"batch", "fanout", "sampler", "layer-size", "sample",
		"macro-batch", "before", "edge-weight", "normalize", "split", "split-column"}},
	{"Learning", []string{"epochs", "lr", "lr-schedule", "warmup", "clip", "weight-decay",
		"dropout", "input-dropout", "optimizer", "loss", "class-weights"}},
	{"Evaluation", []string{"metric", "eval-every", "eval-mode", "patience", "candidates"}},
	{"Link prediction (--task link)", []string{"decoder", "dim", "negatives",
		"negative-sampling", "degree-power", "filter-negatives", "reciprocal", "margin",
		"temperature", "norm-order", "regularizer", "regularizer-weight", "init", "encoder",
		"encoder-input", "encoder-lr", "staleness"}},
	{"Partitions of a graph that are in memory in turn", []string{"order", "partitions",
		"partitions-in-memory", "logical-partitions"}},
	{"Memory and reads", []string{"strategy", "cache", "feature-cache", "superbatch",
		"neighbor-cache", "topology", "io"}},
	{"Where it computes", []string{"backend", "device", "device-cache", "precision",
		"plain-launches"}},
}

// flagUsages returns the local flags of a command for its help: in groups, if it trains.
func flagUsages(c *cobra.Command) string {
	groups := trainingGroups
	if c.LocalFlags().Lookup("fanout") == nil || c.LocalFlags().Lookup("model") == nil {
		groups = nil
	}
	var b strings.Builder
	b.WriteString("Flags:\n" + usagesOf(c, func(name string) bool {
		return !slices.ContainsFunc(groups, func(g flagGroup) bool {
			return slices.Contains(g.flags, name)
		})
	}))
	for _, g := range groups {
		text := usagesOf(c, func(name string) bool { return slices.Contains(g.flags, name) })
		if text != "" {
			b.WriteString("\n" + g.title + ":\n" + text)
		}
	}
	return strings.TrimRight(b.String(), "\n")
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
