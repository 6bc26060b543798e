package entities

import (
	"context"
	"fmt"

	"gdb/internal/trace"
	"gdb/layout"
	"gdb/layout/partition"
	"gdb/train/runs"
)

// source is a place where rows are kept, in blocks.
type source interface {
	// blocks returns the number of blocks, and size the number of rows of one.
	blocks() int
	size(block int) int
	// place returns the block of an entity and its row there; entity is its inverse.
	place(e uint32) (block int, row uint64)
	entity(block, row int) uint32
	// ascending reports whether the numbers of a block's entities follow one another.
	ascending() bool
	// whole reports whether a block can only be read as a whole.
	whole() bool
	// read reads the rows from from up to to of a block.
	read(ctx context.Context, block, from, to int, rows []float32) error
}

// runsOf are blocks of consecutive entities. All have each rows, the last one maybe fewer.
type runsOf struct{ count, each int }

func (r runsOf) blocks() int                  { return (r.count + r.each - 1) / r.each }
func (r runsOf) size(block int) int           { return min(r.each, r.count-block*r.each) }
func (r runsOf) place(e uint32) (int, uint64) { return int(e) / r.each, uint64(int(e) % r.each) }
func (r runsOf) entity(block, row int) uint32 { return uint32(block*r.each + row) }
func (r runsOf) ascending() bool              { return true }
func (r runsOf) whole() bool                  { return false }

// memory is one block of rows in memory, which are not read: see Table.values.
type memory struct{ runsOf }

func (memory) read(context.Context, int, int, int, []float32) error { return nil }

// stored gives the rows of an array of a checkpoint.
type stored struct {
	runsOf
	state *runs.StateFile
	name  string
	dim   int
}

func (s *stored) read(ctx context.Context, block, from, to int, rows []float32) error {
	trace.From(ctx).Read(1, 4*uint64(len(rows)))
	return s.state.Read(s.name, (block*s.each+from)*s.dim, rows[:(to-from)*s.dim])
}

// paged gives the rows of files, one for each partition.
type paged struct {
	dir *Files
	m   partition.Map
	// explain returns the error to report for an error of reading; nil reports it as it is.
	explain func(err error) error
}

func (p *paged) blocks() int        { return p.m.Parts() }
func (p *paged) size(block int) int { return int(p.m.Size(block)) }
func (p *paged) ascending() bool    { return false }
func (p *paged) whole() bool        { return true }

func (p *paged) place(e uint32) (block int, row uint64) { return p.m.Place(layout.NodeID(e)) }

func (p *paged) entity(block, row int) uint32 { return uint32(p.m.Node(block, uint64(row))) }

func (p *paged) read(ctx context.Context, block, _, _ int, rows []float32) error {
	_, err := p.dir.Read(ctx, block, [][]float32{rows})
	if err != nil && p.explain != nil {
		return p.explain(err)
	}
	if err != nil {
		return fmt.Errorf("read partition %d: %w", block, err)
	}
	return nil
}
