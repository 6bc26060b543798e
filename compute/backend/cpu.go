package backend

import (
	"errors"
	"fmt"

	"gdb/compute/kernel"
	"gdb/compute/kernel/bf16"
	"gdb/internal/mem"
)

// cpu computes with compute/kernel. Tensors lie in memory of the caller, or in arenas outside the
// Go heap, which use huge pages: gathers of aggregation are a third faster so.
type cpu struct {
	pool    *kernel.Pool
	budget  *mem.Budget
	params  []*mem.Arena
	scratch scratch
	held    mem.Account // the pool's memory
	err     error       // the first of the step

	kept   [][]float32        // parameters and tables: Memory 0, 1, …
	tables map[*float32]table // by their first value
	spare  []Memory           // of tables that were forgotten
	step   [][]float32        // of this step: Memory -1, -2, …
	lists  []cpuLists         // likewise, by Segments.ID
	losses []Loss             // that were not read
}

// table is rows of the caller.
type table struct {
	Tensor
	values []float32
}

// cpuLists are Lists with the memory for the way back, if it was asked for, and what it was made
// into at the first gradient.
type cpuLists struct {
	Lists
	back       []float32
	transposed *kernel.Transposed
}

func newCPU(opt Options) *cpu {
	return &cpu{pool: kernel.NewPool(opt.Workers), budget: opt.Budget,
		tables:  map[*float32]table{},
		held:    mem.NewAccount(opt.Budget, "scratch of kernels"),
		scratch: scratch{budget: opt.Budget, what: "activations and gradients of a step"}}
}

// values are those of a tensor.
func (c *cpu) values(t Tensor) []float32 {
	if t.Half {
		panic("BUG: values of bfloat16 are read as float32")
	}
	end := t.Offset + t.Len()
	return c.memory(t.Memory)[t.Offset:end:end]
}

// memory is a piece of memory.
func (c *cpu) memory(m Memory) []float32 {
	if m >= 0 {
		return c.kept[m]
	}
	return c.step[-1-m]
}

// keep numbers memory that lives until Close.
func (c *cpu) keep(x []float32, rows, cols int) Tensor {
	c.kept = append(c.kept, x)
	return Tensor{Rows: rows, Cols: cols, Memory: Memory(len(c.kept) - 1)}
}

// lend numbers memory that lives until the next step.
func (c *cpu) lend(x []float32, rows, cols int) Tensor {
	c.step = append(c.step, x)
	return Tensor{Rows: rows, Cols: cols, Memory: Memory(-len(c.step))}
}

// Name is "cpu".
func (c *cpu) Name() string { return "cpu" }

// Workers is the size of the pool.
func (c *cpu) Workers() int { return c.pool.Workers() }

// StepsPerRead is 1: losses are there.
func (c *cpu) StepsPerRead() int { return 1 }

// Groups is false: there are no launches.
func (c *cpu) Groups() bool { return false }

// Launches are none.
func (c *cpu) Launches() Launches { return Launches{} }

// Params maps an arena of n floats.
func (c *cpu) Params(what string, n int) (Tensor, error) {
	a, err := mem.NewArena(c.budget, what, int64(n)*4)
	if err != nil {
		return Tensor{}, err
	}
	c.params = append(c.params, a)
	return c.keep(mem.View[float32](a.Bytes())[:n:n], 1, n), nil
}

// Table aliases x.
func (c *cpu) Table(x []float32, rows, cols int) Tensor {
	x = x[:rows*cols]
	if len(x) == 0 {
		return c.keep(x, rows, cols)
	}
	t, known := c.tables[&x[0]]
	if known && t.Rows == rows && t.Cols == cols {
		return t.Tensor
	}
	c.Forget(x)
	t = table{Tensor: Tensor{Rows: rows, Cols: cols}, values: x}
	if n := len(c.spare); n > 0 {
		t.Memory, c.spare = c.spare[n-1], c.spare[:n-1]
		c.kept[t.Memory] = x
	} else {
		t.Tensor = c.keep(x, rows, cols)
	}
	c.tables[&x[0]] = t
	return t.Tensor
}

// Forget drops the alias.
func (c *cpu) Forget(x []float32) {
	if len(x) == 0 {
		return
	}
	if t, known := c.tables[&x[0]]; known {
		c.kept[t.Memory], c.spare = nil, append(c.spare, t.Memory)
		delete(c.tables, &x[0])
	}
}

// Begin takes all scratch back.
func (c *cpu) Begin() error {
	c.endStep()
	if err := c.held.AtLeast(c.pool.Bytes()); err != nil {
		return err
	}
	return c.scratch.reset()
}

// endStep forgets what was handed out.
func (c *cpu) endStep() {
	clear(c.step)
	clear(c.lists)
	c.err, c.step, c.lists = nil, c.step[:0], c.lists[:0]
}

// Err is the first error of the step.
func (c *cpu) Err() error { return c.err }

// Trim frees the scratch arena, and with it ends the step.
func (c *cpu) Trim() error {
	c.endStep()
	return c.scratch.free()
}

// take is n floats of the step's arena, or none after an error.
func (c *cpu) take(n int) []float32 {
	if c.err != nil {
		return nil
	}
	x, err := c.scratch.take(n)
	c.err = err
	return x
}

// Scratch takes memory of the step's arena.
func (c *cpu) Scratch(rows, cols int) Tensor { return c.lend(c.take(rows*cols), rows, cols) }

// Host aliases x, or copies it behind zeros.
func (c *cpu) Host(x []float32, rows, cols int) Tensor {
	n := rows * cols
	if len(x) >= n {
		return c.lend(x[:n], rows, cols)
	}
	all := c.take(n)
	if zeros := len(all) - len(x); zeros > 0 {
		clear(all[:zeros])
		copy(all[zeros:], x)
	}
	return c.lend(all, rows, cols)
}

// Segments aliases lists.
func (c *cpu) Segments(l Lists) Segments {
	n, lists := len(l.Idx), max(0, len(l.Off)-1)
	s := cpuLists{Lists: l}
	if l.Rows > 0 {
		s.back = c.take(SegmentFloats(l.Rows, n, lists, l.Entries))
	}
	c.lists = append(c.lists, s)
	return Segments{Lists: lists, Entries: n, ID: len(c.lists) - 1}
}

// Read copies t to dst.
func (c *cpu) Read(dst []float32, t Tensor) {
	if c.there(t) {
		copy(dst[:t.Len()], c.values(t))
	}
}

// Write copies src to t.
func (c *cpu) Write(t Tensor, src []float32) {
	if c.there(t) {
		copy(c.values(t), src[:t.Len()])
	}
}

// MatMul is c = a·b.
func (c *cpu) MatMul(y, a, b Tensor, acc bool) {
	if !c.ready(a.Cols == b.Rows && y.Rows == a.Rows && y.Cols == b.Cols, "MatMul", y, a, b) {
		return
	}
	if c.matMulHalf(y, a, b, 1, acc) {
		return
	}
	kernel.GEMM(c.pool, c.values(y), c.values(a), c.values(b), a.Rows, a.Cols, b.Cols, acc)
}

// MatMulTA is c = aᵀ·b.
func (c *cpu) MatMulTA(y, a, b Tensor, acc bool) {
	if !c.ready(a.Rows == b.Rows && y.Rows == a.Cols && y.Cols == b.Cols, "MatMulTA", y, a, b) {
		return
	}
	if c.matMulTAHalf(y, a, b, 1, acc) {
		return
	}
	kernel.GEMMTA(c.pool, c.values(y), c.values(a), c.values(b), a.Rows, a.Cols, b.Cols, acc)
}

// MatMulTB is c = a·bᵀ.
func (c *cpu) MatMulTB(y, a, b Tensor, acc bool) {
	if !c.ready(a.Cols == b.Cols && y.Rows == a.Rows && y.Cols == b.Rows, "MatMulTB", y, a, b) {
		return
	}
	if c.matMulTBHalf(y, a, b, 1, acc) {
		return
	}
	kernel.GEMMTB(c.pool, c.values(y), c.values(a), c.values(b), a.Rows, a.Cols, b.Rows, acc)
}

// Bias adds bias to each row.
func (c *cpu) Bias(x, bias Tensor) {
	if !c.ready(bias.Len() == x.Cols, "Bias", x, bias) {
		return
	}
	kernel.Bias(c.pool, c.values(x), c.values(bias), x.Rows, x.Cols)
}

// BiasReLU adds bias to each row and cuts at zero.
func (c *cpu) BiasReLU(x, bias Tensor) {
	if !c.ready(bias.Len() == x.Cols, "BiasReLU", x, bias) {
		return
	}
	kernel.BiasReLU(c.pool, c.values(x), c.values(bias), x.Rows, x.Cols)
}

// ColumnSum sums rows.
func (c *cpu) ColumnSum(out, x Tensor) {
	if !c.ready(out.Len() == x.Cols, "ColumnSum", out, x) {
		return
	}
	if x.Half {
		bf16.ColumnSum(c.pool, c.values(out), c.numbers(x), x.Rows, x.Cols)
		return
	}
	kernel.ColumnSum(c.pool, c.values(out), c.values(x), x.Rows, x.Cols, false)
}

// Add is dst += src.
func (c *cpu) Add(dst, src Tensor) {
	if !c.ready(dst.Len() == src.Len(), "Add", dst, src) {
		return
	}
	kernel.Add(c.pool, c.values(dst), c.values(src))
}

// Copy copies values.
func (c *cpu) Copy(dst, src Tensor) {
	switch {
	case !c.ready(dst.Len() == src.Len(), "Copy", dst, src):
	case src.Half:
		copy(c.numbers(dst), c.numbers(src))
	default:
		copy(c.values(dst), c.values(src))
	}
}

// Zero clears x.
func (c *cpu) Zero(x Tensor) {
	if c.there(x) {
		clear(c.values(x))
	}
}

// Losses hands over the losses so far.
func (c *cpu) Losses(dst []Loss) []Loss {
	dst = append(dst, c.losses...)
	c.losses = c.losses[:0]
	return dst
}

// ClipNorm bounds the norm of g.
func (c *cpu) ClipNorm(g Tensor, most float32, beside float64) (factor float32) {
	if !c.ready(true, "ClipNorm", g) {
		return 1
	}
	return kernel.ClipNorm(c.pool, c.values(g), most, beside)
}

// Adam takes one step.
func (c *cpu) Adam(w, g Tensor, m Moments, s AdamStep) {
	if c.ready(w.Len() == g.Len(), "Adam", w, g) {
		kernel.Adam(c.pool, c.values(w), c.values(g), c.values(m.M), c.values(m.V), s.Step, s.Rate,
			s.Beta1, s.Beta2, s.Eps, s.WeightDecay, s.Decoupled)
	}
}

// SGD takes one step.
func (c *cpu) SGD(w, g Tensor, rate, weightDecay float32) {
	if c.ready(w.Len() == g.Len(), "SGD", w, g) {
		kernel.SGD(c.pool, c.values(w), c.values(g), rate, weightDecay)
	}
}

// Adagrad takes one step.
func (c *cpu) Adagrad(w, g, sums Tensor, rate, eps, weightDecay float32) {
	if c.ready(w.Len() == g.Len() && w.Len() == sums.Len(), "Adagrad", w, g, sums) {
		kernel.Adagrad(c.pool, c.values(w), c.values(g), c.values(sums), rate, eps, weightDecay)
	}
}

// Close stops the pool and frees all memory.
func (c *cpu) Close() error {
	c.pool.Close()
	c.held.Release()
	err := c.scratch.free()
	for _, a := range c.params {
		err = errors.Join(err, a.Free())
	}
	c.params = nil
	return err
}

// there says whether a tensor has memory: one of a step that was short of it has none.
func (c *cpu) there(t Tensor) bool { return t.Memory >= 0 || c.err == nil }

// ready says whether an operation can be done: not after an error. It checks shapes first.
func (c *cpu) ready(fits bool, op string, ts ...Tensor) bool {
	if fits {
		return c.err == nil
	}
	shapes := ""
	for _, t := range ts {
		shapes += fmt.Sprintf(" (%d,%d)", t.Rows, t.Cols)
	}
	panic("BUG: " + op + " of shapes" + shapes)
}
