package partition

import (
	"cmp"
	"fmt"
	"slices"

	"gdb/internal/rng"

	"github.com/RoaringBitmap/roaring/v2"
)

// Policy is a way to go through the partitions.
type Policy string

// The policies.
const (
	// InMemory has one set, of all partitions.
	InMemory Policy = "in-memory"
	// Beta swaps one partition at a time, so that each pair of partitions meets with few swaps. A
	// bucket is trained in the first set that has it.
	Beta Policy = "beta"
	// TwoLevel forms new groups of partitions in each epoch, and goes through the groups as Beta
	// does through partitions. A bucket is trained in a random one of the sets that have it.
	TwoLevel Policy = "two-level"
	// Dispersed brings each group of partitions into memory once. It is for training nodes that are
	// spread over all partitions.
	Dispersed Policy = "dispersed"
	// Sequential has one set: the partitions with all training nodes, and random others.
	Sequential Policy = "sequential"
)

// OrderSpec says how epochs go through the partitions.
type OrderSpec struct {
	Policy Policy
	// Parts is p, the number of partitions, and Capacity is c, how many are in memory at once.
	Parts, Capacity int
	// Logical is l, the number of groups into which TwoLevel and Dispersed divide the partitions.
	Logical int
	// TrainParts is, for Sequential, how many partitions have the training nodes: the first ones.
	TrainParts int
	Seed       uint64
	// Weights, if they are not nil, are what partitions take of memory. They are for Dispersed with
	// one group in memory at once, whose groups then weigh about the same: see Order.Heaviest. They
	// must not change.
	Weights []uint64
}

// Order is a spec that was checked.
type Order struct {
	spec   OrderSpec
	groups int   // number of groups of partitions
	hold   int   // number of groups in memory at once
	ranked []int // with Weights: the partitions, the heaviest first
}

// NewOrder returns the order of a spec, or an error if the spec cannot be followed.
func NewOrder(s OrderSpec) (*Order, error) {
	if s.Parts < 1 || s.Parts > Most {
		return nil, fmt.Errorf("train: %d partitions, want 1 to %d", s.Parts, Most)
	}
	o := &Order{spec: s, groups: s.Parts}
	if s.Policy == InMemory {
		o.hold = o.groups
		return o, nil
	}
	if s.Capacity < 1 {
		return nil, fmt.Errorf("train: a buffer of %d partitions", s.Capacity)
	}
	if s.Policy == TwoLevel || s.Policy == Dispersed {
		if s.Logical < 1 || s.Logical > s.Parts {
			return nil, fmt.Errorf("train: %d logical partitions of %d physical ones", s.Logical,
				s.Parts)
		}
		o.groups = s.Logical
	}
	largest := (s.Parts + o.groups - 1) / o.groups
	o.hold = min(s.Capacity/largest, o.groups)
	if s.Weights != nil {
		if s.Policy != Dispersed || o.hold > 1 || len(s.Weights) != s.Parts {
			return nil, fmt.Errorf("train: %d weights of %d partitions, %d groups at once (%s)",
				len(s.Weights), s.Parts, o.hold, s.Policy)
		}
		o.ranked = ascending(s.Parts)
		slices.SortFunc(o.ranked, func(a, b int) int {
			return cmp.Or(cmp.Compare(s.Weights[b], s.Weights[a]),
				cmp.Compare(rng.Key(s.Seed, uint64(a)), rng.Key(s.Seed, uint64(b))))
		})
	}
	return o, o.check(largest)
}

// leastShift is the part of the groups by which strata are shifted at least: see Epoch.strata.
const leastShift = 4

// Heaviest returns a bound of the weights of a group in any epoch: one partition of each stratum at
// the least shift, or those that weigh most, as many as a group has.
func (o *Order) Heaviest() uint64 {
	most, strata := uint64(0), o.spec.Weights[o.ranked[0]]
	for _, part := range o.ranked[:(len(o.ranked)+o.groups-1)/o.groups] {
		most += o.spec.Weights[part]
	}
	for i := max(1, o.groups/leastShift); i < len(o.ranked); i += o.groups {
		strata += o.spec.Weights[o.ranked[i]]
	}
	return min(most, strata)
}

// check returns an error if the buffer is too small for the policy. largest is the number of
// partitions in the largest group.
func (o *Order) check(largest int) error {
	s := &o.spec
	least := 1
	switch s.Policy {
	case Beta, TwoLevel:
		least = min(2, o.groups) // a pair must fit
	case Sequential:
		if s.TrainParts < 1 || s.TrainParts > min(s.Capacity, s.Parts) {
			return fmt.Errorf("train: training nodes are in %d partitions, and %d of %d fit in "+
				"memory: use %s", s.TrainParts, s.Capacity, s.Parts, Dispersed)
		}
	case Dispersed:
	default:
		return fmt.Errorf("train: no policy is called %q", s.Policy)
	}
	if o.hold < least {
		return fmt.Errorf("train: a buffer of %d partitions holds %d groups of up to %d, and %s "+
			"needs %d: take more logical partitions, or a larger buffer", s.Capacity, o.hold,
			largest, s.Policy, least)
	}
	return nil
}

// Spec returns the spec that the order was made from.
func (o *Order) Spec() OrderSpec { return o.spec }

// Epoch is the order of one epoch. Its methods do not change it.
type Epoch struct {
	spec   OrderSpec
	key    uint64
	groups [][]int // partitions of each group, ascending
	of     []int   // group of each partition
	sets   [][]int // groups of each set, ascending
	// with holds, for each pair of groups at its number pairOf, the sets that have both, ascending.
	with [][]int32
}

// Epoch returns the order of an epoch, which is a function of the spec and the epoch's number. It
// takes memory for the sets, and for each pair of groups the list of sets that have it.
func (o *Order) Epoch(epoch int) *Epoch {
	e := &Epoch{spec: o.spec, key: rng.Key(o.spec.Seed, 0x6f72646572, uint64(epoch))}
	stream := rng.NewStream(e.key)
	if o.ranked == nil {
		e.group(&stream, o.groups)
	} else {
		e.strata(&stream, o.groups, o.ranked)
	}
	switch o.spec.Policy {
	case Beta, TwoLevel:
		e.sets = beta(o.groups, o.hold)
	case Dispersed:
		e.sets = dispersed(&stream, o.groups, o.hold)
	case Sequential:
		e.sets = [][]int{e.sequential(&stream)}
	default:
		e.sets = [][]int{ascending(o.groups)}
	}
	for _, set := range e.sets {
		slices.Sort(set)
	}
	e.pair()
	return e
}

// group divides the partitions into random groups, whose sizes differ by at most one. With
// Sequential, whose first partitions are special, each partition is the group of its number.
func (e *Epoch) group(stream *rng.Stream, groups int) {
	p := e.spec.Parts
	perm := ascending(p)
	if e.spec.Policy != Sequential {
		shuffle(stream, perm)
	}
	e.of = make([]int, p)
	for g := range groups {
		e.join(g, perm[g*p/groups:(g+1)*p/groups])
	}
}

// join makes partitions the next group, of number g.
func (e *Epoch) join(g int, members []int) {
	e.groups = append(e.groups, slices.Sorted(slices.Values(members)))
	for _, part := range members {
		e.of[part] = g
	}
}

// strata divides the partitions into random groups of about the same weight, whose sizes differ by
// at most one. ranked has the heaviest partitions first. They are cut into strata of one partition
// for each group, dealt at random. Strata begin elsewhere in each epoch, so that any two partitions
// may meet, but for the heaviest. Those before the first stratum are dealt with those after the
// last.
func (e *Epoch) strata(stream *rng.Stream, groups int, ranked []int) {
	least := groups / leastShift
	shift := min(least+int(stream.Below(uint64(groups-least+1))), len(ranked))
	members, to := make([][]int, groups), ascending(groups)
	deal := func(parts []int, dealt int) int {
		parts = slices.Clone(parts)
		shuffle(stream, parts)
		for i, part := range parts {
			g := to[(dealt+i)%groups]
			members[g] = append(members[g], part)
		}
		return dealt + len(parts)
	}
	shuffle(stream, to)
	rest := shift + (len(ranked)-shift)/groups*groups
	deal(ranked[rest:], deal(ranked[:shift], 0))
	for at := shift; at < rest; at += groups {
		deal(ranked[at:at+groups], 0)
	}
	e.of = make([]int, len(ranked))
	for g := range groups {
		e.join(g, members[g])
	}
}

// pair finds the sets that have each pair of groups.
func (e *Epoch) pair() {
	n := len(e.groups)
	e.with = make([][]int32, n*(n+1)/2)
	for i, set := range e.sets {
		for k, a := range set {
			for _, b := range set[k:] {
				at := pairOf(a, b)
				e.with[at] = append(e.with[at], int32(i))
			}
		}
	}
}

// pairOf returns the number of a pair of groups.
func pairOf(a, b int) int {
	if a > b {
		a, b = b, a
	}
	return b*(b+1)/2 + a
}

// Sets returns the number of sets.
func (e *Epoch) Sets() int { return len(e.sets) }

// Partitions returns the partitions of set i, ascending.
func (e *Epoch) Partitions(i int) (parts []int) {
	for _, g := range e.sets[i] {
		parts = append(parts, e.groups[g]...)
	}
	slices.Sort(parts)
	return parts
}

// Set returns the partitions of set i as a bitmap.
func (e *Epoch) Set(i int) *roaring.Bitmap {
	set := roaring.New()
	for _, part := range e.Partitions(i) {
		set.Add(uint32(part))
	}
	return set
}

// Entering returns the partitions of set i that the previous set did not have.
func (e *Epoch) Entering(i int) []int {
	if i == 0 {
		return e.Partitions(0)
	}
	return without(e.Partitions(i), e.Partitions(i-1))
}

// Leaving returns the partitions of set i that the next set does not have. All leave
// after the last set.
func (e *Epoch) Leaving(i int) []int {
	if i == len(e.sets)-1 {
		return e.Partitions(i)
	}
	return without(e.Partitions(i), e.Partitions(i+1))
}

// without returns the values of a that are not in b; both ascend. It reuses the memory of a.
func without(a, b []int) []int {
	return slices.DeleteFunc(a, func(v int) bool {
		_, found := slices.BinarySearch(b, v)
		return found
	})
}

// Buckets returns the edge buckets that are trained on while set i is in memory. Over an epoch of
// links each bucket is in exactly one set.
func (e *Epoch) Buckets(i int) (out []Bucket) {
	for k, a := range e.sets[i] {
		for _, b := range e.sets[i][k:] {
			with := e.with[pairOf(a, b)]
			for _, from := range e.groups[a] {
				for _, to := range e.groups[b] {
					if e.bucketSet(with, from, to) == i {
						out = append(out, bucket(from, to))
					}
					if a != b && e.bucketSet(with, to, from) == i {
						out = append(out, bucket(to, from))
					}
				}
			}
		}
	}
	return out
}

func bucket(from, to int) Bucket {
	return Bucket{From: uint16(from), To: uint16(to)}
}

// bucketSet returns in which of the sets that have a bucket it is trained on.
func (e *Epoch) bucketSet(with []int32, from, to int) int {
	if e.spec.Policy == Beta || len(with) == 1 {
		return int(with[0])
	}
	s := rng.NewStream(rng.Sub(e.key, uint64(from)<<32|uint64(to)))
	return int(with[s.Below(uint64(len(with)))])
}

// SetOf returns the set in which a training node is trained on: a random one of those that have its
// partition; -1 if none has.
func (e *Epoch) SetOf(part int, node uint32) int {
	with := e.with[pairOf(e.of[part], e.of[part])]
	if len(with) == 0 {
		return -1
	}
	s := rng.NewStream(rng.Sub(e.key+1, uint64(node)))
	return int(with[s.Below(uint64(len(with)))])
}

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
