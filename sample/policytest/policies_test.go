package policytest

import (
	"slices"
	"testing"

	"gdb/sample"
)

// plainLRU is a list of nodes, the most recent last.
type plainLRU struct {
	slots int
	held  []sample.NodeID
}

func (l *plainLRU) Gather(nodes []sample.NodeID) (hits []sample.NodeID) {
	for _, v := range nodes {
		if i := slices.Index(l.held, v); i >= 0 {
			hits = append(hits, v)
			l.held = append(slices.Delete(l.held, i, i+1), v)
		}
	}
	for _, v := range nodes {
		if slices.Contains(hits, v) {
			continue
		}
		if len(l.held) == l.slots {
			l.held = l.held[1:]
		}
		l.held = append(l.held, v)
	}
	return hits
}

func TestLRU(t *testing.T) {
	Run(t, sample.NewLRU, func(slots int) Twin { return &plainLRU{slots: slots} })
}

// hot is every third node.
func hot() (out []sample.NodeID) {
	for v := sample.NodeID(0); v < 300; v += 3 {
		out = append(out, v)
	}
	return out
}

type plainStatic []sample.NodeID

func (s plainStatic) Gather(nodes []sample.NodeID) (hits []sample.NodeID) {
	for _, v := range nodes {
		if slices.Contains(s, v) {
			hits = append(hits, v)
		}
	}
	return hits
}

func TestStatic(t *testing.T) {
	Run(t, func() sample.Policy { return sample.NewStatic(hot()) },
		func(slots int) Twin { return plainStatic(hot()[:slots]) })
}
