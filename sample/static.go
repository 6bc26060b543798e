package sample

// static holds the hottest rows, from the start.
type static struct{ hot []NodeID }

// NewStatic returns the policy that loads the rows of the first nodes of hot, each given once, as
// many as there are slots, and keeps them. Package hotnodes makes such lists.
func NewStatic(hot []NodeID) Policy { return &static{hot: hot} }

// Name is "static".
func (s *static) Name() string { return "static" }

// SlotBytes is 0.
func (s *static) SlotBytes() int { return 0 }

// Start returns the hottest nodes, and forgets the list.
func (s *static) Start(held []NodeID) []NodeID {
	hot := s.hot[:min(len(held), len(s.hot))]
	s.hot = nil
	return hot
}

// Begin does nothing.
func (s *static) Begin([]NodeID) {}

// Hits does nothing.
func (s *static) Hits([]uint32) {}

// Place keeps no row.
func (s *static) Place(NodeID) (uint32, bool) { return 0, false }
