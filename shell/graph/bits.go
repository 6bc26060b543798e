package graph

import (
	"gdb/internal/mem"
	"gdb/layout"

	"github.com/RoaringBitmap/roaring/v2"
)

// Bits is a set of nodes as a roaring bitmap, counted in a budget. It takes at most an eighth of a
// byte for each node of the graph. The owner calls Free.
type Bits struct {
	*roaring.Bitmap
	budget *mem.Budget
	held   int64
}

// NewBits returns an empty set that is counted in budget.
func NewBits(budget *mem.Budget) *Bits {
	return &Bits{Bitmap: roaring.New(), budget: budget}
}

// Add adds nodes in any order.
func (s *Bits) Add(nodes []layout.NodeID) error {
	s.AddMany(numbers(nodes))
	return s.count()
}

// Union adds the nodes of o.
func (s *Bits) Union(o *Bits) error {
	s.Or(o.Bitmap)
	return s.count()
}

// count brings the reservation in the budget up to date.
func (s *Bits) count() error {
	n := int64(s.GetSizeInBytes())
	if n > s.held {
		if err := s.budget.Reserve("sets of nodes", n-s.held); err != nil {
			return err
		}
	} else {
		s.budget.Release(s.held - n)
	}
	s.held = n
	return nil
}

// Free empties the set and gives its memory back.
func (s *Bits) Free() {
	s.budget.Release(s.held)
	s.held, s.Bitmap = 0, roaring.New()
}

// Each calls fn with the nodes in ascending order, nodeBatch at a time, until it returns false.
func (s *Bits) Each(fn func(nodes []layout.NodeID) (bool, error)) error {
	buf := make([]layout.NodeID, NodeBatch)
	for it := s.ManyIterator(); ; {
		n := it.NextMany(numbers(buf))
		if n == 0 {
			return nil
		}
		if more, err := fn(buf[:n]); err != nil || !more {
			return err
		}
	}
}
