//go:build cuda && cgo && linux

package cuda

import (
	"maps"

	"gdb/compute/backend"
)

// deviceKernel does an operation on the device.
type deviceKernel func(g *gpu, o *backend.Operands)

// deviceKernels are the kernels of the device, by the names of operations.
var deviceKernels = map[string]deviceKernel{}

func init() {
	for _, family := range []map[string]deviceKernel{attentions, elements, products, columns, norms,
		pulls, entries, losses, optimizers, links} {
		maps.Copy(deviceKernels, family)
	}
}

// Run does an operation with its kernel, or as its reference does it on the host.
func (g *gpu) Run(op *backend.Op, o *backend.Operands) {
	op.Check(o)
	if g.err != nil {
		return
	}
	if run := deviceKernels[op.Name]; run != nil {
		run(g, o)
		return
	}
	var lists backend.Lists
	if o.Lists.ID < len(g.lists) {
		lists = g.lists[o.Lists.ID].Lists
	}
	op.Plain(g, o, lists)
}
