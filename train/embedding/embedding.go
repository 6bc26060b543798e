// Package embedding keeps a learned vector for each node. It holds the table of vectors, the
// optimizer's state for each row, and the table of the best evaluation, all in memory, and writes
// and reads their file in a checkpoint.
//
// A step reads and changes the rows of its batch, and no others. Rows are copied when the step
// begins, not when the batch is gathered: batches are made ahead, and rows change with each step.
package embedding

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/compute/backend"
	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/sample"
	"gdb/sample/draw"
)

// initDomain separates the random keys of initial vectors from those of other draws.
const initDomain = 0x656d6264 // "embd"

// The names of arrays in a checkpoint, beside those of the optimizer's state.
const (
	rowsName = "embeddings"
	bestName = "best embeddings"
)

// Config says what table to make.
type Config struct {
	// Nodes and Dim are the rows and columns of the table.
	Nodes uint64
	Dim   int
	// Features is how many values stand before a node's vector in the input of a model.
	Features int
	// Training keeps the optimizer's state, whose arrays State names, and the table of the
	// best evaluation.
	Training bool
	State    []string
	// Threads is how many goroutines copy and change rows.
	Threads int
	// Repeats says that batches may have a node several times.
	Repeats bool
}

// Bytes returns the memory of the arrays of a table.
func (c *Config) Bytes() int64 {
	arrays := int64(1)
	if c.Training {
		arrays = 2 + int64(len(c.State))
	}
	return arrays * mem.ArenaBytes(c.arrayBytes())
}

// CheckpointBytes returns the most that the table's file in a checkpoint takes.
func (c *Config) CheckpointBytes() int64 {
	return headerBytes + (2+int64(len(c.State)))*c.arrayBytes()
}

func (c *Config) arrayBytes() int64 { return 4 * int64(c.Nodes) * int64(c.Dim) }

// InputBytes returns the memory of the input of a batch with that many nodes.
func (c *Config) InputBytes(nodes int64) int64 {
	if !c.Repeats {
		nodes = min(nodes, int64(c.Nodes))
	}
	return mem.ArenaBytes(4 * nodes * int64(c.Features+c.Dim))
}

// array is a matrix of the table's shape, with its name in checkpoints.
type array struct {
	name   string
	values []float32
}

// Table holds a vector for each node. It may be used by one goroutine.
type Table struct {
	cfg    Config
	budget *mem.Budget
	pool   *kernel.Pool
	arenas []*mem.Arena
	rows   array
	best   array   // has no values if nothing is trained
	state  []array // of the optimizer

	input *mem.Arena  // nil until the first batch
	batch kernel.Rows // of the last batch
	// numbers, with Repeats, has the place of each row of the batch among its different nodes.
	numbers *draw.NodeTable
	unique  []sample.NodeID
	places  []uint32
	held    mem.Account // memory of these
}

// New returns a table of zeros, whose memory is counted in budget. The caller closes it.
func New(c Config, budget *mem.Budget) (*Table, error) {
	t := &Table{cfg: c, budget: budget, pool: kernel.NewPool(c.Threads),
		held: mem.NewAccount(budget, "nodes of a batch")}
	t.numbers = draw.NewNodeTable(&t.held)
	var err error
	take := func(name string) (a array) {
		if err != nil {
			return a
		}
		arena, failed := mem.NewArena(budget, name, c.arrayBytes())
		if failed != nil {
			err = fmt.Errorf("train: %w", failed)
			return a
		}
		t.arenas = append(t.arenas, arena)
		return array{name, mem.View[float32](arena.Bytes())}
	}
	t.rows = take(rowsName)
	if c.Training {
		t.best = take(bestName)
		for _, name := range c.State {
			t.state = append(t.state, take(name))
		}
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Close frees the table's memory.
func (t *Table) Close() error {
	err := t.Trim()
	for _, a := range t.arenas {
		err = errors.Join(err, a.Free())
	}
	t.pool.Close()
	t.held.Release()
	return err
}

// Dim returns the number of values in a vector.
func (t *Table) Dim() int { return t.cfg.Dim }

// Rows returns all vectors, (nodes, Dim). They belong to the table.
func (t *Table) Rows() []float32 { return t.rows.values }

// initLength is the typical length of initial vectors. It is small so that nodes which no step has
// changed weigh little beside nodes that were learned.
const initLength = 0.1

// Init draws the vectors and resets the optimizer. Each value is uniform around 0, and a function
// of the seed, its node and its column.
func (t *Table) Init(seed uint64) {
	const partRows = 1024
	dim := t.cfg.Dim
	parts := (int(t.cfg.Nodes) + partRows - 1) / partRows
	t.pool.Run(parts, func(part int) {
		for v := part * partRows; v < min(int(t.cfg.Nodes), (part+1)*partRows); v++ {
			initRow(t.rows.values[v*dim:(v+1)*dim], seed, uint64(v))
		}
	})
	t.Reset()
}

// initRow draws the initial vector of a node.
func initRow(row []float32, seed, node uint64) {
	limit := initLength * math.Sqrt(3/float64(len(row)))
	draw := rng.NewStream(rng.Key(initDomain, seed, node))
	for i := range row {
		row[i] = float32((2*draw.Float64() - 1) * limit)
	}
}

// Reset sets the optimizer's state to zeros, as before the first step.
func (t *Table) Reset() {
	for _, s := range t.state {
		clear(s.values)
	}
}

// Input returns what a model computes a batch from: for each node its features, which are given in
// the order of the nodes, and then its vector. It is valid until the next call.
func (t *Table) Input(nodes []sample.NodeID, features []float32) ([]float32, error) {
	width := t.cfg.Features + t.cfg.Dim
	n := len(nodes) * width
	if err := t.fit(n); err != nil {
		return nil, err
	}
	x := mem.View[float32](t.input.Bytes())[:n:n]
	t.batch = kernel.Rows{Cols: t.cfg.Dim, At: mem.View[uint32](mem.BytesOf(nodes)), X: x,
		Stride: width}
	t.batch.Gather(t.pool, t.rows.values)
	if f := t.cfg.Features; f > 0 {
		for i := range nodes {
			copy(x[i*width:i*width+f], features[i*f:(i+1)*f])
		}
	}
	return x, nil
}

// fit makes room for n values of input. The previous input is lost when it grows.
func (t *Table) fit(n int) error {
	if t.input != nil && 4*n <= len(t.input.Bytes()) {
		return nil
	}
	if err := t.Trim(); err != nil {
		return err
	}
	room := n + n/8
	if !t.cfg.Repeats {
		room = min(room, int(t.cfg.Nodes)*(t.cfg.Features+t.cfg.Dim))
	}
	a, err := mem.NewArena(t.budget, "input of a batch", 4*int64(room))
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	t.input = a
	return nil
}

// Trim frees the memory of the batch's input; the next call of Input takes it again.
func (t *Table) Trim() error {
	if t.input == nil {
		return nil
	}
	err := t.input.Free()
	t.input, t.batch = nil, kernel.Rows{}
	return err
}

// TakeGradient replaces the last input, in its memory, by the gradient of it. The rows of a node
// that the batch has several times are added up, in their order.
func (t *Table) TakeGradient(be backend.Backend, g backend.Tensor) error {
	be.Read(t.batch.X, g)
	if !t.cfg.Repeats {
		return nil
	}
	b := &t.batch
	nodes := mem.View[sample.NodeID](mem.BytesOf(b.At))
	t.unique, t.places = mem.Resize(t.unique, len(nodes)), mem.Resize(t.places, len(nodes))
	err := t.held.AtLeast(4 * int64(cap(t.unique)+cap(t.places)))
	if err == nil {
		_, err = t.numbers.Reset(context.Background(), nil)
	}
	if err == nil {
		t.unique, err = t.numbers.Extend(context.Background(), t.unique[:0], nodes, t.places)
	}
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	next := uint32(0)
	for i, at := range t.places { // the place of a node is not behind its first row
		row, to := b.X[i*b.Stride:][:b.Stride], b.X[int(at)*b.Stride:][:b.Stride]
		if at == next {
			copy(to, row)
			next++
			continue
		}
		for j, v := range row {
			to[j] += v
		}
	}
	b.At = mem.View[uint32](mem.BytesOf(t.unique))
	b.X = b.X[:len(t.unique)*b.Stride]
	return nil
}

// Squares returns the sum of the squares of the vectors' gradient.
func (t *Table) Squares() float64 { return t.batch.Squares(t.pool) }

// Scale multiplies the vectors' gradient by factor.
func (t *Table) Scale(factor float32) { t.batch.Scale(t.pool, factor) }

// Adam takes one step for the nodes of the batch. Vectors and moments of other nodes stay as they
// are; the bias of all moments is corrected by the number of all steps. There is no weight decay,
// here and below: how much a node decays would depend on how often it is in batches.
func (t *Table) Adam(s backend.AdamStep) {
	t.batch.Adam(t.pool, t.rows.values, t.state[0].values, t.state[1].values, s)
}

// SGD takes one step for the nodes of the batch.
func (t *Table) SGD(rate float32) { t.batch.SGD(t.pool, t.rows.values, rate) }

// Adagrad takes one step for the nodes of the batch.
func (t *Table) Adagrad(rate, eps float32) {
	t.batch.Adagrad(t.pool, t.rows.values, t.state[0].values, rate, eps)
}

// KeepBest copies the vectors to the table of the best evaluation.
func (t *Table) KeepBest() { copy(t.best.values, t.rows.values) }

// SwapBest exchanges the vectors and those of the best evaluation.
func (t *Table) SwapBest() { t.rows.values, t.best.values = t.best.values, t.rows.values }

// arrays returns the arrays that a checkpoint holds, with the best vectors if best is set.
func (t *Table) arrays(best bool) []array {
	all := slices.Concat([]array{t.rows}, t.state)
	if best {
		all = append(all, t.best)
	}
	return all
}
