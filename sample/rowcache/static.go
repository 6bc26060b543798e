package rowcache

import "gdb/layout"

import "context"

// Static are Features of which some rows are in memory from the start, and no others ever.
type Static interface {
	Features
	// Filled waits until these rows are in memory.
	Filled(ctx context.Context) error
	// Absent appends the nodes whose rows are not kept to a list, once these are filled.
	Absent(nodes, to []layout.NodeID) []layout.NodeID
}

// Filled waits for the rows that are loaded in the background.
func (f *cached) Filled(ctx context.Context) error {
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

// Absent appends the nodes whose rows have no slot.
func (f *cached) Absent(nodes, to []layout.NodeID) []layout.NodeID {
	f.content.RLock() // so slots do not change hands; none is filled any more
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

// NewStatic returns the policy that loads the rows of the first nodes of hot, each given once, as
// many as there are slots, and keeps them. FindHot makes such lists.
func NewStatic(hot []layout.NodeID) Policy { return &static{hot: hot} }

// Name is "static".
func (s *static) Name() string { return "static" }

// SlotBytes is 0.
func (s *static) SlotBytes() int { return 0 }

// Start returns the hottest nodes, and forgets the list.
func (s *static) Start(held []layout.NodeID) []layout.NodeID {
	hot := s.hot[:min(len(held), len(s.hot))]
	s.hot = nil
	return hot
}

// Begin does nothing.
func (s *static) Begin([]layout.NodeID) {}

// Hits does nothing.
func (s *static) Hits([]uint32) {}

// Place keeps no row.
func (s *static) Place(layout.NodeID) (uint32, bool) { return 0, false }
