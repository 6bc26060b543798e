package adjacency

import (
	"context"
	"errors"
	"math/bits"
	"slices"

	"gdb/internal/pace"
)

// ranks numbers some nodes, in order. It takes 16 bytes for 64 nodes.
type ranks struct {
	first uint32
	words []rankWord
}

type rankWord struct {
	bits   uint64
	before uint32 // how many nodes are in the words before
}

func newRanks(first, end uint32) ranks {
	return ranks{first: first, words: make([]rankWord, (end-first+63)/64)}
}

func (r *ranks) add(v uint32) {
	i := v - r.first
	r.words[i>>6].bits |= 1 << (i & 63)
}

// count numbers the nodes that have been added, and returns how many they are.
func (r *ranks) count() (n uint32) {
	for i := range r.words {
		r.words[i].before = n
		n += uint32(bits.OnesCount64(r.words[i].bits))
	}
	return n
}

// of returns the number of a node; false, and any number, if it has none.
func (r *ranks) of(v uint32) (uint32, bool) {
	i := v - r.first
	if i>>6 >= uint32(len(r.words)) {
		return 0, false
	}
	w := &r.words[i>>6]
	bit := uint64(1) << (i & 63)
	return w.before + uint32(bits.OnesCount64(w.bits&(bit-1))), w.bits&bit != 0
}

// TurnSome returns lists of the other direction, of the nodes first … end-1 that are neighbors in
// l. It takes 4 bytes an entry and a list, and 16 for 64 nodes, and O(nodes + entries).
// The lists say nothing of types and numbers, and have no outline.
func TurnSome(ctx context.Context, l *Lists, first, end uint32, grow func(int64) error) (t *Lists,
	err error) {
	t = &Lists{ranks: newRanks(first, end)}
	if err := grow(t.Bytes()); err != nil {
		return nil, err
	}
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
		for _, u := range part {
			t.ranks.add(u)
		}
	}
	lists := t.ranks.count()
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
		i, _ := t.ranks.of(u)
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
			k, _ := t.ranks.of(u)
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
