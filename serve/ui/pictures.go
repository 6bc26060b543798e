package ui

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"gdb"
	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/train"
	"gdb/train/report"
	"gdb/train/runs"
	"gdb/train/runs/vectors"

	"github.com/RoaringBitmap/roaring/v2"
)

// PictureOptions say of which run and nodes a report has pictures.
type PictureOptions struct {
	Run string
	// Split is the split of which some nodes are drawn. Where the store has none of that name, some
	// of all nodes are.
	Split string
	train.Limits
}

// lookupShare is the part of the memory with which names and neighbors are looked up, once vectors
// are computed.
const lookupShare = 4

// Pictures computes the pictures of a report: vectors of a sample of nodes in two dimensions, and a
// neighborhood. A picture that this run or this memory does not allow is a sentence that says why.
func Pictures(ctx context.Context, st *layout.Store, dev blockdev.Device,
	o PictureOptions) (all []report.Picture, err error) {
	nodes, err := sampleOf(ctx, st, o.Split)
	if err != nil || nodes.IsEmpty() {
		return nil, err
	}
	e, vectorErr := embedding(ctx, st, dev, nodes, o)
	if vectorErr != nil && (ctx.Err() != nil || errors.Is(vectorErr, layout.ErrCorrupt)) {
		return nil, vectorErr
	}
	db, err := gdb.OpenOn(ctx, st, dev, gdb.Options{Memory: o.Memory / lookupShare,
		Threads: o.Threads})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	p := report.Picture{Title: "Vectors"}
	if vectorErr != nil {
		p.Why = strings.TrimPrefix(message.Plain(vectorErr.Error()), "train: ")
	} else {
		if e.Of, err = kinds(ctx, db, e.nodes); err != nil {
			return nil, err
		}
		p.SVG = template.HTML(e.SVG())
	}
	near, err := widest(ctx, db, nodes)
	if err != nil {
		return nil, err
	}
	return []report.Picture{p, {Title: "A neighborhood", SVG: template.HTML(near.SVG())}}, nil
}

// sampleOf returns some nodes of a split, or of all, evenly by their numbers.
func sampleOf(ctx context.Context, st *layout.Store, split string) (*roaring.Bitmap, error) {
	some, all, at := roaring.New(), st.Meta().Nodes, func(rank uint64) (uint32, error) {
		return uint32(rank), nil
	}
	set := split
	if !strings.Contains(split, "@") {
		set = st.Meta().SplitName(split, "")
	}
	if slices.ContainsFunc(st.Meta().Splits, func(s kv.SplitMeta) bool { return s.Name == set }) {
		nodes, err := st.Catalog().Set(ctx, set)
		if err != nil {
			return nil, err
		}
		all, at = nodes.GetCardinality(), func(rank uint64) (uint32, error) {
			return nodes.Select(uint32(rank))
		}
	}
	n := min(all, report.EmbeddingMost)
	for i := range n {
		v, err := at(i * all / n)
		if err != nil {
			return nil, fmt.Errorf("report: set %s: %w", set, err)
		}
		some.Add(v)
	}
	return some, nil
}

// sampleBytes bounds the vectors of a sample.
const sampleBytes = 8 << 20

// sampled is the vectors of some nodes.
type sampled struct {
	report.Embedding
	nodes []kv.NodeID
	seen  int
}

// add takes a copy of the vector of a node, or of each few nodes if vectors are long; all is the
// number of nodes.
func (s *sampled) add(v kv.NodeID, row []float32, all uint64) {
	every := int(all)*4*len(row)/sampleBytes + 1
	if s.seen++; (s.seen-1)%every == 0 {
		s.nodes, s.Rows = append(s.nodes, v), append(s.Rows, slices.Clone(row))
	}
}

// embedding returns what a run learned of some nodes: their vectors, or what the last hidden layer
// gives.
func embedding(ctx context.Context, st *layout.Store, dev blockdev.Device, nodes *roaring.Bitmap,
	o PictureOptions) (e *sampled, err error) {
	e = &sampled{}
	if !runs.PredictsLinks(st, o.Run) {
		e.From = "outputs of the last hidden layer"
		return e, train.EmbedNodes(ctx, st, dev, train.EmbedConfig{Limits: o.Limits, Run: o.Run},
			nodes, func(v layout.NodeID, row []float32) { e.add(v, row, nodes.GetCardinality()) })
	}
	e.From = "learned vectors"
	v, err := vectors.Open(ctx, st, dev, o.Run, mem.NewProcessBudget(o.Memory), o.Threads)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	for it := nodes.Iterator(); it.HasNext(); {
		node := kv.NodeID(it.Next())
		row, err := v.Row(ctx, node)
		if err != nil {
			return nil, err
		}
		e.add(node, row, nodes.GetCardinality())
	}
	return e, nil
}

// neighborhoodsTried is how many nodes are looked at for one with many neighbors.
const neighborhoodsTried = 16

// widest returns the neighborhood with the most nodes, of some of the nodes.
func widest(ctx context.Context, db *gdb.DB, nodes *roaring.Bitmap) (best *report.Neighborhood,
	err error) {
	n := min(neighborhoodsTried, nodes.GetCardinality())
	for i := range n {
		v, err := nodes.Select(uint32(i * nodes.GetCardinality() / n))
		if err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		near, err := around(ctx, db, kv.NodeID(v))
		if err != nil {
			return nil, err
		}
		if best == nil || len(near.Names) > len(best.Names) {
			best = near
		}
	}
	return best, nil
}
