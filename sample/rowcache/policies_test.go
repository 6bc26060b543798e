package rowcache_test

import (
	"slices"
	"testing"

	"gdb/layout"
	"gdb/sample/rowcache"
	"gdb/sample/rowcache/policytest"
)

// hot is every third node.
func hot() (out []layout.NodeID) {
	for v := layout.NodeID(0); v < 300; v += 3 {
		out = append(out, v)
	}
	return out
}

type plainStatic []layout.NodeID

func (s plainStatic) Holds(v layout.NodeID) bool { return slices.Contains(s, v) }
func (s plainStatic) Hit(layout.NodeID)          {}
func (s plainStatic) Place(layout.NodeID)        {}

func TestStatic(t *testing.T) {
	policytest.Run(t, func() rowcache.Policy { return rowcache.NewStatic(hot()) },
		func(slots int) policytest.Twin { return plainStatic(hot()[:min(slots, len(hot()))]) })
}

// plainSIEVE is a queue, the newest last, and the node that the hand points at, or none.
type plainSIEVE struct {
	slots int
	queue []layout.NodeID
	asked map[layout.NodeID]bool
	hand  *layout.NodeID
}

func (s *plainSIEVE) Holds(v layout.NodeID) bool { return slices.Contains(s.queue, v) }
func (s *plainSIEVE) Hit(v layout.NodeID)        { s.asked[v] = true }

func (s *plainSIEVE) Place(v layout.NodeID) {
	if len(s.queue) == s.slots {
		i := 0
		if s.hand != nil {
			i = slices.Index(s.queue, *s.hand)
		}
		for s.asked[s.queue[i]] {
			delete(s.asked, s.queue[i])
			i = (i + 1) % len(s.queue)
		}
		s.queue, s.hand = slices.Delete(s.queue, i, i+1), nil
		if i < len(s.queue) {
			next := s.queue[i]
			s.hand = &next
		}
	}
	s.queue = append(s.queue, v)
}

func TestSIEVE(t *testing.T) {
	policytest.Run(t, rowcache.NewSIEVE, func(slots int) policytest.Twin {
		return &plainSIEVE{slots: slots, asked: map[layout.NodeID]bool{}}
	})
}
