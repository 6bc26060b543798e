package rowcache

import "gdb/layout"

// Policy decides which rows a cache holds. The cache has numbered slots, each with the row of one
// node; it looks nodes up and copies rows. The policy only says where a row goes, and so which row
// leaves. All calls come with the cache's lock held, one at a time, and must not block.
//
// For one gather the calls are Begin with all its nodes, Hits with the slots of those found, and
// Place for each row that was read, in the order of the nodes. If gathers run at the same time,
// calls of one may come between calls of another, but not between Begin and Hits. A policy that
// knows the future must be used by one gather at a time, and count Begin calls.
type Policy interface {
	// Name returns the name of the policy in statistics: static, sieve, ….
	Name() string
	// SlotBytes returns the memory that the policy takes for each slot.
	SlotBytes() int
	// Start is called once, before all else. held is the cache's record of the node in each slot,
	// valid only for slots that were used. Start returns the nodes to load first, to slots 0, 1, …:
	// at most len(held), each once; or nil.
	Start(held []layout.NodeID) []layout.NodeID
	// Begin starts a gather.
	Begin(nodes []layout.NodeID)
	// Hits tells the policy that the rows in these slots were asked for, in this order.
	Hits(slots []uint32)
	// Place returns the slot for the row of a node that the cache does not hold; the row in that
	// slot is evicted. A slot never used before must be the lowest of them. keep is false if the
	// row is not kept.
	Place(node layout.NodeID) (slot uint32, keep bool)
}
