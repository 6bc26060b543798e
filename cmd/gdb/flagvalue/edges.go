package flagvalue

import (
	"strings"

	"gdb/train/runs"

	"github.com/spf13/pflag"
)

// BindEdges adds the flags of a training that are about what edges have.
func BindEdges(f *pflag.FlagSet, c *runs.Settings) {
	f.BoolVar(&c.EdgeWeight, "edge-weight", c.EdgeWeight,
		"have the weights of edges count: sage, gcn, gin and sgc")
	f.StringVar(&c.Sample, "sample", c.Sample, "how neighbors are drawn: "+
		strings.Join(runs.Choices("sample"), " or ")+", by the weights of their edges")
	f.IntVar(&c.Bases, "bases", c.Bases,
		"matrices that those of relations are sums of, of rgcn (default 8, or the types of edges)")
}
