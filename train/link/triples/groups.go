package triples

import "math/bits"

// Groups brings equal numbers of a list together: the places At[Off[i]:Off[i+1]] of the list have
// the number Numbers[i]. Numbers ascend, and so do the places of each.
type Groups struct {
	Numbers, Off, At []uint32

	other       []uint32 // places, while they are sorted
	keys, moved []uint64 // numbers with their places
}

const (
	// digitBits is how many bits sort sorts by at a time, from the lowest on.
	digitBits = 8
	// keyBitsMost is the most bits of numbers that Group sorts by at a time: the counts of that
	// many digits fit in the nearest cache.
	keyBitsMost = 11
)

// Group finds the groups of a list. It reuses the memory of earlier groups.
func (g *Groups) Group(list []uint32) {
	n := len(list)
	if cap(g.keys) < n {
		g.keys, g.moved = make([]uint64, n), make([]uint64, n)
	}
	g.keys, g.moved = g.keys[:n], g.moved[:n]
	largest := uint32(0)
	for i, v := range list {
		largest = max(largest, v)
		g.keys[i] = uint64(v)<<32 | uint64(i)
	}
	g.sortKeys(bits.Len32(largest))
	if cap(g.At) < n {
		g.At = make([]uint32, n)
	}
	g.At, g.Numbers, g.Off = g.At[:n], g.Numbers[:0], g.Off[:0]
	for i, key := range g.keys {
		g.At[i] = uint32(key)
		if v := uint32(key >> 32); i == 0 || v != g.Numbers[len(g.Numbers)-1] {
			g.Numbers, g.Off = append(g.Numbers, v), append(g.Off, uint32(i))
		}
	}
	g.Off = append(g.Off, uint32(n))
}

// sortKeys sorts keys by the lowest width bits of their numbers; equal numbers stay in order.
func (g *Groups) sortKeys(width int) {
	passes := (width + keyBitsMost - 1) / keyBitsMost
	for pass := range passes {
		var next [1 << keyBitsMost]uint32
		digit := (width + passes - 1) / passes
		shift, mask := 32+pass*digit, uint64(1)<<digit-1
		for _, key := range g.keys {
			next[key>>shift&mask%(1<<keyBitsMost)]++
		}
		sum := uint32(0)
		for i, count := range next[:mask+1] {
			next[i] = sum
			sum += count
		}
		moved := g.moved
		for _, key := range g.keys {
			at := &next[key>>shift&mask%(1<<keyBitsMost)]
			moved[*at] = key
			*at++
		}
		g.keys, g.moved = g.moved, g.keys
	}
}

// reset sets At to the places of a list of n, in order.
func (g *Groups) reset(n int) {
	g.At, g.other = make([]uint32, n), make([]uint32, n)
	for i := range g.At {
		g.At[i] = uint32(i)
	}
}

// sort sorts the places by a number of each, of which largest is the largest. Places of equal
// numbers stay in order.
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
