package cli

import (
	"fmt"

	"gdb/internal/mem"
	"gdb/train/setting"

	"github.com/spf13/pflag"
)

// WhereFlags are the flags of where a run is evaluated, and predicts.
type WhereFlags struct {
	where        setting.Where
	device       int
	deviceMemory string
	flags        *pflag.FlagSet
}

// Bind adds the flags.
func (w *WhereFlags) Bind(f *pflag.FlagSet) {
	w.flags = f
	f.StringVar(&w.where.Backend, "backend", "", HelpOf("backend"))
	f.IntVar(&w.device, "device", 0, HelpOf("device"))
	f.StringVar(&w.deviceMemory, "device-memory", "", "most that is taken of the memory of the "+
		"device, but for its driver")
	OnlyFor(f, setting.OfNodes, "backend", "device", "device-memory")
}

// Where returns what the flags say.
func (w *WhereFlags) Where() (setting.Where, error) {
	if w.flags.Changed("device") {
		w.where.Device = &w.device
	}
	if w.device < 0 {
		return w.where, fmt.Errorf("--device %d: devices are numbered from 0", w.device)
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

// BindPrecision adds the flag of the precision of a run of nodes; "" as its default is the run's
// own: those of links have one of their own.
func BindPrecision(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "precision", *to, HelpOf("precision"))
	OnlyFor(f, setting.OfNodes, "precision")
}
