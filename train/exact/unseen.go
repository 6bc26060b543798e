package exact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

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
	// Types are the types of the nodes in a typed store; nil in others.
	Types []int
	// Lists holds the in-neighbors of each, and Relations, parallel to them, the types of these
	// edges; nil where edges have none, or where the model does not read them.
	Lists     [][]sample.NodeID
	Relations [][]uint32
}

// CheckUnseen returns an error if a model reads of the graph what unseen nodes do not have.
func CheckUnseen(f *Inference) error {
	x := f.Model.Spec().Extras()
	switch s := f.Model.Spec(); {
	case s.SampledOnly():
		return errors.New("it reads columns of edges")
	case f.Vectors != nil:
		return errors.New("it reads vectors that are learned for each node")
	case x.EdgeWeights || x.WeightSums:
		return errors.New("it reads the weights of edges")
	case f.Source.Rows == nil:
		return errors.New("the store has no features")
	}
	return nil
}

// RunUnseen computes the logits of unseen nodes, (nodes, outputs). They are to the bit those of a
// graph that has the nodes as its last ones, in a typed store as the last of their types. states
// are the hidden states of all nodes of the graph, as Hidden was given them. Only nodes that lists
// name are read.
func (f *Inference) RunUnseen(ctx context.Context, u *Unseen, states []*Table) (logits []float32,
	err error) {
	s := newSmallGraph(f.Source, u)
	run := *f
	run.Source = &loader.Source{Store: f.Source.Store, Device: f.Source.Device,
		Budget: f.Source.Budget, Topology: s,
		Meta: &kv.Meta{UUID: f.Source.Meta.UUID, Nodes: s.Nodes()}}
	run.types = s.firsts
	run.lists = newLists(s, run.Source.Budget)
	defer run.lists.close()
	run.lists.limit = run.limit()
	run.want = s.wanted()
	own := s.reordered(u.Rows, false) // what the layer before gives for the unseen nodes
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
	return s.reordered(own, true), nil
}

// smallGraph is a topology.Reader of the nodes that the lists of unseen nodes name and of the
// unseen nodes: of each type those of the graph, ascending, and behind them the unseen ones. Where
// nodes have no types there is one. Only unseen nodes have lists that can be read; of the others
// the lengths are known, which a graph is asked for.
type smallGraph struct {
	graph topology.Reader
	known []sample.NodeID // the nodes of the graph
	order []int           // the unseen nodes, as they stand here
	types []smallType
	// firsts are the first nodes of the types of a typed store; nil in others.
	firsts []int
	// of says of each node which of known it is, or of unseen node i ^i.
	of    []int
	lists [][]smallEdge // by unseen node
	edges uint64
}

// smallType counts the nodes of a type.
type smallType struct{ known, unseen int }

// smallEdge is an entry of the list of an unseen node.
type smallEdge struct {
	from     sample.NodeID // node of the small graph
	relation uint32        // 0 where it is not known
}

// newSmallGraph returns the graph of unseen nodes.
func newSmallGraph(src *loader.Source, u *Unseen) *smallGraph {
	s := &smallGraph{graph: src.Topology, types: make([]smallType, 1)}
	m, total := src.Meta, sample.NodeID(src.Meta.Nodes)
	if m.Typed() {
		s.types = make([]smallType, len(m.NodeTypes))
	}
	for i, list := range u.Lists {
		s.order = append(s.order, i)
		s.edges += uint64(len(list))
		for _, v := range list {
			if v < total {
				s.known = append(s.known, v)
			}
		}
	}
	slices.Sort(s.known)
	s.known = slices.Compact(s.known)
	typeOf := func(int) int { return 0 }
	if m.Typed() {
		typeOf = func(i int) int { return u.Types[i] }
		slices.SortStableFunc(s.order, func(a, b int) int { return u.Types[a] - u.Types[b] })
	}
	for _, v := range s.known {
		t := 0
		if m.Typed() {
			t = m.TypeOf(v)
		}
		s.types[t].known++
	}
	for _, i := range s.order {
		s.types[typeOf(i)].unseen++
	}
	s.place(m, u)
	return s
}

// place numbers the nodes, and renames and sorts lists as those of the store are.
func (s *smallGraph) place(m *kv.Meta, u *Unseen) {
	unseen, known := make([]sample.NodeID, len(s.order)), make([]sample.NodeID, len(s.known))
	k, n := 0, 0
	for _, t := range s.types {
		if m.Typed() {
			s.firsts = append(s.firsts, len(s.of))
		}
		for range t.known {
			known[k] = sample.NodeID(len(s.of))
			s.of = append(s.of, k)
			k++
		}
		for range t.unseen {
			unseen[s.order[n]] = sample.NodeID(len(s.of))
			s.of = append(s.of, ^s.order[n])
			n++
		}
	}
	for i, list := range u.Lists {
		renamed := make([]smallEdge, len(list))
		for e, v := range list {
			if v >= sample.NodeID(m.Nodes) {
				renamed[e].from = unseen[v-sample.NodeID(m.Nodes)]
			} else {
				at, _ := slices.BinarySearch(s.known, v)
				renamed[e].from = known[at]
			}
			if u.Relations != nil {
				renamed[e].relation = u.Relations[i][e]
			}
		}
		slices.SortFunc(renamed, func(a, b smallEdge) int {
			if m.Typed() { // a list for each relation, in the order of their sources
				return cmp.Or(cmp.Compare(s.typeAt(a.from), s.typeAt(b.from)),
					cmp.Compare(a.relation, b.relation), cmp.Compare(a.from, b.from))
			}
			return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.relation, b.relation))
		})
		s.lists = append(s.lists, renamed)
	}
}

// typeAt returns the type of a node of a typed store: types without nodes begin where the next one
// does.
func (s *smallGraph) typeAt(v sample.NodeID) int {
	return sort.Search(len(s.firsts), func(i int) bool { return s.firsts[i] > int(v) }) - 1
}

// wanted returns the unseen nodes.
func (s *smallGraph) wanted() *roaring.Bitmap {
	set := roaring.New()
	for v, k := range s.of {
		if k < 0 {
			set.Add(uint32(v))
		}
	}
	return set
}

// reordered returns the rows of unseen nodes, in the order of the small graph, of rows that are in
// the order that they were given in, or, with back, the other way round.
func (s *smallGraph) reordered(rows []float32, back bool) []float32 {
	if slices.IsSorted(s.order) || len(rows) == 0 {
		return rows
	}
	width, out := len(rows)/len(s.order), make([]float32, len(rows))
	for to, from := range s.order {
		if back {
			from, to = to, from
		}
		copy(out[to*width:(to+1)*width], rows[from*width:])
	}
	return out
}

// join returns a table of the rows of all nodes: those that from has of the graph's, and own of the
// unseen ones.
func (s *smallGraph) join(ctx context.Context, from table, own []float32) (table, error) {
	width, known := from.dim(), s.known
	rows := make([]float32, 0, len(s.of)*width)
	for _, t := range s.types {
		at := len(rows)
		rows = rows[:at+t.known*width]
		if t.known > 0 {
			if err := from.read(ctx, known[:t.known], rows[at:]); err != nil {
				return nil, err
			}
		}
		rows = append(rows, own[:t.unseen*width]...)
		known, own = known[t.known:], own[t.unseen*width:]
	}
	return &memoryTable{width: width, rows: rows}, nil
}

// Nodes counts all nodes.
func (s *smallGraph) Nodes() uint64 { return uint64(len(s.of)) }

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
	var real []sample.NodeID // nodes of the graph, and where they stand among nodes
	var at []int
	for i, v := range nodes {
		if k := t.s.of[v]; k < 0 {
			deg[i] = uint32(len(t.s.lists[^k]))
		} else {
			real, at = append(real, t.s.known[k]), append(at, i)
		}
	}
	if len(real) == 0 {
		return ctx.Err()
	}
	if t.under == nil {
		t.under = t.s.graph.NewSession()
	}
	of := make([]uint32, len(real))
	if err := t.under.Degrees(ctx, real, of); err != nil {
		return err
	}
	for k, i := range at {
		deg[i] = of[k]
	}
	return nil
}

// each calls fn with entries of lists of unseen nodes, by their places in what is asked for.
func (t *smallSession) each(off, pos []uint32, fn func(place uint32, e smallEdge)) {
	for i, v := range t.nodes {
		for k := off[i]; k < off[i+1]; k++ {
			fn(k, t.s.lists[^t.s.of[v]][pos[k]])
		}
	}
}

// Gather writes entries of lists of unseen nodes.
func (t *smallSession) Gather(ctx context.Context, off, pos []uint32, out []sample.NodeID) error {
	t.each(off, pos, func(place uint32, e smallEdge) { out[place] = e.from })
	return ctx.Err()
}

// GatherAttributes writes the types of these entries.
func (t *smallSession) GatherAttributes(ctx context.Context, off, pos []uint32,
	to topology.Attributes) error {
	if to.Weights != nil {
		return errors.New("exact: edges of new nodes have no weights")
	}
	t.each(off, pos, func(place uint32, e smallEdge) { to.Types[place] = e.relation })
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
	const entryBytes = 4 * 8 // as named, renamed, sorted and read, each with its type
	return int64(nodes+entries)*4*2*int64(width) + int64(entries)*entryBytes
}
