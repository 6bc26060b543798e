package pq

import (
	"gdb/compute/kernel"

	"golang.org/x/sys/cpu"
)

// scanLevel returns the version of Scan for this processor.
func scanLevel() scanFunc {
	switch l, _ := kernel.Chosen(); {
	case l == kernel.AVX512 && cpu.X86.HasAVX512BW: // of bytes
		return scanBy(scanAVX512)
	case l == kernel.Plain:
		return refScan
	}
	return scanBy(scanAVX2)
}

// scanBy calls assembly.
func scanBy(fn func(masks *uint32, sums *uint16, codes, table *byte, groups, quads int,
	stride uintptr, scale, least float32)) scanFunc {
	return func(masks []uint32, sums []uint16, g Groups, table []byte, scale, least float32) {
		fn(&masks[0], &sums[0], &g.Bytes[0], &table[0], g.Count, g.Parts/quad,
			uintptr(g.Stride), scale, least)
	}
}
