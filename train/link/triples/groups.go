package triples

// Groups brings equal numbers of a list together: places At[Off[i]:Off[i+1]] of the list have the
// number Numbers[i]. Numbers ascend, and so do the places of each.
type Groups struct {
	Numbers, Off, At []uint32

	other []uint32 // places, while they are sorted
}

// digitBits are sorted by at a time, from the lowest on.
const digitBits = 8

// Group finds the groups of a list, in memory that is used again.
func (g *Groups) Group(list []uint32) {
	g.reset(len(list))
	largest := uint32(0)
	for _, n := range list {
		largest = max(largest, n)
	}
	g.sort(largest, func(i uint32) uint32 { return list[i] })
	g.Numbers, g.Off = g.Numbers[:0], g.Off[:0]
	for i, at := range g.At {
		if n := list[at]; i == 0 || n != g.Numbers[len(g.Numbers)-1] {
			g.Numbers, g.Off = append(g.Numbers, n), append(g.Off, uint32(i))
		}
	}
	g.Off = append(g.Off, uint32(len(list)))
}

// reset makes At the places of a list in their order.
func (g *Groups) reset(n int) {
	if cap(g.At) < n {
		g.At, g.other = make([]uint32, n), make([]uint32, n)
	}
	g.At, g.other = g.At[:n], g.other[:n]
	for i := range g.At {
		g.At[i] = uint32(i)
	}
}

// sort sorts the places by a number of each; those of equal numbers stay in order.
func (g *Groups) sort(largest uint32, number func(i uint32) uint32) {
	for shift := 0; shift < 32 && largest>>shift > 0; shift += digitBits {
		var first [1 << digitBits]uint32
		for _, at := range g.At {
			first[uint8(number(at)>>shift)]++
		}
		sum := uint32(0)
		for digit, count := range first {
			first[digit] = sum
			sum += count
		}
		for _, at := range g.At {
			digit := uint8(number(at) >> shift)
			g.other[first[digit]] = at
			first[digit]++
		}
		g.At, g.other = g.other, g.At
	}
}
