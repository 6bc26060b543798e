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

// ask asks for the memory that aim and take read.
func ask(g *Gatherer, k *batch) {
	if fast && k.used > 0 {
		askBMI(&g.b[0], k.draws[:k.used], &k.sources[0].low, uint64(g.coding.PosBits))
	}
}

func aim(g *Gatherer, k *batch) {
	switch {
	case !fast:
		aimPlain(g, k)
	case k.used > 0:
		aimBMI(&g.b[0], k.draws[:k.used], &k.sources[0].low, uint64(g.coding.PosBits), g.last,
			&k.starts[0])
	}
}

func take(g *Gatherer, k *batch, out []uint32) {
	switch {
	case !fast:
		takePlain(g, k, out)
	case k.used > 0:
		takeBMI(&g.b[0], k.draws[:k.used], &k.sources[0].low, &k.starts[0], g.reach/8,
			&out[:k.used][0])
	}
}
