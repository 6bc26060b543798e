package runs

import (
	"context"
	"slices"

	"gdb/layout"
)

// Shifts returns where the nodes that the run learned vectors of are in the store; nil if they have
// their numbers still.
func (r Dir) Shifts(ctx context.Context, s *layout.Store) ([]layout.Shift, error) {
	f, err := r.File()
	if err == nil {
		err = r.HasNodes()
	}
	if err != nil || f.Snapshot >= r.numbered {
		return nil, err
	}
	return s.ShiftsSince(ctx, f.Snapshot)
}

// Spread moves rows, of which each node has one of some width, from the numbers that nodes had to
// those that they have now. draw fills the rows of nodes that came between them.
func Spread(rows []float32, width int, shifts []layout.Shift,
	draw func(row []float32, node uint64)) {
	of := func(first, n uint64) []float32 { return rows[first*uint64(width):][:n*uint64(width)] }
	for _, s := range slices.Backward(shifts) { // no number is smaller than it was
		copy(of(s.Now, s.Nodes), of(s.Was, s.Nodes))
	}
	next := uint64(0)
	for _, s := range shifts {
		for ; next < s.Now; next++ {
			draw(of(next, 1), next)
		}
		next += s.Nodes
	}
}
