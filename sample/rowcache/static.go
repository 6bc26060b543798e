package rowcache

import (
	"context"

	"gdb/layout"
)

// Filled waits for rows that are loaded in the background, and returns the error of loading them.
func (f *Cache) Filled(ctx context.Context) error {
	if f.background == nil {
		return ctx.Err()
	}
	select {
	case <-f.background.done:
		return f.background.failed()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Absent appends those of nodes whose rows have no slot to the list to. The policy must be static,
// and Filled must have returned.
func (f *Cache) Absent(nodes, to []layout.NodeID) []layout.NodeID {
	f.content.RLock() // so slots keep their rows; none is pending any more
	defer f.content.RUnlock()
	for _, v := range nodes {
		if _, ok := f.mu.index.Find(v); !ok {
			to = append(to, v)
		}
	}
	return to
}

// static holds the hottest rows, from the start.
type static struct{ hot []layout.NodeID }

// NewStatic returns the policy that loads the rows of the first nodes of hot, as many as there are
// slots, and keeps them. Each node may stand in hot once. FindHot makes such lists.
func NewStatic(hot []layout.NodeID) Policy { return &static{hot: hot} }

// Name returns "static".
func (s *static) Name() string { return "static" }

// SlotBytes returns 0, since the policy keeps nothing per slot.
func (s *static) SlotBytes() int { return 0 }

// Start returns the hottest nodes, and forgets the list.
func (s *static) Start(held []layout.NodeID) []layout.NodeID {
	hot := s.hot[:min(len(held), len(s.hot))]
	s.hot = nil
	return hot
}

// Begin does nothing.
func (s *static) Begin([]layout.NodeID) {}

// Hits does nothing, since no row leaves.
func (s *static) Hits([]uint32) {}

// Place keeps no row.
func (s *static) Place(layout.NodeID) (uint32, bool) { return 0, false }
