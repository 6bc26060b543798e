package ingest

import (
	"context"
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest/extsort"

	"github.com/RoaringBitmap/roaring/v2"
)

// edgeSplit is a split of the edges, kept until the catalog is made.
type edgeSplit struct {
	Name  string
	Count uint64
	Bytes int // of the bitmap in Run
	Run   extsort.Run
}

// edgeSplits collects the splits of edges: for each the set of the positions of its edges in the
// in-lists. Memory: at most one bit an edge and split, which is counted.
type edgeSplits struct {
	names    []string
	sets     []*roaring.Bitmap
	budget   *mem.Budget
	reserved uint64 // positions below this have room
}

// A container of a bitmap holds so many positions in so many bytes at most.
const (
	containerPositions = 1 << 16
	containerBytes     = containerPositions / 8
)

func newEdgeSplits(names []string, budget *mem.Budget) *edgeSplits {
	s := &edgeSplits{names: names, sets: make([]*roaring.Bitmap, len(names)), budget: budget}
	for i := range s.sets {
		s.sets[i] = roaring.New()
	}
	return s
}

// add takes the next edge, of split number n counted from 1.
func (s *edgeSplits) add(n uint16, position uint64) error {
	if position > math.MaxUint32 {
		return fmt.Errorf("ingest: edges beyond %d cannot be in a split: give fewer triples, or "+
			"name their files otherwise than train, valid and test", uint64(math.MaxUint32)+1)
	}
	for position >= s.reserved {
		err := s.budget.Reserve("the splits of the edges", containerBytes*int64(len(s.sets)))
		if err != nil {
			return fmt.Errorf("ingest: %w", err)
		}
		s.reserved += containerPositions
	}
	s.sets[n-1].Add(uint32(position))
	return nil
}

// free gives the memory back.
func (s *edgeSplits) free() {
	if s != nil {
		s.budget.Release(int64(s.reserved/containerPositions) * containerBytes * int64(len(s.sets)))
		s.reserved, s.sets = 0, nil
	}
}

// write writes the sets to temporary files.
func (s *edgeSplits) write(p *pipeline) (out []edgeSplit, err error) {
	for i, name := range s.names {
		s.sets[i].RunOptimize()
		b, err := s.sets[i].ToBytes()
		if err != nil {
			return nil, fmt.Errorf("ingest: encode the split %s of the edges: %w", name, err)
		}
		words := make([]uint64, (len(b)+7)/8)
		copy(mem.BytesOf(words), b)
		run, err := extsort.WriteWords(p.sorter("edges-"+name, 1, 0), "runs/edges-"+name+".run",
			words)
		if err != nil {
			return nil, err
		}
		p.keepRuns([]extsort.Run{run})
		out = append(out, edgeSplit{name, s.sets[i].GetCardinality(), len(b), run})
	}
	return out, nil
}

// edgeSplitSets loads the sets of the edges' splits for the catalog.
func (p *pipeline) edgeSplitSets(ctx context.Context, splits []edgeSplit,
	sets map[string]*roaring.Bitmap) (metas []kv.SplitMeta, err error) {
	for _, s := range splits {
		words := make([]uint64, 0, (s.Bytes+7)/8)
		err := extsort.Merge(ctx, p.sorter("edges-"+s.Name, 1, p.memory.merge),
			[]extsort.Run{s.Run}, func(part []uint64) error {
				words = append(words, part...)
				return nil
			})
		if err != nil {
			return nil, err
		}
		set := roaring.New()
		if err := set.UnmarshalBinary(mem.BytesOf(words)[:s.Bytes]); err != nil {
			return nil, fmt.Errorf("ingest: decode the split %s of the edges: %w", s.Name, err)
		}
		sets[layout.EdgeSplitSet(s.Name)] = set
		metas = append(metas, kv.SplitMeta{Name: s.Name, Count: s.Count})
	}
	return metas, nil
}
