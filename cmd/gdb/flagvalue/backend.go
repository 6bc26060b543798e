package flagvalue

import (
	"gdb/train/runs"

	"github.com/spf13/pflag"
)

// BindBackend adds the flags of where a training computes.
func BindBackend(f *pflag.FlagSet, c *runs.Settings) {
	f.StringVar(&c.Backend, "backend", c.Backend, "where it computes: cpu; cuda: on a device of "+
		"NVIDIA, in a gdb that was built for it; auto: there if one opens, else on the cpu")
	f.Var((*SizeOrAuto)(&c.DeviceCache), "device-cache", "size of the cache of features in the "+
		"memory of --backend cuda's device; auto: what steps leave of that, 0: none")
	f.IntVar(&c.Device, "device", c.Device, "number of the device of --backend cuda")
}
