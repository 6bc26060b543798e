package loader

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/rowfile"
	"gdb/layout/topology"
	"gdb/sample"
)

// Of measuredEdges edges, more or less, a scale is measured, and of measuredList edges of a list at
// most.
const measuredEdges, measuredList = 1 << 17, 1 << 12

// columnSums adds up values by column.
type columnSums struct{ n, sum, squares []float64 }

// Measure measures the mean of each column and one over its deviation, on the edges before a time,
// or on all if before is nil: some 2^17 of them, of nodes spread evenly, and of long lists the
// first.
func (e *EdgeColumns) Measure(ctx context.Context, before *int64) (s *rowfile.Scale, err error) {
	src := e.src
	t, err := topology.Open(ctx, src.Store, src.Device, layout.In,
		topology.Options{CacheBytes: 1 << 20, Budget: src.Budget})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	session := t.NewSession()
	defer session.Release()
	var nodes []sample.NodeID
	step := max(1, src.Meta.Edges/measuredEdges)
	for v := uint64(0); v < src.Meta.Nodes; v += step {
		nodes = append(nodes, sample.NodeID(v))
	}
	n := len(e.names)
	sums := columnSums{make([]float64, n), make([]float64, n), make([]float64, n)}
	var d sample.Dense
	last := sample.NodeID(math.MaxUint32) // the list before, of which a further part may come
	err = topology.EachList(ctx, session, nodes, listsOnce,
		func(nodes []sample.NodeID, l *listfile.Lists) (bool, error) {
			if nodes[0] == last {
				return true, nil
			}
			last = nodes[len(nodes)-1]
			e.listed(&d, nodes, l, before)
			if err := e.read(ctx, &d); err != nil {
				return false, err
			}
			sums.add(d.Columns)
			return true, nil
		})
	if err != nil {
		return nil, fmt.Errorf("loader: measure columns of edges: %w", err)
	}
	return e.scaleOf(&sums), nil
}

// listed makes lists a batch of one hop: their first entries that are before a time.
func (e *EdgeColumns) listed(d *sample.Dense, nodes []sample.NodeID, l *listfile.Lists,
	before *int64) {
	d.NodeIDs = nodes
	d.NodeIDOffsets = append(d.NodeIDOffsets[:0], 0, 0, uint32(len(nodes)))
	d.NbrOffsets = append(d.NbrOffsets[:0], 0)
	d.Nbrs, d.Weights, d.Types, d.Places = d.Nbrs[:0], d.Weights[:0], d.Types[:0], d.Places[:0]
	for i := range nodes {
		place, typ := uint32(0), uint32(0)
		for k := l.Off[i]; k < min(l.Off[i+1], l.Off[i]+measuredList); k++ {
			if l.Types != nil && e.src.Meta.Typed() && uint32(l.Types[k]) != typ {
				place, typ = 0, uint32(l.Types[k])
			}
			if before == nil || l.Times[k] < *before {
				d.Nbrs = append(d.Nbrs, l.Nbrs[k])
				d.Types = append(d.Types, typ)
				d.Places = append(d.Places, sample.Place{At: place})
				if l.Weights != nil {
					d.Weights = append(d.Weights, l.Weights[k])
				}
			}
			place++
		}
		d.NbrOffsets = append(d.NbrOffsets, uint32(len(d.Nbrs)))
	}
}

// add adds values that are numbers.
func (s *columnSums) add(values []float32) {
	for i, x := range values {
		if x == x {
			k := i % len(s.n)
			s.n[k]++
			s.sum[k] += float64(x)
			s.squares[k] += float64(x) * float64(x)
		}
	}
}

// scaleOf returns the scale of what was added up.
func (e *EdgeColumns) scaleOf(s *columnSums) *rowfile.Scale {
	scale := &rowfile.Scale{}
	for k, name := range e.names {
		mean, inverse := float64(0), float64(1)
		if n := s.n[k]; name != EdgeDegree {
			mean = s.sum[k] / max(1, n)
			inverse = 0
			if variance := s.squares[k]/max(1, n) - mean*mean; variance > 1e-12*mean*mean {
				inverse = 1 / math.Sqrt(variance)
			}
		}
		scale.Mean = append(scale.Mean, float32(mean))
		scale.Inverse = append(scale.Inverse, float32(inverse))
	}
	return scale
}
