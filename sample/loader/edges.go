package loader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/topology"
	"gdb/sample"

	"github.com/RoaringBitmap/roaring/v2"
)

// EdgeSeeds are the edges of a graph as seeds, in the order of their times: each has a number that
// stands where seeds are nodes elsewhere. They are a sample.Seeding: both ends of an edge are read
// as they were strictly before it, so that neither it nor its reverse is seen. They take 20 bytes
// an edge, counted in a budget, and 24 more while they are loaded.
type EdgeSeeds struct {
	edges  []timedEdge
	values []float32
}

// timedEdge is an edge and its time.
type timedEdge struct {
	time     int64
	src, dst sample.NodeID
}

// LoadEdges reads the edges of relations of a typed store, or all edges if none is named, with
// their weights. Edges must have weights and times.
func LoadEdges(ctx context.Context, s *Source, relations []string) (e *EdgeSeeds, err error) {
	wanted, err := relationsOf(s.Meta, relations)
	if err != nil {
		return nil, err
	}
	held := int64(s.Meta.Edges) * (16 + 4 + 24)
	if err := s.Budget.Reserve("edges to learn from", held); err != nil {
		return nil, fmt.Errorf("loader: %w", err)
	}
	t, err := topology.Open(ctx, s.Store, s.Device, layout.In,
		topology.Options{CacheBytes: 1 << 20, Budget: s.Budget})
	if err != nil {
		return nil, err
	}
	e = &EdgeSeeds{}
	session := t.NewSession()
	err = e.read(ctx, session, s.Meta, wanted)
	session.Release()
	if err = errors.Join(err, t.Close()); err != nil {
		return nil, err
	}
	e.sort()
	s.Budget.Release(held - int64(len(e.edges))*(16+4))
	return e, nil
}

// relationsOf returns which relations have a name among those, by number; nil is all edges.
func relationsOf(m *kv.Meta, names []string) ([]bool, error) {
	switch {
	case !m.Weighted || !m.Timestamped:
		return nil, errors.New("loader: edges to learn from need weights and times: ingest them " +
			"with --weight-col and --time-col")
	case len(names) == 0 && (!m.Typed() || len(m.EdgeTypes) == 1):
		return nil, nil
	case len(names) == 0:
		return nil, fmt.Errorf("loader: edges have types: write the target as TYPE.weight, or "+
			"several with commas between; there are %s", strings.Join(m.EdgeTypes, ", "))
	}
	wanted := make([]bool, len(m.EdgeTypes))
	for _, name := range names {
		i := slices.Index(m.EdgeTypes, name)
		if i < 0 {
			return nil, fmt.Errorf("loader: no type of edges is called %q: there are %s", name,
				strings.Join(m.EdgeTypes, ", "))
		}
		wanted[i] = true
	}
	return wanted, nil
}

// listsOnce bounds the lists that are read together.
var listsOnce = topology.ListsMost{Nodes: 1 << 12, Entries: 1 << 18}

// read takes the edges of the wanted types from all lists.
func (e *EdgeSeeds) read(ctx context.Context, s topology.Session, m *kv.Meta,
	wanted []bool) error {
	nodes := make([]sample.NodeID, 0, listsOnce.Nodes)
	take := func(nodes []sample.NodeID, l *listfile.Lists) (bool, error) {
		for i, v := range nodes {
			for k := l.Off[i]; k < l.Off[i+1]; k++ {
				if wanted != nil && !wanted[l.Types[k]] {
					continue
				}
				if l.Times[k] == kv.NoTime {
					return false, fmt.Errorf("loader: an edge to node #%d has no time: a relation "+
						"to learn from has times", v)
				}
				e.edges = append(e.edges, timedEdge{l.Times[k], l.Nbrs[k], v})
				e.values = append(e.values, l.Weights[k])
			}
		}
		return true, nil
	}
	for first := uint64(0); first < m.Nodes; first += uint64(len(nodes)) {
		nodes = nodes[:0]
		for v := first; v < min(m.Nodes, first+uint64(listsOnce.Nodes)); v++ {
			nodes = append(nodes, sample.NodeID(v))
		}
		if err := topology.EachList(ctx, s, nodes, listsOnce, take); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// sort puts edges of equal times in the order of lists.
func (e *EdgeSeeds) sort() {
	order := make([]int, len(e.edges))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(e.edges[a].time, e.edges[b].time), cmp.Compare(a, b))
	})
	edges, values := make([]timedEdge, len(order)), make([]float32, len(order))
	for to, from := range order {
		edges[to], values[to] = e.edges[from], e.values[from]
	}
	e.edges, e.values = edges, values
}

// Len returns the number of edges.
func (e *EdgeSeeds) Len() int { return len(e.edges) }

// Ends returns the ends of an edge.
func (e *EdgeSeeds) Ends(edge sample.NodeID) (src, dst sample.NodeID) {
	return e.edges[edge].src, e.edges[edge].dst
}

// Targets returns the weights of all edges.
func (e *EdgeSeeds) Targets() []float32 { return e.values }

// At returns the time of the edge that has a share of all edges before it.
func (e *EdgeSeeds) At(share float64) int64 {
	return e.edges[min(len(e.edges)-1, int(share*float64(len(e.edges))))].time
}

// Expand writes the ends of edges, each once as of the time before its edge.
func (e *EdgeSeeds) Expand(_ context.Context, edges []sample.NodeID, out *sample.Seeded) error {
	type end struct {
		node sample.NodeID
		time int64
	}
	at := make(map[end]uint32, 2*len(edges))
	for _, i := range edges {
		of := e.edges[i]
		for _, v := range []sample.NodeID{of.src, of.dst} {
			p := end{v, of.time - 1}
			k, known := at[p]
			if !known {
				k = uint32(len(out.Nodes))
				at[p] = k
				out.Nodes, out.Times = append(out.Nodes, v), append(out.Times, p.time)
			}
			out.Ends = append(out.Ends, k)
		}
	}
	return nil
}

// Splits returns splits of the edges by times, as NodeTimes.Splits does of nodes.
func (e *EdgeSeeds) Splits(bases []string, times []int64, budget *mem.Budget) ([]Split, error) {
	return splitsByTime(bases, times, budget, func(set *roaring.Bitmap, from, to int64) {
		first := sort.Search(len(e.edges), func(i int) bool { return e.edges[i].time >= from })
		end := sort.Search(len(e.edges), func(i int) bool { return e.edges[i].time >= to })
		if to == math.MaxInt64 {
			end = len(e.edges)
		}
		set.AddRange(uint64(first), uint64(end))
	})
}
