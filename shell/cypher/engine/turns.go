package engine

import (
	"context"
	"errors"
	"math"
	"slices"

	"gdb/internal/mem"
	"gdb/shell/cypher/adjacency"
)

// turns read the file of lists in order where each batch of rows would read most of it again: nodes
// other than the first take turns, in ranges whose lists fit in memory. The plan runs once for each
// choice of ranges, and each of its rows belongs to one choice.
type turns struct {
	nodes []turnNode
	runs  float64 // estimate
	done  int
}

// turnNode is a node of the pattern whose ranges take turns.
type turnNode struct {
	node int
	rels []*rel // that are followed from the node
	room int64  // for the lists of each
	// ring is a cycle of which it is the third node: the relationships are followed to it.
	ring *ring
}

// runs estimates how many ranges there are.
func (n *turnNode) runs() float64 {
	most := uint64(0)
	for _, r := range n.rels {
		most = max(most, r.outline.Entries)
	}
	return math.Ceil(float64(entryBytes*most) / float64(max(n.room, 1)))
}

const (
	// roomLeast is the memory of lists of a range below which it is not halved.
	roomLeast = 64 << 10
	// turnsMost is how many runs there may be.
	turnsMost = 256
	// listCost is how many entries are read in order in the time in which the list of one of many
	// rows is read.
	listCost = 100
	// entryBytes is the memory of an entry of lists of which ranges are read.
	entryBytes = 4
)

// takeTurns decides whether nodes take turns, by the lists that the plan would read otherwise.
func (pl *plan) takeTurns() {
	if !pl.reads || pl.p.in != nil || pl.p.shortest != nil {
		return
	}
	free := pl.src.Free()
	lists, entries := 0.0, 0.0
	t := &turns{runs: 1}
	add := func(r *rel, rows float64) {
		entries += float64(r.outline.Entries)
		if r.owner == pl.steps[0].node {
			return
		}
		lists += rows
		i := slices.IndexFunc(t.nodes, func(n turnNode) bool { return n.node == r.owner })
		if i < 0 {
			i, t.nodes = len(t.nodes), append(t.nodes, turnNode{node: r.owner})
		}
		t.nodes[i].rels = append(t.nodes[i].rels, r)
	}
	for k, s := range pl.steps {
		for _, r := range s.legs {
			add(r, pl.steps[k-1].rows)
		}
		for _, r := range s.reads() {
			add(r, s.rows)
		}
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		n.room = free / 4 / int64(len(t.nodes)*len(n.rels))
		t.runs *= n.runs()
	}
	if g := pl.ring(); g != nil { // which counts nothing without
		n := pl.ringTurns(g)
		t.nodes, t.runs = []turnNode{n}, n.runs()
	} else if len(t.nodes) == 0 || t.runs < 1 || t.runs > turnsMost ||
		t.runs*entries > listCost*lists {
		return
	}
	pl.turns = t
	each := len(pl.rels()) // whose lists are read for rows
	for _, n := range t.nodes {
		each -= len(n.rels)
	}
	pl.room = max(free/8/int64(max(pl.src.Threads(), 1)*max(each, 1)), 4<<10)
}

// reads returns the relationships whose lists the factors and conditions of a step want.
func (s *step) reads() (out []*rel) {
	for _, f := range s.factors {
		out = append(out, f.reads()...)
	}
	for _, c := range s.cross {
		if c.edge != nil {
			out = append(out, c.edge)
		}
	}
	return out
}

// each calls run for each choice of ranges, or once if no nodes take turns.
func (t *turns) each(ctx context.Context, pl *plan, run func() error) error {
	if t == nil {
		return run()
	}
	t.done = 0
	return t.from(ctx, pl, 0, run)
}

// from calls run for each choice of ranges of the nodes from the i-th on.
func (t *turns) from(ctx context.Context, pl *plan, i int, run func() error) error {
	if i == len(t.nodes) {
		err := run()
		t.done++
		return err
	}
	n := &t.nodes[i]
	of := pl.p.nodes[n.node]
	whole := of.set
	defer func() { of.set = whole }()
	bounds := whole.bounds()
	for first := bounds.From; first < bounds.End; {
		end, err := n.load(ctx, pl, Range{first, bounds.End})
		var short *mem.LimitError
		if errors.As(err, &short) && n.room > roomLeast { // numbers of parallel edges take as much
			n.room /= 2
			if err = n.drop(pl.src); err == nil {
				continue
			}
		}
		if err == nil {
			of.set = whole.and(Set{Ranges: []Range{{first, end}}})
			err = t.from(ctx, pl, i+1, run)
		}
		if drop := n.drop(pl.src); err == nil {
			err = drop
		}
		if err != nil {
			return err
		}
		first = end
	}
	return nil
}

// load reads the lists of the first nodes of a range, and returns where these end.
func (n *turnNode) load(ctx context.Context, pl *plan, of Range) (end uint32, err error) {
	if n.ring != nil {
		return n.loadRing(ctx, pl, of)
	}
	end = of.End
	for i, r := range n.rels {
		same := slices.IndexFunc(n.rels[:i], func(q *rel) bool {
			return q.side == r.side && slices.Equal(q.types, r.types)
		})
		if same >= 0 {
			r.turn = n.rels[same].turn
			continue
		}
		if r.turn, err = pl.src.ReadRange(ctx, r.want(), of, n.room); err != nil {
			return 0, err
		}
		end = min(end, r.turn.End)
	}
	return end, nil
}

// drop forgets the lists of a range.
func (n *turnNode) drop(src Source) error {
	bytes, seen := int64(0), []*adjacency.Lists{nil}
	for _, r := range n.rels {
		if !slices.Contains(seen, r.turn) {
			bytes += r.turn.Bytes()
			seen = append(seen, r.turn)
		}
		r.turn = nil
	}
	return src.Grow(-bytes)
}

// share returns about which share of all runs has been made, with a share of the present one.
func (t *turns) share(present float64) float64 {
	if t == nil {
		return present
	}
	done := float64(t.done) + present
	return done / math.Max(t.runs, math.Ceil(done))
}
