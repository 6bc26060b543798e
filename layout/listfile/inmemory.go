package listfile

import (
	"slices"

	"gdb/layout"
)

// HeldLists returns the lists of a level in memory, by its own numbers.
func HeldLists(h *layout.Held, dir layout.Direction) *Lists {
	e := &h.Edges
	own, nbr := e.Dst, e.Src
	if dir == layout.Out {
		own, nbr = nbr, own
	}
	order := make([]int, e.Len())
	l := &Lists{Off: make([]uint64, len(h.Of)+1)}
	at := func(v layout.NodeID) int {
		i, _ := slices.BinarySearch(h.Of, uint32(v))
		return i
	}
	for i := range order {
		order[i] = i
		l.Off[at(own[i])+1]++
	}
	for i := range h.Of {
		l.Off[i+1] += l.Off[i]
	}
	slices.SortStableFunc(order, func(i, j int) int {
		if own[i] != own[j] {
			return int(own[i]) - int(own[j])
		}
		return int(nbr[i]) - int(nbr[j])
	})
	for _, i := range order {
		l.Nbrs = append(l.Nbrs, layout.NodeID(at(nbr[i])))
		if e.Types != nil {
			l.Types = append(l.Types, e.Types[i])
		}
		if e.Weights != nil {
			l.Weights = append(l.Weights, e.Weights[i])
		}
		if e.Times != nil {
			l.Times = append(l.Times, e.Times[i])
		}
	}
	return l
}
