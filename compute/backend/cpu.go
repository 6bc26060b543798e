package backend

import (
	"errors"

	"gdb/compute/decoder"
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
	scratch Scratch[*mem.Arena]
	held    mem.Account // the pool's memory
	err     error       // the first of the step

	kept   [][]float32        // parameters and tables: Memory 0, 1, …
	tables map[*float32]table // by their first value
	spare  []Memory           // of tables that were forgotten
	step   [][]float32        // of this step: Memory -1, -2, …
	lists  []cpuLists         // likewise, by Segments.ID
	losses []Loss             // that were not read
	// matrices is memory of comparisons of links.
	matrices decoder.Matrices
}

// scratchAlign is the alignment of a scratch tensor in floats: a cache line and a vector register.
const scratchAlign = 16

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
	return onPool(kernel.NewPool(opt.Workers), opt)
}

// OnPool returns the backend that computes with a pool, whose owner counts its memory.
func OnPool(p *kernel.Pool) Backend { return onPool(p, Options{}) }

func onPool(p *kernel.Pool, opt Options) *cpu {
	return &cpu{pool: p, budget: opt.Budget,
		tables: map[*float32]table{},
		held:   mem.NewAccount(opt.Budget, "scratch of kernels"),
		scratch: Scratch[*mem.Arena]{Align: scratchAlign, Free: (*mem.Arena).Free,
			Grow: func(size, _ int) (*mem.Arena, int, error) {
				a, err := mem.NewArena(opt.Budget, "activations and gradients of a step",
					4*int64(size))
				return a, size, err
			}}}
}

// values returns the values of a tensor.
func (c *cpu) values(t Tensor) []float32 {
	if t.Half {
		panic("BUG: values of bfloat16 are read as float32")
	}
	end := t.Offset + t.Len()
	return c.memory(t.Memory)[t.Offset:end:end]
}

// numbers returns the values of a tensor of bfloat16.
func (c *cpu) numbers(t Tensor) []bf16.Number {
	if !t.Half {
		panic("BUG: values of float32 are read as bfloat16")
	}
	end := t.Offset + t.Len()
	return mem.View[bf16.Number](mem.BytesOf(c.memory(t.Memory)))[t.Offset:end:end]
}

// words returns the values of a tensor as row numbers.
func (c *cpu) words(t Tensor) []uint32 { return mem.View[uint32](mem.BytesOf(c.values(t))) }

// memory returns a piece of memory by its number.
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

// About says that there are no launches, and that losses are there at once.
func (c *cpu) About() About {
	return About{Name: CPU, Workers: c.pool.Workers(), StepsPerRead: 1}
}

// Launches returns none.
func (c *cpu) Launches() Launches { return Launches{} }

// Device returns none.
func (c *cpu) Device() Device { return nil }

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
	return c.scratch.Reset()
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
	return c.scratch.Release()
}

// take returns n floats of the step's arena, or none after an error.
func (c *cpu) take(n int) []float32 {
	if c.err != nil {
		return nil
	}
	a, at, err := c.scratch.Take(n)
	if err != nil {
		c.err = err
		return nil
	}
	return mem.View[float32](a.Bytes())[at : at+n : at+n]
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
	return Segments{Lists: lists, Entries: n, Rows: l.Rows, ID: len(c.lists) - 1,
		Cut: l.Cut.Dim > 0}
}

// Read copies t to dst.
func (c *cpu) Read(dst []float32, t Tensor) {
	switch {
	case !c.there(t):
	case t.Half:
		bf16.Widen(c.pool, dst, c.numbers(t))
	default:
		copy(dst[:t.Len()], c.values(t))
	}
}

// Write copies src to t.
func (c *cpu) Write(t Tensor, src []float32) {
	switch {
	case !c.there(t):
	case t.Half:
		bf16.Narrow(c.pool, c.numbers(t), src[:t.Len()])
	default:
		copy(c.values(t), src[:t.Len()])
	}
}

// Run does an operation with its kernel, or as its reference does it.
func (c *cpu) Run(op *Op, o *Operands) {
	op.Check(o)
	if c.err != nil {
		return
	}
	if run := cpuKernels[op.Name]; run != nil {
		run(c, o)
		return
	}
	var lists Lists
	if o.Lists.ID < len(c.lists) {
		lists = c.lists[o.Lists.ID].Lists
	}
	op.Plain(c, o, lists)
}

// Losses hands over the losses so far.
func (c *cpu) Losses(dst []Loss) []Loss {
	dst = append(dst, c.losses...)
	c.losses = c.losses[:0]
	return dst
}

// ClipNorm bounds the norm of g.
func (c *cpu) ClipNorm(g Tensor, most float32, beside float64) (factor float32) {
	if c.err != nil {
		return 1
	}
	return kernel.ClipNorm(c.pool, c.values(g), most, beside)
}

// Close stops the pool and frees all memory.
func (c *cpu) Close() error {
	c.pool.Close()
	c.held.Release()
	err := c.scratch.Release()
	for _, a := range c.params {
		err = errors.Join(err, a.Free())
	}
	c.params = nil
	return err
}

// there reports whether a tensor has memory: one of a step that was short of it has none.
func (c *cpu) there(t Tensor) bool { return t.Memory >= 0 || c.err == nil }
