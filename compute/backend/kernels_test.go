package backend_test

import (
	"testing"

	"gdb/compute/backend"
	"gdb/compute/program"
)

// plain are operations that the CPU does by their references, each with its reason.
var plain = map[string]string{
	"attend":           onDevice,
	"attend-to-rows":   onDevice,
	"attend-to-scores": onDevice,
	"compose":          ofParameters,
	"mask":             explains,
	"mask-grad":        explains,
	"mask-share":       explains,
	"norm-apply-grad":  explains,
}

// explains is why masks of edges have no kernels: they are of the neighborhood of one node, whose
// products and sums take longer.
const explains = "explanations are of one node at a time"

// ofParameters is why matrices of relations are composed by the reference.
const ofParameters = "it reads parameters, once for thousands of nodes"

// onDevice is why fused attention has no kernel here: the CPU's programs have its parts instead.
const onDevice = "programs have it on a device alone"

// TestKernels: every other operation of programs has a kernel on the CPU.
func TestKernels(t *testing.T) {
	for _, name := range program.Names() {
		if !backend.HasKernel(name) && plain[name] == "" {
			t.Errorf("%s is computed by its reference", name)
		}
	}
}
