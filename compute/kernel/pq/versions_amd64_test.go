package pq

import "golang.org/x/sys/cpu"

// versions returns the versions of Scan that this processor has, by name.
func versions() map[string]scanFunc {
	all := map[string]scanFunc{"plain": refScan}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		all["avx2"] = scanBy(scanAVX2)
	}
	if cpu.X86.HasAVX512BW && cpu.X86.HasAVX512F {
		all["avx512"] = scanBy(scanAVX512)
	}
	return all
}
