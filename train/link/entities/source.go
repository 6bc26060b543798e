package entities

import (
	"context"
	"fmt"

	"gdb/internal/trace"
	"gdb/layout"
	"gdb/layout/partition"
	"gdb/train/embedding/partfile"
	"gdb/train/runs"
)

// source is where rows are kept, in blocks.
type source interface {
	// blocks returns how many blocks there are, and size the rows of one.
	blocks() int
	size(block int) int
	// place returns the block of an entity and its row there; entity is the way back.
	place(e uint32) (block int, row uint64)
	entity(block, row int) uint32
	// ascending says that the entities of a block follow one another.
	ascending() bool
	// whole says that a block is read as a whole or not at all.
	whole() bool
	// read reads the rows of a block from one to before another.
	read(ctx context.Context, block, from, to int, rows []float32) error
}

// runsOf are blocks of entities that follow one another, all of each rows but the last.
type runsOf struct{ count, each int }

func (r runsOf) blocks() int                  { return (r.count + r.each - 1) / r.each }
func (r runsOf) size(block int) int           { return min(r.each, r.count-block*r.each) }
func (r runsOf) place(e uint32) (int, uint64) { return int(e) / r.each, uint64(int(e) % r.each) }
func (r runsOf) entity(block, row int) uint32 { return uint32(block*r.each + row) }
func (r runsOf) ascending() bool              { return true }
func (r runsOf) whole() bool                  { return false }

// memory is one block of rows, which nothing reads: see Table.values.
type memory struct{ runsOf }

func (memory) read(context.Context, int, int, int, []float32) error { return nil }

// stored are the rows of an array of a checkpoint.
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

// paged are the rows of files, a file a partition.
type paged struct {
	dir *partfile.Dir
	m   partition.Map
	// explain turns an error of reading into the one that is returned; nil for none.
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
