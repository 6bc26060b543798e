// Package order decides which partitions of a graph's nodes are in memory, one set after the other,
// and which edge buckets are trained on while a set is: the replacement and selection policies of
// training out of core. It is arithmetic over small numbers: nothing is read here.
//
// The policies are those of Mohoney et al., "Marius: Learning Massive Graph Embeddings on a Single
// Machine" (BETA, with the buckets of a set trained as soon as they are there), and of Waleffe et
// al., "Marius++", section 5 (Two-Level BETA for links; Dispersed and Sequential for nodes).
package order

import (
	"fmt"
	"slices"

	"gdb/internal/rng"
	"gdb/layout/partition"

	"github.com/RoaringBitmap/roaring/v2"
)

// Policy is a way to go through the partitions.
type Policy string

// The policies.
const (
	// InMemory has one set, of all partitions.
	InMemory Policy = "in-memory"
	// Beta swaps one partition at a time so that each pair meets with few swaps, and trains a
	// bucket in the first set that has it.
	Beta Policy = "beta"
	// TwoLevel puts partitions together anew each epoch, to groups that Beta's sets are of, and
	// trains a bucket in any of the sets that have it, by chance.
	TwoLevel Policy = "two-level"
	// Dispersed brings each group of partitions into memory once, for training nodes that are
	// everywhere.
	Dispersed Policy = "dispersed"
	// Sequential has one set, of the partitions with all training nodes and others by chance.
	Sequential Policy = "sequential"
)

// Spec says how epochs go.
type Spec struct {
	Policy Policy
	// Parts is p, the number of partitions, and Capacity is c, how many are in memory at once.
	Parts, Capacity int
	// Logical is l, how many groups partitions are put to, of TwoLevel and Dispersed.
	Logical int
	// TrainParts is how many partitions, the first ones, have the training nodes, of Sequential.
	TrainParts int
	Seed       uint64
}

// Order is a checked spec.
type Order struct {
	spec   Spec
	groups int // of partitions
	hold   int // groups that are in memory at once
}

// New checks a spec.
func New(s Spec) (*Order, error) {
	if s.Parts < 1 || s.Parts > partition.Most {
		return nil, fmt.Errorf("train: %d partitions, want 1 to %d", s.Parts, partition.Most)
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
	return o, o.check(largest)
}

// check finds orders that cannot be.
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

// Spec is what the order was made of.
func (o *Order) Spec() Spec { return o.spec }

// Epoch is the order of one epoch. Its methods do not change it.
type Epoch struct {
	spec   Spec
	key    uint64
	groups [][]int // the partitions of each, ascending
	of     []int   // group of a partition
	sets   [][]int // of groups, ascending
	// with are, for each pair of groups a <= b, at pairOf, the sets that have both, ascending.
	with [][]int32
}

// Epoch returns the order of an epoch: a function of the spec and the number of the epoch. Memory:
// the sets, and for each pair of groups those that have it.
func (o *Order) Epoch(epoch int) *Epoch {
	e := &Epoch{spec: o.spec, key: rng.Key(o.spec.Seed, 0x6f72646572, uint64(epoch))}
	stream := rng.NewStream(e.key)
	e.group(&stream, o.groups)
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

// group puts partitions together by chance; groups differ by one partition at most. For Sequential,
// whose first partitions are told apart, a group is the partition of its number.
func (e *Epoch) group(stream *rng.Stream, groups int) {
	p := e.spec.Parts
	perm := ascending(p)
	if e.spec.Policy != Sequential {
		shuffle(stream, perm)
	}
	e.of = make([]int, p)
	for g := range groups {
		members := slices.Sorted(slices.Values(perm[g*p/groups : (g+1)*p/groups]))
		e.groups = append(e.groups, members)
		for _, part := range members {
			e.of[part] = g
		}
	}
}

// pair finds the sets of each pair of groups.
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

// pairOf is the number of a pair of groups.
func pairOf(a, b int) int {
	if a > b {
		a, b = b, a
	}
	return b*(b+1)/2 + a
}

// Sets is the number of sets.
func (e *Epoch) Sets() int { return len(e.sets) }

// Partitions are the partitions of set i, ascending.
func (e *Epoch) Partitions(i int) (parts []int) {
	for _, g := range e.sets[i] {
		parts = append(parts, e.groups[g]...)
	}
	slices.Sort(parts)
	return parts
}

// Set is Partitions as a set.
func (e *Epoch) Set(i int) *roaring.Bitmap {
	set := roaring.New()
	for _, part := range e.Partitions(i) {
		set.Add(uint32(part))
	}
	return set
}

// Entering are the partitions of set i that the set before did not have.
func (e *Epoch) Entering(i int) []int {
	if i == 0 {
		return e.Partitions(0)
	}
	return without(e.Partitions(i), e.Partitions(i-1))
}

// Leaving are the partitions of set i that the next set does not have; all, of the last one.
func (e *Epoch) Leaving(i int) []int {
	if i == len(e.sets)-1 {
		return e.Partitions(i)
	}
	return without(e.Partitions(i), e.Partitions(i+1))
}

// without is what a has and b has not; both ascend.
func without(a, b []int) []int {
	return slices.DeleteFunc(a, func(v int) bool {
		_, found := slices.BinarySearch(b, v)
		return found
	})
}

// Buckets are the edge buckets that are trained on while set i is in memory. Over the sets of an
// epoch of links, each bucket is in exactly one.
func (e *Epoch) Buckets(i int) (out []partition.Bucket) {
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

func bucket(from, to int) partition.Bucket {
	return partition.Bucket{From: uint16(from), To: uint16(to)}
}

// bucketSet is the set in which a bucket is trained on, of those that have it.
func (e *Epoch) bucketSet(with []int32, from, to int) int {
	if e.spec.Policy == Beta || len(with) == 1 {
		return int(with[0])
	}
	s := rng.NewStream(rng.Sub(e.key, uint64(from)<<32|uint64(to)))
	return int(with[s.Below(uint64(len(with)))])
}

// SetOf is the set in which a training node is trained on: one of those that have its partition, by
// chance. -1 if none has.
func (e *Epoch) SetOf(part int, node uint32) int {
	with := e.with[pairOf(e.of[part], e.of[part])]
	if len(with) == 0 {
		return -1
	}
	s := rng.NewStream(rng.Sub(e.key+1, uint64(node)))
	return int(with[s.Below(uint64(len(with)))])
}
