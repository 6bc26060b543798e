package partition

import (
	"slices"

	"gdb/internal/rng"
)

// beta returns sets of hold of n partitions in which each pair occurs at least once, and each set
// differs from the previous one by one partition. It keeps hold-1 partitions while all others pass
// through the last place; then those have met all, and others replace them (Mohoney et al.,
// "Marius", section 4, the BETA ordering).
func beta(n, hold int) (sets [][]int) {
	buffer, disk := ascending(hold), ascending(n)[hold:]
	sets = append(sets, slices.Clone(buffer))
	last := hold - 1
	for len(disk) > 0 {
		for i := range disk {
			buffer[last], disk[i] = disk[i], buffer[last]
			sets = append(sets, slices.Clone(buffer))
		}
		// Those that were held have met all: they do not come back.
		replaced := min(last, len(disk))
		for i := range replaced {
			buffer[i] = disk[i]
			sets = append(sets, slices.Clone(buffer))
		}
		disk = disk[replaced:]
	}
	return sets
}

// swaps returns how many sets beta has after the first.
func swaps(n, hold int) (count int) {
	for disk := n - hold; disk > 0; {
		replaced := min(hold-1, disk)
		count += disk + replaced
		disk -= replaced
	}
	return count
}

// dispersed brings each of n partitions into a buffer of hold once, in random order, each in the
// place of a random other one (Waleffe et al., "Marius++", Algorithm 5).
func dispersed(stream *rng.Stream, n, hold int) (sets [][]int) {
	perm := ascending(n)
	shuffle(stream, perm)
	buffer := slices.Clone(perm[:hold])
	sets = append(sets, slices.Clone(buffer))
	for _, next := range perm[hold:] {
		buffer[stream.Below(uint64(hold))] = next
		sets = append(sets, slices.Clone(buffer))
	}
	return sets
}

// sequential returns the only set of an epoch whose training nodes are in the first partitions:
// these, and random others (Waleffe et al., "Marius++", section 5.3).
func (e *Epoch) sequential(stream *rng.Stream) []int {
	k := e.spec.TrainParts
	others := ascending(e.spec.Parts)[k:]
	shuffle(stream, others)
	return append(ascending(k), others[:min(e.spec.Capacity-k, len(others))]...)
}

// ascending returns the numbers below n.
func ascending(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// shuffle puts numbers in random order.
func shuffle(stream *rng.Stream, all []int) {
	for i := len(all) - 1; i > 0; i-- {
		j := int(stream.Below(uint64(i + 1)))
		all[i], all[j] = all[j], all[i]
	}
}
