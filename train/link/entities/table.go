// Package entities gives access to the learned vectors of entities, as blocks of rows, wherever
// they are kept: in memory, in a checkpoint, or in files by partition. It also gives access to the
// edges that are known to be true, in memory or read when they are needed.
package entities

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/train/link/rank"
	"gdb/train/runs"
)

// Table has a row for each entity. It implements rank.Vectors, and may be used by one goroutine.
type Table struct {
	source
	count, dim int
	values     []float32 // all rows; nil if they are not in memory
	frames     [][]float32
	held       []int // block in each frame; -1 for none
	arena      *mem.Arena
}

// Memory says how many blocks a table keeps in memory, and where that memory is counted.
type Memory struct {
	// Frames is how many blocks are in memory. With 2, one is read while the other is used.
	Frames int
	Budget *mem.Budget
}

// InMemory returns a table of rows in memory, one after the other.
func InMemory(values []float32, dim int) *Table {
	n := len(values) / dim
	return &Table{source: memory{runsOf{n, max(1, n)}}, count: n, dim: dim, values: values}
}

// Loaded returns the table of an array of a checkpoint, all of which it reads to memory.
func Loaded(state *runs.StateFile, name string, shape Shape, budget *mem.Budget) (*Table, error) {
	arena, err := mem.NewArena(budget, "vectors of entities", 4*max(1,
		int64(shape.Count)*int64(shape.Dim)))
	if err != nil {
		return nil, err
	}
	values := mem.View[float32](arena.Bytes())[:shape.Count*shape.Dim]
	t := InMemory(values, shape.Dim)
	t.arena = arena
	if err := state.Load(name, values); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Stored returns the table of an array of a checkpoint, which it reads once to check it. Blocks
// have blockRows rows; if that is a multiple of rank.BlockRows, scores have the same bits as with a
// table in memory. The caller closes the state after the table.
func Stored(ctx context.Context, state *runs.StateFile, name string, shape Shape,
	m Memory) (*Table, error) {
	rows := runsOf{shape.Count, min(max(1, shape.BlockRows), max(1, shape.Count))}
	t := &Table{count: shape.Count, dim: shape.Dim, source: &stored{runsOf: rows, state: state,
		name: name, dim: shape.Dim}}
	if err := t.take(rows.each, m); err != nil {
		return nil, err
	}
	if err := state.Check(ctx, name, t.count*t.dim, t.frames[0]); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Shape is the number of rows of a table, of their columns, and of rows in a block.
type Shape struct{ Count, Dim, BlockRows int }

// Paged returns the table of files by partition. explain returns the error to report for an error
// of reading; nil reports it as it is.
func Paged(dir *Files, m Memory, explain func(err error) error) (*Table, error) {
	t, spec := pagedTable(dir, explain), dir.Spec()
	return t, t.take(spec.FrameRows(), m)
}

// PagedIn returns the same table in frames that belong to the caller. A frame must have room for
// the largest partition.
func PagedIn(dir *Files, frames [][]float32) *Table {
	t := pagedTable(dir, nil)
	t.use(frames)
	return t
}

func pagedTable(dir *Files, explain func(err error) error) *Table {
	spec := dir.Spec()
	return &Table{count: int(spec.Map.Spec().Nodes), dim: spec.Columns,
		source: &paged{dir: dir, m: spec.Map, explain: explain}}
}

// take takes the memory of frames with that many rows.
func (t *Table) take(rows int, m Memory) (err error) {
	n := rows * t.dim
	t.arena, err = mem.NewArena(m.Budget, "blocks of vectors", int64(m.Frames)*4*int64(n))
	if err != nil {
		return err
	}
	values := mem.View[float32](t.arena.Bytes())
	var frames [][]float32
	for i := range m.Frames {
		frames = append(frames, values[i*n:(i+1)*n:(i+1)*n])
	}
	t.use(frames)
	return nil
}

func (t *Table) use(frames [][]float32) {
	t.frames, t.held = frames, slices.Repeat([]int{-1}, len(frames))
}

// Close gives the memory back.
func (t *Table) Close() error {
	if t.arena == nil {
		return nil
	}
	return t.arena.Free()
}

// Count returns the number of entities.
func (t *Table) Count() int { return t.count }

// Dim returns the number of columns.
func (t *Table) Dim() int { return t.dim }

// Place returns the block of an entity, and its row there.
func (t *Table) Place(e uint32) (block int, row uint64) { return t.place(e) }

// All returns the rows of all entities; nil unless they are in memory.
func (t *Table) All() []float32 { return t.values }

// Each calls fn with every block in order, and reads the next block while fn works.
func (t *Table) Each(ctx context.Context, fn func(b *rank.Block) error) error {
	all := make([]int, t.blocks())
	for i := range all {
		all[i] = i
	}
	return t.each(ctx, all, fn)
}

// each calls fn with some blocks.
func (t *Table) each(ctx context.Context, blocks []int, fn func(b *rank.Block) error) error {
	if t.values != nil {
		return fn(t.block(0, t.values))
	}
	var next chan error
	for i, block := range blocks {
		if next == nil {
			next = t.begin(ctx, i, block)
		}
		err := <-next
		if next = nil; err != nil {
			return err
		}
		if i+1 < len(blocks) && len(t.frames) > 1 {
			next = t.begin(ctx, i+1, blocks[i+1])
		}
		if err := fn(t.block(block, t.frames[i%len(t.frames)])); err != nil {
			if next != nil {
				<-next
			}
			return err
		}
	}
	return nil
}

// begin starts to read the i-th of some blocks into its frame, unless the frame has it.
func (t *Table) begin(ctx context.Context, i, block int) chan error {
	done, frame := make(chan error, 1), i%len(t.frames)
	if t.held[frame] == block {
		done <- ctx.Err()
		return done
	}
	t.held[frame] = -1
	go func() {
		defer bug.Catch()
		err := ctx.Err()
		if err == nil {
			err = t.read(ctx, block, 0, t.size(block), t.rows(frame, t.size(block)))
		}
		if err == nil {
			t.held[frame] = block
		}
		done <- err
	}()
	return done
}

// rows returns the first rows of a frame, or all of it if blocks are read as a whole.
func (t *Table) rows(frame, rows int) []float32 {
	if t.whole() {
		return t.frames[frame]
	}
	return t.frames[frame][:rows*t.dim]
}

func (t *Table) block(number int, rows []float32) *rank.Block {
	n := t.size(number)
	return &rank.Block{Number: number, Rows: rows[:n*t.dim], Count: n, Ascending: t.ascending(),
		Entity: func(row int) uint32 { return t.entity(number, row) }}
}

// nearRows is how many unwanted rows may lie between two rows that are read together.
const nearRows = 256

// want is a row that is asked for, and the place where it goes.
type want struct {
	block, row uint32
	at         int
}

// Gather writes the rows of some entities to to. Rows of a checkpoint that are near each other are
// read together. Of partitions, all that have wanted rows are read whole.
func (t *Table) Gather(ctx context.Context, to []float32, entities []uint32) error {
	if t.values != nil {
		for i, e := range entities {
			copy(to[i*t.dim:][:t.dim], t.values[int(e)*t.dim:])
		}
		return nil
	}
	wanted := make([]want, len(entities))
	for i, e := range entities {
		block, row := t.place(e)
		wanted[i] = want{uint32(block), uint32(row), i}
	}
	slices.SortFunc(wanted, func(a, b want) int {
		return int(int64(uint64(a.block)<<32|uint64(a.row)) - int64(uint64(b.block)<<32|
			uint64(b.row)))
	})
	if t.whole() {
		return t.gatherWhole(ctx, to, wanted)
	}
	for len(wanted) > 0 {
		n := 1
		for n < len(wanted) && wanted[n].block == wanted[0].block &&
			wanted[n].row-wanted[n-1].row <= nearRows {
			n++
		}
		if err := t.gatherNear(ctx, to, wanted[:n]); err != nil {
			return err
		}
		wanted = wanted[n:]
	}
	return nil
}

// gatherNear reads rows of a block with one read.
func (t *Table) gatherNear(ctx context.Context, to []float32, wanted []want) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	from, end := int(wanted[0].row), int(wanted[len(wanted)-1].row)+1
	t.held[0] = -1
	rows := t.frames[0][:(end-from)*t.dim]
	if err := t.read(ctx, int(wanted[0].block), from, end, rows); err != nil {
		return err
	}
	for _, w := range wanted {
		copy(to[w.at*t.dim:][:t.dim], rows[(int(w.row)-from)*t.dim:])
	}
	return nil
}

// gatherWhole goes through the blocks that have wanted rows.
func (t *Table) gatherWhole(ctx context.Context, to []float32, wanted []want) error {
	var blocks []int
	for i, w := range wanted {
		if i == 0 || w.block != wanted[i-1].block {
			blocks = append(blocks, int(w.block))
		}
	}
	return t.each(ctx, blocks, func(b *rank.Block) error {
		for len(wanted) > 0 && int(wanted[0].block) == b.Number {
			w := wanted[0]
			copy(to[w.at*t.dim:][:t.dim], b.Rows[int(w.row)*t.dim:])
			wanted = wanted[1:]
		}
		return nil
	})
}

const (
	// windowBytesMost bounds the window in which InOrder gathers rows. All partitions are read
	// for each window.
	windowBytesMost = 1 << 30
	// rowsOnce is the most rows that InOrder passes on at a time.
	rowsOnce = 8192
)

// InOrder calls fn with all rows in the order of entities, several consecutive ones at a time. Rows
// of partitions are gathered in a window of half of the free memory, at most 1 GiB; all partitions
// are read for each window.
func (t *Table) InOrder(ctx context.Context, budget *mem.Budget,
	fn func(first int, rows []float32) error) (err error) {
	if t.ascending() {
		return t.Each(ctx, func(b *rank.Block) error {
			return handOut(int(b.Entity(0)), b.Rows, t.dim, fn)
		})
	}
	most := int64(windowBytesMost)
	if limit := budget.Limit(); limit > 0 {
		most = min(most, (limit-budget.Used())/2)
	}
	rows := min(t.count, max(1, int(most)/(4*t.dim)))
	arena, err := mem.NewArena(budget, "vectors of nodes", 4*int64(rows*t.dim))
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	defer func() { err = errors.Join(err, arena.Free()) }()
	window := mem.View[float32](arena.Bytes())
	for first := 0; first < t.count; first += rows {
		n := min(rows, t.count-first)
		if err := t.gatherWindow(ctx, window, first, n); err != nil {
			return err
		}
		if err := handOut(first, window[:n*t.dim], t.dim, fn); err != nil {
			return err
		}
	}
	return nil
}

// gatherWindow gathers n rows, from entity first on.
func (t *Table) gatherWindow(ctx context.Context, window []float32, first, n int) error {
	return t.Each(ctx, func(b *rank.Block) error {
		for row := range b.Count {
			if at := int(b.Entity(row)) - first; at >= 0 && at < n {
				copy(window[at*t.dim:][:t.dim], b.Rows[row*t.dim:])
			}
		}
		return nil
	})
}

// handOut calls fn with rows, some at a time. The first row belongs to entity first.
func handOut(first int, rows []float32, dim int,
	fn func(first int, rows []float32) error) error {
	for n := len(rows) / dim; n > 0; n = len(rows) / dim {
		once := min(rowsOnce, n)
		if err := fn(first, rows[:once*dim]); err != nil {
			return err
		}
		first, rows = first+once, rows[once*dim:]
	}
	return nil
}
