package pq

import (
	"gdb/internal/mem"
)

type scanFunc func(masks []uint32, sums []uint16, g Groups, table []byte, scale, least float32)

// refScan is the specification of Scan. Vectors multiply and add with one rounding, so where the
// result is within a rounding of least, the bit may differ.
//
//lint:parameters as many as the assembly takes that it specifies
func refScan(masks []uint32, sums []uint16, g Groups, table []byte, scale, least float32) {
	for i := range g.Count {
		group := g.Bytes[i*g.Stride:]
		bias := mem.View[float32](group[g.GroupBytes():][:4*Group])
		masks[i] = 0
		for e := range Group {
			var sum uint16
			for p := range g.Parts {
				k := group[p*Group/2+e%(Group/2)] >> (e / (Group / 2) * 4) & 15
				sum += uint16(table[p*Centers+int(k)])
			}
			sums[i*Group+e] = sum
			if float32(sum)*scale+bias[e] > least {
				masks[i] |= 1 << e
			}
		}
	}
}
