package main

import (
	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/flagvalue"
	"gdb/train/setting"

	"github.com/spf13/pflag"
)

// bindModel adds the flags of architectures.
func bindModel(f *pflag.FlagSet, o *setting.Options) {
	f.IntVar(&o.Heads, "heads", o.Heads, "attention heads of gat and gatv2 (default 4)")
	f.StringVar(&o.Aggregate, "aggregate", o.Aggregate, "how sage, gcn, gin and sgc sum "+
		"neighbors up: "+cli.OneOf(setting.OptionValues("aggregate"))+
		" (default auto, the model's own)")
	f.BoolVar(&o.Residual, "residual", o.Residual, "add the input of each layer to its output; "+
		"not of sgc, as --norm and --activation")
	f.StringVar(&o.Norm, "norm", o.Norm, "scale the hidden layers: "+
		cli.OneOf(setting.OptionValues("norm"))+" (default none)")
	f.StringVar(&o.Activation, "activation", o.Activation,
		cli.OneOf(setting.OptionValues("activation"))+" (default auto, the model's own)")
	f.Var(&flagvalue.Rate{To: &o.InputDropout}, "input-dropout",
		"share of features dropped (default: as --dropout)")
	f.BoolVar(&o.Precompute, "precompute", o.Precompute, "compute first sums of neighbors once, "+
		"before training; not of attention")
	f.IntVar(&o.NodeEmbedding, "node-embedding", o.NodeEmbedding,
		"values learned for each node, behind its features if it has any; 0: none")
}
