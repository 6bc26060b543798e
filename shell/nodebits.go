package shell

import (
	"gdb/internal/mem"
	"gdb/layout"

	"github.com/RoaringBitmap/roaring/v2"
)

// nodeBits is a set of nodes as a roaring bitmap, counted in a budget: an eighth of a byte for each
// node of the graph at most, whatever its size. The owner calls free.
type nodeBits struct {
	*roaring.Bitmap
	budget *mem.Budget
	held   int64
}

func newNodeBits(budget *mem.Budget) *nodeBits {
	return &nodeBits{Bitmap: roaring.New(), budget: budget}
}

// add adds nodes, in any order.
func (s *nodeBits) add(nodes []layout.NodeID) error {
	s.AddMany(numbers(nodes))
	return s.count()
}

// union adds the nodes of o.
func (s *nodeBits) union(o *nodeBits) error {
	s.Or(o.Bitmap)
	return s.count()
}

// count brings the budget up to date.
func (s *nodeBits) count() error {
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

func (s *nodeBits) free() {
	s.budget.Release(s.held)
	s.held, s.Bitmap = 0, roaring.New()
}

// each calls fn with the nodes in ascending order, nodeBatch at a time, until it returns false.
func (s *nodeBits) each(fn func(nodes []layout.NodeID) (bool, error)) error {
	buf := make([]layout.NodeID, nodeBatch)
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
