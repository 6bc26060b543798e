package bf16

import (
	"golang.org/x/sys/cpu"

	"gdb/compute/kernel"
)

// levels returns the levels of this processor whose results have the same bits.
func levels() []*ops {
	all := []*ops{&plainOps}
	l, _ := kernel.Chosen()
	if l >= kernel.AVX2 {
		all = append(all, &avx2Ops)
	}
	if l >= kernel.AVX512 && cpu.X86.HasAVX512BW {
		all = append(all, &avx512Ops)
		if hasDot() {
			all = append(all, &dotOps)
		}
	}
	return all
}
