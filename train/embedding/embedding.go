// Package embedding keeps a learned vector for each node: the table of vectors, the state of the
// optimizer for each of its rows, and the table of the best evaluation, all in memory, and what a
// checkpoint has of them.
//
// A step reads and changes the rows of its batch, and no others. They are copied when the step
// begins, not when the batch was gathered: batches are made ahead, and rows change with each step.
package embedding

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/compute/backend"
	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/sample"
)

// initDomain keeps the keys of initial vectors apart from other draws.
const initDomain = 0x656d6264 // "embd"

// The names of arrays in a checkpoint, beside those of the optimizer's state.
const (
	rowsName = "embeddings"
	bestName = "best embeddings"
)

// Config says which table is made.
type Config struct {
	// Nodes and Dim are the rows and columns of the table.
	Nodes uint64
	Dim   int
	// Features is the width of what stands before a node's vector in the input of a model.
	Features int
	// Training keeps the state of the optimizer, whose arrays are called State, and the table of
	// the best evaluation.
	Training bool
	State    []string
	// Threads is how many goroutines copy and change rows.
	Threads int
}

// Bytes is the memory of the arrays of a table.
func (c *Config) Bytes() int64 {
	arrays := int64(1)
	if c.Training {
		arrays = 2 + int64(len(c.State))
	}
	return arrays * mem.ArenaBytes(c.arrayBytes())
}

// CheckpointBytes is what the file of a checkpoint takes at most.
func (c *Config) CheckpointBytes() int64 {
	return headerBytes + (2+int64(len(c.State)))*c.arrayBytes()
}

func (c *Config) arrayBytes() int64 { return 4 * int64(c.Nodes) * int64(c.Dim) }

// InputBytes is the memory of the input of a batch of so many nodes.
func (c *Config) InputBytes(nodes int64) int64 {
	return mem.ArenaBytes(4 * min(nodes, int64(c.Nodes)) * int64(c.Features+c.Dim))
}

// array is a matrix of the table's shape.
type array struct {
	name   string
	values []float32
}

// Table has a vector for each node. It is for one goroutine.
type Table struct {
	cfg    Config
	budget *mem.Budget
	pool   *kernel.Pool
	arenas []*mem.Arena
	rows   array
	best   array   // without values if nothing is trained
	state  []array // of the optimizer

	input *mem.Arena  // nil until the first batch
	batch kernel.Rows // the last one's
}

// New takes the memory of a table of zeros, which is counted in budget. The caller closes it.
func New(c Config, budget *mem.Budget) (*Table, error) {
	t := &Table{cfg: c, budget: budget, pool: kernel.NewPool(c.Threads)}
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

// Close frees the memory.
func (t *Table) Close() error {
	err := t.Trim()
	for _, a := range t.arenas {
		err = errors.Join(err, a.Free())
	}
	t.pool.Close()
	return err
}

// Dim is the width of the vectors.
func (t *Table) Dim() int { return t.cfg.Dim }

// Rows are all vectors, (nodes, Dim).
func (t *Table) Rows() []float32 { return t.rows.values }

// initLength is about how long vectors are at first: nodes that no step has changed weigh little
// beside those that were learned.
const initLength = 0.1

// Init draws the vectors, and forgets all steps. Each value is a function of the seed, its node and
// its column: uniform around 0.
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

// initRow draws the first vector of a node.
func initRow(row []float32, seed, node uint64) {
	limit := initLength * math.Sqrt(3/float64(len(row)))
	draw := rng.NewStream(rng.Key(initDomain, seed, node))
	for i := range row {
		row[i] = float32((2*draw.Float64() - 1) * limit)
	}
}

// Reset forgets all steps: the state of the optimizer is zeros.
func (t *Table) Reset() {
	for _, s := range t.state {
		clear(s.values)
	}
}

// Input is what a model computes a batch from: for each node its features, given in the same order,
// and behind them its vector. It is valid until the next call.
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

// fit has room for n values of input. What was there is lost when it grows.
func (t *Table) fit(n int) error {
	if t.input != nil && 4*n <= len(t.input.Bytes()) {
		return nil
	}
	if err := t.Trim(); err != nil {
		return err
	}
	most := int(t.cfg.Nodes) * (t.cfg.Features + t.cfg.Dim)
	a, err := mem.NewArena(t.budget, "input of a batch", 4*int64(min(most, n+n/8)))
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	t.input = a
	return nil
}

// Trim gives the memory of batches back, for others to use until the next one.
func (t *Table) Trim() error {
	if t.input == nil {
		return nil
	}
	err := t.input.Free()
	t.input, t.batch = nil, kernel.Rows{}
	return err
}

// TakeGradient has the gradient of the last input take the place of that.
func (t *Table) TakeGradient(be backend.Backend, g backend.Tensor) { be.Read(t.batch.X, g) }

// Squares is the sum of the squares of the gradient of the vectors, and Scale multiplies it.
func (t *Table) Squares() float64 { return t.batch.Squares(t.pool) }

// Scale multiplies the gradient of the vectors.
func (t *Table) Scale(factor float32) { t.batch.Scale(t.pool, factor) }

// Adam takes one step for the nodes of the batch. The moments of others stay as they are, and so do
// they; the bias of all moments is corrected by the number of all steps. There is no weight decay,
// here and below: nodes would decay by how often they are in batches.
func (t *Table) Adam(s backend.AdamStep) {
	t.batch.Adam(t.pool, t.rows.values, t.state[0].values, t.state[1].values, s)
}

// SGD takes one step for the nodes of the batch.
func (t *Table) SGD(rate float32) { t.batch.SGD(t.pool, t.rows.values, rate) }

// Adagrad takes one step for the nodes of the batch.
func (t *Table) Adagrad(rate, eps float32) {
	t.batch.Adagrad(t.pool, t.rows.values, t.state[0].values, rate, eps)
}

// KeepBest keeps the vectors as those of the best evaluation.
func (t *Table) KeepBest() { copy(t.best.values, t.rows.values) }

// SwapBest has the vectors and those of the best evaluation change places.
func (t *Table) SwapBest() { t.rows.values, t.best.values = t.best.values, t.rows.values }

// arrays are those of a checkpoint.
func (t *Table) arrays(best bool) []array {
	all := slices.Concat([]array{t.rows}, t.state)
	if best {
		all = append(all, t.best)
	}
	return all
}
