package flagvalue

import (
	"fmt"

	"gdb/internal/mem"
	"gdb/train/setting"

	"github.com/spf13/pflag"
)

// BindBackend adds the flags of where a training computes.
func BindBackend(f *pflag.FlagSet, c *setting.Node) {
	f.StringVar(&c.Backend, "backend", c.Backend, backendHelp)
	BindPrecision(f, &c.Precision)
	f.BoolVar(&c.PlainLaunches, "plain-launches", c.PlainLaunches, "have --backend cuda launch "+
		"each operation by itself, and not those of a step at once")
	f.Var((*SizeOrAuto)(&c.DeviceCache), "device-cache", "size of the cache of features in the "+
		"memory of --backend cuda's device; auto: what steps leave of that, 0: none")
	f.IntVar(&c.Device, "device", c.Device, deviceHelp)
}

const (
	backendHelp = "where it computes: cpu; cuda: on a device of NVIDIA, in a gdb that was built " +
		"for it; auto: there if one opens, else on the cpu"
	deviceHelp = "number of the device of --backend cuda"
)

// WhereFlags are the flags of where a run is evaluated, and predicts.
type WhereFlags struct {
	where        setting.Where
	deviceMemory string
	flags        *pflag.FlagSet
}

// Bind adds the flags.
func (w *WhereFlags) Bind(f *pflag.FlagSet) {
	w.flags = f
	f.StringVar(&w.where.Backend, "backend", "", backendHelp)
	f.IntVar(&w.where.Device, "device", 0, deviceHelp)
	f.StringVar(&w.deviceMemory, "device-memory", "", "most that is taken of the memory of the "+
		"device, but for its driver")
}

// Where is what the flags say.
func (w *WhereFlags) Where() (setting.Where, error) {
	w.where.HasDevice = w.flags.Changed("device")
	if w.where.Device < 0 {
		return w.where, fmt.Errorf("--device %d: devices are numbered from 0", w.where.Device)
	}
	if w.deviceMemory == "" {
		return w.where, nil
	}
	n, err := mem.ParseSize(w.deviceMemory)
	if err != nil {
		return w.where, fmt.Errorf("--device-memory: %w", err)
	}
	w.where.DeviceMemory = n
	return w.where, nil
}

// PrecisionHelp is what --precision means.
const PrecisionHelp = "what products and sums over neighbors read: f32; bf16, half as large and " +
	"faster; tf32: f32 whose factors a device rounds (default f32; of a run, its own)"

// BindPrecision adds the flag of the precision; "" as its default is a run's own.
func BindPrecision(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "precision", *to, PrecisionHelp)
}
