package partitioner

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/listfile"
)

// Score is what nodes are ranked by.
type Score string

// The scores.
const (
	// Influence is where lazy walks end that begin at training nodes and go to in-neighbors: a step
	// goes to one of them, or stays, all with equal chance. It is how much the features of a node
	// tell of the outputs of training nodes ("Hanoi", Eq. 4.1).
	Influence Score = "influence"
	// PageRank is where such walks are that begin anywhere, and begin anew with a chance of .15 at
	// each step.
	PageRank Score = "pagerank"
	// Degree is how many lists a node is in.
	Degree Score = "degree"
)

// Scores lists them.
var Scores = []Score{Influence, PageRank, Degree}

const (
	pageRankPasses = 10
	damping        = .85
)

// Hub is a node, and how many entries its list has.
type Hub struct {
	Node    kv.NodeID
	Entries uint32
}

// HubOptions say which nodes are hubs.
type HubOptions struct {
	By    Score
	Train []kv.NodeID // where walks of Influence begin
	Steps int         // of these walks: the layers of a model
	Count int         // of hubs at most
	// Budget counts the memory; nil counts none.
	Budget *mem.Budget
}

// HubBytes is the memory of Hubs per node of the graph.
const HubBytes = 12

// Hubs returns the nodes of the highest scores, from the highest on; of equal ones the least comes
// first. Nodes of score 0 are left out. It reads the lists Steps times with Influence, ten
// times with PageRank, and once with Degree. It takes HubBytes of memory per node of the graph, 8
// per hub, and 4 per entry of the longest list.
func Hubs(ctx context.Context, g *Graph, o HubOptions) (top []Hub, err error) {
	a, err := mem.NewArena(o.Budget, "scores of nodes", HubBytes*int64(g.Nodes))
	if err != nil {
		return nil, fmt.Errorf("partitioner: %w", err)
	}
	defer func() { err = errors.Join(err, a.Free()) }()
	n := 4 * g.Nodes
	w := &walk{now: mem.View[float32](a.Bytes()[:n]), next: mem.View[float32](a.Bytes()[n : 2*n]),
		entries: mem.View[uint32](a.Bytes()[2*n : 3*n])}
	steps := o.Steps
	switch o.By {
	case Influence:
		for _, v := range o.Train {
			w.now[v] = 1
		}
		w.spread = w.lazy
	case PageRank:
		for v := range w.now {
			w.now[v] = 1
		}
		steps, w.spread, w.rest = pageRankPasses, w.damped, 1-damping
	case Degree:
		steps, w.spread = 1, w.count
	default:
		return nil, fmt.Errorf("%w: there is no score %q: want one of %v", ErrOptions, o.By,
			Scores)
	}
	for range steps {
		if err := w.step(ctx, g); err != nil {
			return nil, fmt.Errorf("partitioner: score nodes: %w", err)
		}
	}
	return w.top(o.Count), nil
}

// walk has the chance of each node now, and after the next step.
type walk struct {
	now, next []float32
	rest      float32  // what each node has whatever comes to it
	entries   []uint32 // of the list of each node
	spread    func(v kv.NodeID, nbrs []kv.NodeID)
}

// step goes through all lists once.
func (w *walk) step(ctx context.Context, g *Graph) error {
	for v := range w.next {
		w.next[v] = w.rest
	}
	var open []kv.NodeID // the last list so far, which may go on
	last, has := kv.NodeID(0), false
	spread := func(nbrs []kv.NodeID) {
		w.entries[last] = uint32(len(nbrs))
		w.spread(last, nbrs)
		has = false
	}
	err := g.Scan(ctx, func(first kv.NodeID, cont bool, l *listfile.Lists) error {
		for i := range len(l.Off) - 1 {
			if i > 0 || !cont {
				if has {
					spread(open)
				}
				open, last, has = open[:0], first+kv.NodeID(i), true
			}
			nbrs := l.Nbrs[l.Off[i]:l.Off[i+1]]
			if i > 0 && i < len(l.Off)-2 { // it is whole
				spread(nbrs)
				continue
			}
			open = append(open, nbrs...)
		}
		return ctx.Err()
	})
	if has {
		spread(open)
	}
	w.now, w.next = w.next, w.now
	return err
}

// lazy gives equal parts to the in-neighbors of a node and to itself.
func (w *walk) lazy(v kv.NodeID, nbrs []kv.NodeID) {
	if w.now[v] == 0 {
		return
	}
	each := w.now[v] / float32(len(nbrs)+1)
	w.next[v] += each
	for _, u := range nbrs {
		w.next[u] += each
	}
}

// damped gives equal parts to the in-neighbors of a node, of what does not begin anew.
func (w *walk) damped(v kv.NodeID, nbrs []kv.NodeID) {
	each := damping * w.now[v] / float32(max(1, len(nbrs)))
	for _, u := range nbrs {
		w.next[u] += each
	}
}

// count counts the lists that a node is in.
func (w *walk) count(_ kv.NodeID, nbrs []kv.NodeID) {
	for _, u := range nbrs {
		w.next[u]++
	}
}

// top returns the nodes that have most.
func (w *walk) top(count int) []Hub {
	h := &best{}
	for v, score := range w.now {
		s := scored{score, kv.NodeID(v)}
		switch {
		case score == 0 || count == 0:
		case h.Len() < count:
			heap.Push(h, s)
		case s.above((*h)[0]):
			(*h)[0] = s
			heap.Fix(h, 0)
		}
	}
	slices.SortFunc(*h, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.node, b.node))
	})
	out := make([]Hub, h.Len())
	for i, s := range *h {
		out[i] = Hub{s.node, w.entries[s.node]}
	}
	return out
}

// scored is a node and its score.
type scored struct {
	score float32
	node  kv.NodeID
}

// above says whether a node is taken before another.
func (s scored) above(o scored) bool {
	return s.score > o.score || s.score == o.score && s.node < o.node
}

// best is a heap with the last of the best nodes on top.
type best []scored

func (b best) Len() int           { return len(b) }
func (b best) Less(i, j int) bool { return b[j].above(b[i]) }
func (b best) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }

// Push adds a node: see heap.Interface.
func (b *best) Push(x any) { *b = append(*b, x.(scored)) }

// Pop takes the last node: see heap.Interface.
func (b *best) Pop() any {
	last := (*b)[len(*b)-1]
	*b = (*b)[:len(*b)-1]
	return last
}
