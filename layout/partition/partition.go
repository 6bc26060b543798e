// Package partition deals the nodes of a graph to physical partitions of equal size, as training
// with a partition buffer needs them (Waleffe et al., "Marius++", section 5.1). A partition is an
// ordered set of nodes: each node is row R of partition P. This is not stored but computed from a
// few numbers, in both directions. Buckets are the train edges on disk, grouped by the partitions
// of their two nodes.
//
// A Buffer has some partitions in memory, of whatever is kept by partition: it reads those of the
// next set ahead and writes back those that changed. It serves trainings of nodes, whose features
// it only reads, and of links, whose vectors change.
//
// An Order says which partitions are in memory, one set after the other, and which edge buckets are
// trained on while a set is: the replacement and selection policies of training out of core. It
// is arithmetic over small numbers and reads nothing. The policies come from Mohoney et al.,
// "Marius: Learning Massive Graph Embeddings on a Single Machine" (BETA, where the buckets of a set
// are trained as soon as both partitions are in memory), and from Waleffe et al., "Marius++",
// section 5 (Two-Level BETA for links; Dispersed and Sequential for nodes).
package partition

import (
	"fmt"

	"gdb/internal/rng"
	"gdb/kv"
)

// Most is the largest number of partitions. Its square is the number of edge buckets, whose places
// take 8 bytes of memory each.
const Most = 4096

// Bucket names the edges from one partition to another.
type Bucket struct{ From, To uint16 }

const _ uint16 = Most // the number of a partition fits in a Bucket

// Spec says how nodes are dealt to partitions.
type Spec struct {
	Nodes uint64
	Parts int
	// Random deals nodes at random, by Seed. Otherwise a partition is a range of nodes.
	Random bool
	Seed   uint64
}

// Map is a partitioning. It is a value; any goroutine may call its methods.
type Map struct {
	spec  Spec
	perm  rng.Permutation
	size  uint64 // number of nodes of the smaller partitions
	large uint64 // number of partitions with one node more, which are the first ones
}

// New returns the partitioning of a spec, which must have at least as many nodes as partitions.
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

// Spec returns what the partitioning was made from.
func (m *Map) Spec() Spec { return m.spec }

// Parts returns the number of partitions.
func (m *Map) Parts() int { return m.spec.Parts }

// Size returns the number of nodes of a partition. Sizes differ by at most one.
func (m *Map) Size(part int) uint64 {
	if uint64(part) < m.large {
		return m.size + 1
	}
	return m.size
}

// MaxSize returns the number of nodes of the largest partition.
func (m *Map) MaxSize() uint64 { return m.Size(0) }

// first returns the place of the first node of a partition among all nodes.
func (m *Map) first(part int) uint64 {
	return uint64(part)*m.size + min(uint64(part), m.large)
}

// Place returns the partition of a node and its row there.
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

// Node returns the node in a row of a partition; it is the inverse of Place.
func (m *Map) Node(part int, row uint64) kv.NodeID {
	at := m.first(part) + row
	if m.spec.Random {
		at = m.perm.Inverse(at)
	}
	return kv.NodeID(at)
}
