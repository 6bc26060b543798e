// Package partition deals the nodes of a graph to physical partitions of equal size, as training
// with a partition buffer needs them (Waleffe et al., "Marius++", section 5.1). A partition is a
// set of nodes with an order: a node is row R of partition P. Nothing is stored: both are computed
// from a few numbers, either way. Buckets are the train edges by pairs of partitions, on disk.
package partition

import (
	"fmt"

	"gdb/internal/rng"
	"gdb/kv"
)

// Most is the largest number of partitions. Squared it is the number of edge buckets, whose places
// are kept in memory: 8 bytes each.
const Most = 4096

// Bucket names the edges from one partition to another.
type Bucket struct{ From, To uint16 }

const _ uint16 = Most // the number of a partition fits in a Bucket

// Spec says how nodes are dealt out.
type Spec struct {
	Nodes uint64
	Parts int
	// Random deals nodes out by chance, by Seed; else a partition is a range of nodes.
	Random bool
	Seed   uint64
}

// Map is a partitioning. It is a value; its methods may be called from any goroutine.
type Map struct {
	spec  Spec
	perm  rng.Permutation
	size  uint64 // of the smaller partitions
	large uint64 // partitions that have one node more: the first ones
}

// New returns the partitioning of a spec. There are as many nodes as partitions at least.
func New(spec Spec) (Map, error) {
	if spec.Parts < 1 || spec.Parts > Most || uint64(spec.Parts) > spec.Nodes {
		return Map{}, fmt.Errorf("layout: %d partitions of %d nodes: want 1 to %d", spec.Parts,
			spec.Nodes, min(Most, spec.Nodes))
	}
	if !spec.Random {
		spec.Seed = 0
	}
	n := uint64(spec.Parts)
	return Map{spec: spec, perm: rng.NewPermutation(spec.Nodes, rng.Key(0x70617274, spec.Seed)),
		size: spec.Nodes / n, large: spec.Nodes % n}, nil
}

// Spec is what the partitioning was made of.
func (m *Map) Spec() Spec { return m.spec }

// Parts is the number of partitions.
func (m *Map) Parts() int { return m.spec.Parts }

// Size is the number of nodes of a partition: that of any other, or one more or less.
func (m *Map) Size(part int) uint64 {
	if uint64(part) < m.large {
		return m.size + 1
	}
	return m.size
}

// MaxSize is the number of nodes of the largest partition.
func (m *Map) MaxSize() uint64 { return m.Size(0) }

// first is the place of the first node of a partition among all.
func (m *Map) first(part int) uint64 {
	return uint64(part)*m.size + min(uint64(part), m.large)
}

// Place is the partition of a node and its row there.
func (m *Map) Place(v kv.NodeID) (part int, row uint64) {
	at := uint64(v)
	if m.spec.Random {
		at = m.perm.At(at)
	}
	if edge := m.large * (m.size + 1); at >= edge {
		return int(m.large + (at-edge)/m.size), (at - edge) % m.size
	}
	return int(at / (m.size + 1)), at % (m.size + 1)
}

// Node is the node in a row of a partition, the inverse of Place.
func (m *Map) Node(part int, row uint64) kv.NodeID {
	at := m.first(part) + row
	if m.spec.Random {
		at = m.perm.Inverse(at)
	}
	return kv.NodeID(at)
}
