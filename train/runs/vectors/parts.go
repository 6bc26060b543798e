package vectors

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/partition"
	"gdb/train/embedding/partfile"
	"gdb/train/link/initial"
	"gdb/train/runs"
	"gdb/train/setting"
)

// windowBytesMost is the most that Each gathers vectors in, which it goes through all partitions
// for.
const windowBytesMost = 1 << 30

// parts is the table of vectors that are on disk by partition: a partition is in memory at a time.
type parts struct {
	dir    *partfile.Dir
	m      partition.Map
	dim    int
	budget *mem.Budget
	frame  *mem.Arena
	rows   []float32 // of the partition held
	held   int       // -1 for none
	// outdated says whether the run has gone on, which removes files that its checkpoint had.
	outdated func() bool
	run      string
}

// openParts opens the vectors of a record, and takes the memory of a partition.
func openParts(store *layout.Store, dev blockdev.Device, dir runs.Dir, c *setting.Link,
	record []byte, budget *mem.Budget) (table, error) {
	meta := store.Meta()
	m, err := partition.New(partition.Spec{Nodes: meta.Nodes, Parts: c.Partitions, Random: true,
		Seed: c.Seed})
	if err != nil {
		return nil, err
	}
	spec := partfile.Spec{UUID: meta.UUID, Map: m, Columns: c.Dim,
		State: len(runs.LinkState(c.Optimizer)), Init: func(row []float32, entity uint64) {
			initial.Entity(row, c.Seed, entity, c.Init)
		}}
	p := &parts{m: m, dim: c.Dim, budget: budget, held: -1, run: dir.Name()}
	p.dir, err = partfile.View(store.FS(), dir.Path(runs.PartitionsDir), dev, spec, record)
	if err != nil {
		return nil, err
	}
	p.outdated = func() bool {
		var now position
		name, err := dir.Current()
		if err != nil {
			return false
		}
		state, err := dir.OpenState(name, &now)
		return err == nil && state.Close() == nil && !bytes.Equal(now.record(), record)
	}
	p.frame, err = mem.NewArena(budget, "a partition", 4*int64(spec.FrameRows()*c.Dim))
	if err != nil {
		return nil, fmt.Errorf("train: run %s: %w", p.run, err)
	}
	p.rows = mem.View[float32](p.frame.Bytes())
	return p, nil
}

// Close gives the memory back.
func (p *parts) Close() error { return p.frame.Free() }

// read makes a partition the one that is held, and returns its vectors.
func (p *parts) read(ctx context.Context, part int) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p.held != part {
		p.held = -1
		if _, err := p.dir.Read(ctx, part, [][]float32{p.rows}); err != nil {
			if errors.Is(err, layout.ErrCorrupt) && p.outdated() {
				return nil, fmt.Errorf("run %s trains, and its vectors have changed since this "+
					"began: ask again", p.run)
			}
			return nil, err
		}
		p.held = part
	}
	return p.rows[:int(p.m.Size(part))*p.dim], nil
}

// Row reads the partition of a node.
func (p *parts) Row(ctx context.Context, node kv.NodeID, to []float32) error {
	part, row := p.m.Place(node)
	rows, err := p.read(ctx, part)
	if err == nil {
		copy(to, rows[int(row)*p.dim:])
	}
	return err
}

// Scan reads all partitions.
func (p *parts) Scan(ctx context.Context, fn func(rows []float32,
	node func(row int) uint32) error) error {
	for part := range p.m.Parts() {
		rows, err := p.read(ctx, part)
		if err == nil {
			err = fn(rows, func(row int) uint32 { return uint32(p.m.Node(part, uint64(row))) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Each gathers as many vectors at a time as a half of the free memory holds, 1 GiB at most, and
// reads all partitions for each time.
func (p *parts) Each(ctx context.Context, fn func(first int, rows []float32) error) (err error) {
	nodes, most := int(p.m.Spec().Nodes), int64(windowBytesMost)
	if limit := p.budget.Limit(); limit > 0 {
		most = min(most, (limit-p.budget.Used())/2)
	}
	count := min(nodes, max(1, int(most)/(4*p.dim)))
	arena, err := mem.NewArena(p.budget, "vectors of nodes", 4*int64(count*p.dim))
	if err != nil {
		return fmt.Errorf("train: run %s: %w", p.run, err)
	}
	defer func() { err = errors.Join(err, arena.Free()) }()
	window := mem.View[float32](arena.Bytes())
	for first := 0; first < nodes; first += count {
		n := min(count, nodes-first)
		err := p.Scan(ctx, func(rows []float32, node func(row int) uint32) error {
			for row := range len(rows) / p.dim {
				if at := int(node(row)) - first; at >= 0 && at < n {
					copy(window[at*p.dim:][:p.dim], rows[row*p.dim:])
				}
			}
			return nil
		})
		for lo := 0; lo < n && err == nil; lo += blockRowsMost {
			err = fn(first+lo, window[lo*p.dim:min(lo+blockRowsMost, n)*p.dim])
		}
		if err != nil {
			return err
		}
	}
	return nil
}
