package backend

import "gdb/internal/dense"

const (
	// AllNeighbors, as the fanout of a hop, takes whole lists.
	AllNeighbors = -1
	// FanoutMost is the largest fanout, besides AllNeighbors, of draws on a device, where one
	// thread compares each position that it draws with those before.
	FanoutMost = 1024
	// DrawHopsMost bounds the hops of draws on a device.
	DrawHopsMost = 64
)

// Neighbors are the lists of a graph's nodes in one direction, for a device to copy.
type Neighbors struct {
	Nodes, Entries uint64 // Entries is the most that there are
	// Wide says that offsets of lists take 64 bits, as 2^32 entries or more need.
	Wide bool
	// Each calls degrees with the lengths of all lists, and entries with all entries, both in parts
	// and in order. Entries are below Nodes.
	Each func(degrees, entries func(part []uint32) error) error
}

// NeighborsOf returns lists without what reads them.
func NeighborsOf(nodes, entries uint64) Neighbors {
	return Neighbors{Nodes: nodes, Entries: entries, Wide: entries >= 1<<32}
}

// Bytes returns the memory that a device takes for the lists: 4 bytes for each entry, and 4 or 8
// for each node.
func (n *Neighbors) Bytes() int64 {
	width := int64(4)
	if n.Wide {
		width = 8
	}
	return width*int64(n.Nodes+1) + 4*int64(n.Entries)
}

// DrawConfig says which samples a device draws.
type DrawConfig struct {
	// Fanout is how many neighbors of a node are drawn at each hop, the hop next to the seeds
	// first: AllNeighbors, or at most FanoutMost.
	Fanout []int
	// Degrees asks for the lengths of the lists of all nodes of a sample.
	Degrees bool
	// Seeds, Nodes and Edges are the most that a sample may have.
	Seeds, Nodes, Edges int
}

// SlotsLog returns the base 2 logarithm of how many places the table of a sample's nodes has: at
// least twice as many as nodes.
func (c *DrawConfig) SlotsLog() (log int) {
	for log = 10; 1<<log < 2*c.Nodes; log++ {
	}
	return log
}

// Bytes returns about how much memory a device takes to draw a sample, and the host to receive it.
func (c *DrawConfig) Bytes() (device, host int64) {
	nodes, edges := int64(c.Nodes), int64(c.Edges)
	received := 4 * (int64(c.Seeds) + 3*nodes + 2*edges)
	const rest = 16 << 10 // state, tiles, alignment
	return received + 4*(3*nodes+2*edges) + 8<<c.SlotsLog() + max(nodes, edges)/128 + rest,
		received + rest
}

// Sample is what was drawn: lists, the nodes, and the neighbors parallel to ReprMap. All lie in
// memory that is valid until the next Draw.
type Sample struct {
	dense.Lists
	Nodes, Neighbors []uint32
}

// NeighborLists are lists in a device's memory.
type NeighborLists interface {
	// Drawer returns what draws samples from the lists.
	Drawer(c DrawConfig) (NeighborDrawer, error)
	// Close frees the memory, after all drawers were closed.
	Close() error
}

// NeighborDrawer draws samples on a device, one at a time, as package sample does, bit for bit. Any
// goroutine may use it, beside the operations of steps.
type NeighborDrawer interface {
	// Draw draws the neighborhood of seeds, which are nodes of the graph, with the key of each hop.
	// drawn is false if a sample is larger than it may be, or a seed is given twice; what is to be
	// said of that says who draws on the host.
	Draw(keys []uint64, seeds []uint32) (s Sample, drawn bool, err error)
	// Close frees the memory of samples.
	Close() error
}
