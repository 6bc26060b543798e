package adjacency

import (
	"context"
	"errors"
	"slices"

	"gdb/internal/pace"
	"gdb/layout"
)

// TurnSome returns lists of the other direction, of the nodes that are neighbors in l, which are
// less than end. It takes 4 bytes an entry and a list, 12 for 64 nodes, and O(nodes + entries). The
// lists say nothing of types and numbers, and have no outline.
func TurnSome(ctx context.Context, l *Lists, end uint32, grow func(int64) error) (t *Lists,
	err error) {
	t = &Lists{ranked: layout.RankWords(uint64(end))}
	if err := grow(t.Bytes()); err != nil {
		return nil, err
	}
	t.ranks = layout.NewRanks(make([]uint64, t.ranked), make([]uint32, t.ranked))
	defer func(made *Lists) {
		if err != nil {
			err = errors.Join(err, grow(-made.Bytes()))
		}
	}(t)
	all := l.Nbr[l.Off[0]:l.Off[len(l.Off)-1]]
	for part := range slices.Chunk(all, pace.Every) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t.ranks.Add(part)
	}
	lists := t.ranks.Number()
	if err := grow(4 * (int64(lists) + 1 + int64(len(all)))); err != nil {
		return nil, err
	}
	t.Off, t.Nbr = make([]uint32, lists+1), make([]uint32, len(all))
	if err := t.turn(ctx, l); err != nil {
		return nil, err
	}
	return t, nil
}

// turn fills in the entries of l, once there is room for them.
func (t *Lists) turn(ctx context.Context, l *Lists) error {
	for _, u := range l.Nbr[l.Off[0]:l.Off[len(l.Off)-1]] {
		i, _ := t.ranks.Rank(layout.NodeID(u))
		t.Off[i]++
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	t.begin()
	var steps pace.Steps
	for i := range len(l.Off) - 1 {
		lo, hi := l.Off[i], l.Off[i+1]
		for _, u := range l.Nbr[lo:hi] {
			k, _ := t.ranks.Rank(layout.NodeID(u))
			t.Nbr[t.Off[k]] = l.owner(i)
			t.Off[k]++
		}
		if err := steps.Took(ctx, 1+int(hi-lo)); err != nil {
			return err
		}
	}
	t.begun()
	return nil
}

// begin makes of the lengths of lists where they begin.
func (l *Lists) begin() {
	sum := uint32(0)
	for i, n := range l.Off {
		l.Off[i] = sum
		sum += n
	}
}

// begun makes of where the lists end, once they are filled in, where they begin.
func (l *Lists) begun() {
	copy(l.Off[1:], l.Off[:len(l.Off)-1])
	l.Off[0] = 0
}
