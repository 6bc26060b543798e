package flagvalue

import (
	"gdb/train/setting"

	"github.com/spf13/pflag"
)

// BindEdges adds the flags of a training that are about what edges have.
func BindEdges(f *pflag.FlagSet, c *setting.Node) {
	f.BoolVar(&c.EdgeWeight, "edge-weight", c.EdgeWeight,
		"have the weights of edges count: sage, gcn, gin and sgc")
	f.StringVar(&c.Sample, "sample", c.Sample, "how neighbors are drawn: uniform, weighted (by "+
		"the weights of edges) or latest (those of the latest edges)")
	f.Var(&Time{To: &c.Before}, "before", "have only edges before this time count, in evaluation "+
		"too: seconds since 1970, or a date and time such as 2024-05-31 or 2024-05-31T12:00:00Z")
	f.IntVar(&c.Bases, "bases", c.Bases,
		"matrices that those of relations are sums of, of rgcn (default 8, or the types of edges)")
}
