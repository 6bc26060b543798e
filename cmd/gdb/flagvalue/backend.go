package flagvalue

import (
	"gdb/train/runs"

	"github.com/spf13/pflag"
)

// BindBackend adds the flags of where a training computes.
func BindBackend(f *pflag.FlagSet, c *runs.Settings) {
	f.StringVar(&c.Backend, "backend", c.Backend, "where it computes: cpu; cuda: on a device of "+
		"NVIDIA, in a gdb that was built for it; auto: there if one opens, else on the cpu")
	BindPrecision(f, &c.Precision)
	f.BoolVar(&c.PlainLaunches, "plain-launches", c.PlainLaunches, "have --backend cuda launch "+
		"each operation by itself, and not those of a step at once")
	f.Var((*SizeOrAuto)(&c.DeviceCache), "device-cache", "size of the cache of features in the "+
		"memory of --backend cuda's device; auto: what steps leave of that, 0: none")
	f.IntVar(&c.Device, "device", c.Device, "number of the device of --backend cuda")
}

// PrecisionHelp is what --precision means.
const PrecisionHelp = "what products and sums over neighbors read: f32; bf16, half as large and " +
	"faster; tf32: f32 whose factors a device rounds (default f32; of a run, its own)"

// BindPrecision adds the flag of the precision; "" as its default is a run's own.
func BindPrecision(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "precision", *to, PrecisionHelp)
}
