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
	largest := uint32(0)
	g.At, g.other = g.At[:0], g.other[:0]
	for i, n := range list {
		largest = max(largest, n)
		g.At, g.other = append(g.At, uint32(i)), append(g.other, 0)
	}
	for shift := 0; shift < 32 && largest>>shift > 0; shift += digitBits {
		g.pass(list, shift)
	}
	g.Numbers, g.Off = g.Numbers[:0], g.Off[:0]
	for i, at := range g.At {
		if n := list[at]; i == 0 || n != g.Numbers[len(g.Numbers)-1] {
			g.Numbers, g.Off = append(g.Numbers, n), append(g.Off, uint32(i))
		}
	}
	g.Off = append(g.Off, uint32(len(list)))
}

// pass sorts the places by one digit of their numbers, and leaves those of equal digits in order.
func (g *Groups) pass(list []uint32, shift int) {
	var first [1 << digitBits]uint32
	for _, n := range list {
		first[uint8(n>>shift)]++
	}
	sum := uint32(0)
	for digit, count := range first {
		first[digit] = sum
		sum += count
	}
	for _, at := range g.At {
		digit := uint8(list[at] >> shift)
		g.other[first[digit]] = at
		first[digit]++
	}
	g.At, g.other = g.other, g.At
}
