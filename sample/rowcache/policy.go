package rowcache

import "gdb/layout"

import (
	"fmt"
	"slices"
	"strings"
)

// Policy decides which rows a cache holds. The cache has numbered slots, each holding the row of
// one node; it looks nodes up and copies rows, the policy only says where a row goes, and by that
// which row leaves. All calls come with the cache's lock held, one at a time, and must not block.
//
// For one gather the calls are Begin with all its nodes, Hits with the slots of those found, and
// Place for each row that was read, in the order of the nodes. If gathers run at the same time,
// the calls of one may stand between those of another, but for Begin and Hits. A policy that
// knows the future takes gathers one at a time and counts Begin calls.
type Policy interface {
	// Name is how the policy is called in statistics: static, lru, ….
	Name() string
	// SlotBytes is the memory that the policy takes for each slot.
	SlotBytes() int
	// Start is called once, before all else. held is the cache's record of what each slot holds,
	// only valid for slots that were used. Start returns the nodes to load first, to slots 0, 1,
	// …: at most len(held), each once; or nil.
	Start(held []layout.NodeID) []layout.NodeID
	// Begin starts a gather.
	Begin(nodes []layout.NodeID)
	// Hits says that the rows in these slots were asked for, in this order.
	Hits(slots []uint32)
	// Place returns the slot to which the row of a node goes that the cache does not hold; the
	// row that was there is evicted. A slot never used before must be the lowest of them. keep is
	// false if the row is not kept.
	Place(node layout.NodeID) (slot uint32, keep bool)
}

// policies make the policies that need to know nothing beforehand.
var policies = []func() Policy{NewLRU, NewCLOCK, NewS3FIFO, NewSIEVE}

// PolicyNames are the names that NewPolicy knows.
func PolicyNames() (names []string) {
	for _, make := range policies {
		names = append(names, make().Name())
	}
	return names
}

// NewPolicy returns the policy of that name.
func NewPolicy(name string) (Policy, error) {
	i := slices.Index(PolicyNames(), name)
	if i < 0 {
		return nil, fmt.Errorf("sample: unknown cache policy %q: known are %s", name,
			strings.Join(PolicyNames(), ", "))
	}
	return policies[i](), nil
}
