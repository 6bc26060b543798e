package flagvalue

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gdb/sample"
	"gdb/train/setting"

	"github.com/spf13/pflag"
)

// BindSampling adds the flags of a training that say how batches are sampled.
func BindSampling(f *pflag.FlagSet, c *setting.Node) {
	f.Var((*Fanout)(&c.Fanout), "fanout",
		"neighbors per hop, the first next to the seeds; all for every one")
	f.StringVar(&c.Sampler, "sampler", c.Sampler, strings.Join(setting.Choices("sampler"), " or ")+
		": draw the neighbors of each node apart, or those of a whole hop together")
	f.Var((*LayerSize)(&c.LayerSize), "layer-size", "nodes drawn per hop by --sampler layer, in "+
		"the place of --fanout: 512,512")
}

// FitSampling leaves out what the command line did not say of the sampler that was not chosen. With
// --resume the run says how it samples; flags are held against it when it is loaded.
func FitSampling(f *pflag.FlagSet, c *setting.Node) {
	switch {
	case c.Resume != "":
		c.Sampler, c.LayerSize = setting.SamplerNeighbor, nil
	case c.Sampler == setting.SamplerLayer:
		if !f.Changed("fanout") {
			c.Fanout = nil
		}
		return
	case !f.Changed("layer-size"):
		c.LayerSize = nil
	}
	if len(c.Fanout) == 0 { // --from a run of layers
		c.Fanout = setting.Default().Fanout
	}
}

// LayerSize is --layer-size: numbers with commas.
type LayerSize []int

// String is the flag's value.
func (l *LayerSize) String() string { return sample.FormatFanout(*l) }

// Set parses 512,512.
func (l *LayerSize) Set(s string) error {
	var sizes []int
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 || n > math.MaxInt32 {
			return fmt.Errorf("layer size %q: give positive numbers, one a hop, such as 512,512", s)
		}
		sizes = append(sizes, n)
	}
	*l = sizes
	return nil
}

// Type names the value in help.
func (l *LayerSize) Type() string { return "sizes" }
