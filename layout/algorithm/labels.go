package algorithm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/internal/rng"
)

// labelRounds bounds the rounds of label propagation: a few do, and where it does not end, labels
// that change for ever are few.
const labelRounds = 100

// Labels returns the community of each node of the undirected simple graph by label propagation
// (Raghavan, Albert and Kumara, Phys. Rev. E 76, 2007): node by node in their order, each takes
// the label that most of its neighbors have, of several its own, or else one that is drawn,
// until none changes. Draws are a function of node and label. Communities are numbered from 0 in
// the order of their first nodes. It takes 8 bytes a node, the lists of a range of nodes, or of
// all where they fit, and works on one thread, since each node sees what those before it took.
func Labels(ctx context.Context, g *Graph) (c *Column, err error) {
	a, arrays, err := g.arrays("labels", 2)
	if err != nil {
		return nil, err
	}
	labels := arrays[0]
	for v := range labels {
		labels[v] = uint32(v)
	}
	near, err := g.neighborhoods(ctx, arrays[1])
	rounds, changed := 0, true
	var around []uint32
	for ; changed && rounds < labelRounds && err == nil; rounds++ {
		changed = false
		err = near.each(ctx, 1, nil, func(_ int, v uint32, nbrs []uint32) error {
			around = around[:0]
			for _, u := range nbrs {
				around = append(around, labels[u])
			}
			if l := commonest(around, labels[v], v); l != labels[v] {
				labels[v], changed = l, true
			}
			return nil
		})
	}
	if err = errors.Join(err, near.close()); err != nil {
		return failed(a, err)
	}
	count := g.firsts(labels, arrays[1])
	note := fmt.Sprintf("communities: %d, rounds: %d", count, rounds)
	if changed {
		note += ", and some labels still change"
	}
	return &Column{Ints: labels, arena: a, Note: note}, nil
}

// commonest returns the label that stands most often around v in labels, which it sorts: own if
// that is one of these, or if there are none, and else one that is drawn.
func commonest(labels []uint32, own, v uint32) uint32 {
	slices.Sort(labels)
	best, most, lot := own, 0, uint64(0)
	for i := 0; i < len(labels); {
		end := i + 1
		for end < len(labels) && labels[end] == labels[i] {
			end++
		}
		if n := end - i; n >= most {
			draw := rng.Sub(uint64(v), uint64(labels[i]))
			if labels[i] == own {
				draw = math.MaxUint64
			}
			if n > most || draw > lot {
				best, most, lot = labels[i], n, draw
			}
		}
		i = end
	}
	return best
}

// firsts replaces labels, which are numbers of nodes, by numbers in the order in which they come
// first, and returns how many there are. Those of deleted nodes are not counted. It writes to
// numbers.
func (g *Graph) firsts(labels, numbers []uint32) (count uint32) {
	clear(numbers)
	for v, l := range labels {
		if g.isDeleted(v) {
			labels[v] = unreached
			continue
		}
		if numbers[l] == 0 {
			count++
			numbers[l] = count
		}
		labels[v] = numbers[l] - 1
	}
	return count
}
