package listcode

import "golang.org/x/sys/cpu"

// hasSelect says that this CPU finds a one of a word in few cycles.
var hasSelect = cpu.X86.HasBMI1 && cpu.X86.HasBMI2 && cpu.X86.HasPOPCNT

func prefetch(b []byte, places []uint64) {
	if len(places) > 0 {
		prefetchBits(&b[0], places)
	}
}

func selectOnes(b []byte, at, rank []uint64, reach int) {
	switch {
	case !hasSelect:
		selectOnesPlain(b, at, rank, reach)
	case len(at) > 0:
		selectOnesBMI(&b[0], at, &rank[0], reach/8)
	}
}
