package flagvalue

import (
	"gdb/train/runs"

	"github.com/spf13/pflag"
)

// BindBackend adds the flags of where a training computes.
func BindBackend(f *pflag.FlagSet, c *runs.Settings) {
	f.StringVar(&c.Backend, "backend", c.Backend, "where it computes: cpu; cuda: on a device of "+
		"NVIDIA, in a gdb that was built for it; auto: there if one opens, else on the cpu")
	f.BoolVar(&c.PlainLaunches, "plain-launches", c.PlainLaunches, "have --backend cuda launch "+
		"each operation by itself, and not those of a step at once")
	f.IntVar(&c.Device, "device", c.Device, "number of the device of --backend cuda")
}
