package exact

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/compute/kernel/bf16"
	"gdb/kv"
	"gdb/layout/listfile"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/loader"

	"github.com/RoaringBitmap/roaring/v2"
)

// Unseen are nodes that the graph does not have. Their lists may name nodes of the graph and each
// other; no list of the graph names them. Unseen node i is called Nodes+i, with the number of nodes
// of the graph.
type Unseen struct {
	// Rows are the inputs of the model, (nodes, width), as Inference.Source reads them: packed
	// where it packs rows.
	Rows []float32
	// Lists holds the in-neighbors of each.
	Lists [][]sample.NodeID
}

// CheckUnseen returns an error if a model reads of the graph what unseen nodes do not have.
func CheckUnseen(f *Inference) error {
	x := f.Model.Spec().Extras()
	switch s := f.Model.Spec(); {
	case s.SampledOnly():
		return errors.New("it reads columns of edges")
	case f.Vectors != nil:
		return errors.New("it reads vectors that are learned for each node")
	case x.EdgeTypes:
		return errors.New("it reads the types of edges")
	case x.EdgeWeights || x.WeightSums:
		return errors.New("it reads the weights of edges")
	case len(f.Source.Meta.NodeTypes) > 0:
		return errors.New("nodes of the store have types")
	case f.Source.Rows == nil:
		return errors.New("the store has no features")
	}
	return nil
}

// RunUnseen computes the logits of unseen nodes, (nodes, outputs). They are to the bit those of a
// graph that has the nodes as its last ones. states are the hidden states of all nodes of the
// graph, as Hidden was given them. Only nodes that lists name are read.
func (f *Inference) RunUnseen(ctx context.Context, u *Unseen, states []*Table) (logits []float32,
	err error) {
	s := newSmallGraph(f.Source, u)
	run := *f
	run.Source = &loader.Source{Store: f.Source.Store, Device: f.Source.Device,
		Budget: f.Source.Budget, Topology: s,
		Meta: &kv.Meta{UUID: f.Source.Meta.UUID, Nodes: s.Nodes()}}
	run.lists = newLists(s, run.Source.Budget)
	defer run.lists.close()
	run.lists.limit = run.limit()
	run.want = roaring.New()
	run.want.AddRange(uint64(len(s.known)), s.Nodes())
	own := u.Rows // what the layer before gives for the unseen nodes
	for i := range len(f.Model.Dims()) - 1 {
		from := f.featuresAsKept()
		if i > 0 {
			from = states[i-1]
		}
		src, err := s.join(ctx, from, own)
		if err != nil {
			return nil, fmt.Errorf("exact: read the neighbors of new nodes for layer %d: %w", i+1,
				err)
		}
		if r := f.Source.Rows; i == 0 && r != nil && r.Packed() {
			src = &packedTable{table: src, width: r.Width()}
		}
		run.sets = make([]*sample.NodeSet, i+1) // the layer is the last: the wanted nodes alone
		own = own[:0:0]
		err = run.layer(ctx, i, src, func(_ []sample.NodeID, rows []float32) error {
			own = append(own, rows...)
			return nil
		})
		if err = errors.Join(err, src.Close()); err != nil {
			return nil, err
		}
		if f.Model.Spec().Half && i < len(f.Model.Dims())-2 {
			bf16.Round(own) // as tables of hidden states are
		}
	}
	return own, nil
}

// smallGraph is a topology.Reader of the nodes that the lists of unseen nodes name, ascending, and
// then the unseen nodes. Only these have lists that can be read; of the others the lengths are
// known, which a graph is asked for.
type smallGraph struct {
	graph topology.Reader
	known []sample.NodeID // the nodes of the graph
	lists [][]sample.NodeID
	edges uint64
}

// newSmallGraph returns the graph of unseen nodes.
func newSmallGraph(src *loader.Source, u *Unseen) *smallGraph {
	s := &smallGraph{graph: src.Topology}
	total := sample.NodeID(src.Meta.Nodes)
	for _, list := range u.Lists {
		for _, v := range list {
			if v < total {
				s.known = append(s.known, v)
			}
		}
	}
	slices.Sort(s.known)
	s.known = slices.Compact(s.known)
	for _, list := range u.Lists {
		renamed := make([]sample.NodeID, len(list))
		for i, v := range list {
			if v >= total {
				renamed[i] = sample.NodeID(len(s.known)) + v - total
				continue
			}
			at, _ := slices.BinarySearch(s.known, v)
			renamed[i] = sample.NodeID(at)
		}
		slices.Sort(renamed) // as lists of a store are
		s.lists = append(s.lists, renamed)
		s.edges += uint64(len(list))
	}
	return s
}

// join returns a table of the rows of all nodes: those that from has, and behind them own.
func (s *smallGraph) join(ctx context.Context, from table, own []float32) (table, error) {
	width, n := from.dim(), len(s.known)
	rows := make([]float32, n*width+len(own))
	if n > 0 {
		if err := from.read(ctx, s.known, rows[:n*width]); err != nil {
			return nil, err
		}
	}
	copy(rows[n*width:], own)
	return &memoryTable{width: width, rows: rows}, nil
}

// Nodes counts all nodes.
func (s *smallGraph) Nodes() uint64 { return uint64(len(s.known) + len(s.lists)) }

// Edges counts the entries of the lists of unseen nodes.
func (s *smallGraph) Edges() uint64 { return s.edges }

// Stats tells nothing.
func (s *smallGraph) Stats() topology.Stats { return topology.Stats{Kind: "resident"} }

// Close does nothing.
func (s *smallGraph) Close() error { return nil }

// NewSession returns a session for one goroutine.
func (s *smallGraph) NewSession() topology.Session { return &smallSession{s: s} }

// smallSession reads lists of a smallGraph.
type smallSession struct {
	s     *smallGraph
	nodes []sample.NodeID
	under topology.Session // of the graph; nil before it is asked
}

// Degrees writes the lengths of lists.
func (t *smallSession) Degrees(ctx context.Context, nodes []sample.NodeID, deg []uint32) error {
	t.nodes = nodes
	known := len(t.s.known)
	split, _ := slices.BinarySearch(nodes, sample.NodeID(known)) // chunks of nodes ascend
	for i, v := range nodes[split:] {
		deg[split+i] = uint32(len(t.s.lists[int(v)-known]))
	}
	if split == 0 {
		return ctx.Err()
	}
	if t.under == nil {
		t.under = t.s.graph.NewSession()
	}
	real := make([]sample.NodeID, split)
	for i, v := range nodes[:split] {
		real[i] = t.s.known[v]
	}
	return t.under.Degrees(ctx, real, deg[:split])
}

// Gather writes entries of lists of unseen nodes.
func (t *smallSession) Gather(ctx context.Context, off, pos []uint32, out []sample.NodeID) error {
	for i, v := range t.nodes {
		for k := off[i]; k < off[i+1]; k++ {
			out[k] = t.s.lists[int(v)-len(t.s.known)][pos[k]]
		}
	}
	return ctx.Err()
}

// Lists is not used: layers read lists in parts.
func (t *smallSession) Lists(context.Context, []sample.NodeID) (*listfile.Lists, error) {
	return nil, errors.New("exact: lists of new nodes are read by Gather")
}

// Release gives blocks of the graph back.
func (t *smallSession) Release() {
	if t.under != nil {
		t.under.Release()
	}
}

// UnseenBytes bounds the memory that RunUnseen takes on the heap beside HeapBytes, for a number of
// nodes and entries of their lists, with rows of up to width values.
func UnseenBytes(nodes, entries, width int) int64 {
	const entryBytes = 4 * 4 // as named, renamed, sorted and read
	return int64(nodes+entries)*4*2*int64(width) + int64(entries)*entryBytes
}
