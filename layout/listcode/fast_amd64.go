package listcode

import "golang.org/x/sys/cpu"

// fast says that this CPU has the instructions of the kernels.
var fast = cpu.X86.HasBMI1 && cpu.X86.HasBMI2 && cpu.X86.HasPOPCNT

func prefetch(b []byte, places []uint64, bytes int) {
	if len(places) > 0 {
		prefetchBits(&b[0], places, max(0, bytes-1))
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

// ask asks for the memory of entries of a list.
func ask(g *Gatherer, r *Ref, pos []uint32) {
	switch {
	case !fast || len(pos) == 0:
	case r.kind == kindWhole:
		askWhole(g, r, pos)
	default:
		askBMI(&g.b[0], pos, &r.low)
	}
}

// askWhole asks for samples, or for ones where there are none before them, and for low bits.
func askWhole(g *Gatherer, r *Ref, pos []uint32) {
	var places [2 * drawsAhead]uint64
	for len(pos) > 0 {
		n := min(len(pos), drawsAhead)
		for k, p := range pos[:n] {
			i := uint64(max(p, 1) - 1)
			places[2*k] = r.low + i*uint64(r.width)
			places[2*k+1] = r.low + (uint64(r.Count)-1)*uint64(r.width)
			if i >= sampleEvery {
				places[2*k+1] = r.sample(i, g.posBits)
			}
		}
		prefetchBits(&g.b[0], places[:2*n], Slack-1)
		pos = pos[n:]
	}
}

func take(b []byte, r *Ref, pos, out []uint32) {
	switch {
	case !fast:
		takePlain(b, r, pos, out)
	case len(pos) > 0:
		takeBMI(&b[0], pos, &r.low, &out[:len(pos)][0])
	}
}

// selectBit is the place of one number rank of a word, 64 if it has none.
func selectBit(word, rank uint64) uint64 {
	if !fast || rank > 63 {
		return selectPlain(word, rank)
	}
	return selectBMI(word, rank)
}
