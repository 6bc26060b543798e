package listcode

import "golang.org/x/sys/cpu"

// fast says that this CPU has the instructions of the kernels.
var fast = cpu.X86.HasBMI1 && cpu.X86.HasBMI2 && cpu.X86.HasPOPCNT

func prefetch(b []byte, places []uint64) {
	if len(places) > 0 {
		prefetchBits(&b[0], places)
	}
}

func packedFields(b []byte, places []uint64, width int, out []uint32) {
	switch {
	case !fast:
		packedFieldsPlain(b, places, width, out)
	case len(places) > 0:
		packedBMI(&b[0], places, uint64(width), &out[0])
	}
}

func addFields(b []byte, places []uint64, widths []uint8, firsts, out []uint32) {
	switch {
	case !fast:
		addFieldsPlain(b, places, widths, firsts, out)
	case len(places) > 0:
		fieldsBMI(&b[0], places, &widths[0], &firsts[0], &out[:len(places)][0])
	}
}

func selectOnes(b []byte, at, rank []uint64, reach int) {
	switch {
	case !fast:
		selectOnesPlain(b, at, rank, reach)
	case len(at) > 0:
		selectOnesBMI(&b[0], at, &rank[0], reach/8)
	}
}
