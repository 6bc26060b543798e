package backend

import (
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/train/kernel"
)

// cpu computes with train/kernel. Tensors are slices of arenas outside the Go heap, which use huge
// pages: the gathers of aggregation are a third faster so.
type cpu struct {
	pool    *kernel.Pool
	budget  *mem.Budget
	params  []*mem.Arena
	scratch scratch
	held    mem.Account // the pool's memory
}

func newCPU(opt Options) *cpu {
	return &cpu{pool: kernel.NewPool(opt.Workers), budget: opt.Budget,
		held:    mem.NewAccount(opt.Budget, "scratch of kernels"),
		scratch: scratch{budget: opt.Budget, what: "activations and gradients of a step"}}
}

// Name is "cpu".
func (c *cpu) Name() string { return "cpu" }

// Workers is the size of the pool.
func (c *cpu) Workers() int { return c.pool.Workers() }

// Params maps an arena of n floats.
func (c *cpu) Params(what string, n int) (Tensor, error) {
	a, err := mem.NewArena(c.budget, what, int64(n)*4)
	if err != nil {
		return Tensor{}, err
	}
	c.params = append(c.params, a)
	return Tensor{Rows: 1, Cols: n, host: mem.View[float32](a.Bytes())[:n:n]}, nil
}

// Begin takes all scratch back.
func (c *cpu) Begin() error {
	if err := c.held.AtLeast(c.pool.Bytes()); err != nil {
		return err
	}
	return c.scratch.reset()
}

// Trim frees the scratch arena.
func (c *cpu) Trim() error { return c.scratch.free() }

// Scratch takes memory of the step's arena.
func (c *cpu) Scratch(rows, cols int) (Tensor, error) {
	x, err := c.scratch.take(rows * cols)
	return Tensor{Rows: rows, Cols: cols, host: x}, err
}

// Host aliases x.
func (c *cpu) Host(x []float32, rows, cols int) (Tensor, error) {
	return Tensor{Rows: rows, Cols: cols, host: x[:rows*cols]}, nil
}

// Segments aliases off and idx.
func (c *cpu) Segments(off, idx []uint32, rows int) (Segments, error) {
	s := Segments{off: off, idx: idx}
	if rows == 0 {
		return s, nil
	}
	var err error
	s.back, err = c.scratch.take(kernel.TransposedWords(rows, len(idx), max(0, len(off)-1)))
	return s, err
}

// Read copies t to dst.
func (c *cpu) Read(dst []float32, t Tensor) { copy(dst[:t.Len()], t.host) }

// Write copies src to t.
func (c *cpu) Write(t Tensor, src []float32) { copy(t.host, src[:t.Len()]) }

// MatMul is c = a·b.
func (c *cpu) MatMul(y, a, b Tensor, acc bool) {
	fit(a.Cols == b.Rows && y.Rows == a.Rows && y.Cols == b.Cols, "MatMul", y, a, b)
	kernel.GEMM(c.pool, y.host, a.host, b.host, a.Rows, a.Cols, b.Cols, acc)
}

// MatMulTA is c = aᵀ·b.
func (c *cpu) MatMulTA(y, a, b Tensor, acc bool) {
	fit(a.Rows == b.Rows && y.Rows == a.Cols && y.Cols == b.Cols, "MatMulTA", y, a, b)
	kernel.GEMMTA(c.pool, y.host, a.host, b.host, a.Rows, a.Cols, b.Cols, acc)
}

// MatMulTB is c = a·bᵀ.
func (c *cpu) MatMulTB(y, a, b Tensor, acc bool) {
	fit(a.Cols == b.Cols && y.Rows == a.Rows && y.Cols == b.Rows, "MatMulTB", y, a, b)
	kernel.GEMMTB(c.pool, y.host, a.host, b.host, a.Rows, a.Cols, b.Rows, acc)
}

// SegmentMean averages rows of x.
func (c *cpu) SegmentMean(out, x Tensor, s Segments) {
	fit(out.Cols == x.Cols && out.Rows+1 == len(s.off), "SegmentMean", out, x)
	kernel.SegmentMean(c.pool, out.host, x.host, s.off, s.idx, x.Cols)
}

// SegmentMeanGrad spreads gradients to the rows averaged.
func (c *cpu) SegmentMeanGrad(dx, dout Tensor, s Segments, fresh int) {
	fit(dout.Cols == dx.Cols && dout.Rows+1 == len(s.off), "SegmentMeanGrad", dx, dout)
	fit(len(s.back) == kernel.TransposedWords(dx.Rows, len(s.idx), dout.Rows),
		"SegmentMeanGrad without memory", dx, dout)
	t := kernel.TransposedIn(s.back, dx.Rows, len(s.idx), dout.Rows)
	t.Build(s.off, s.idx, dx.Rows)
	t.MeanGrad(c.pool, dx.host, dout.host, dx.Cols, fresh)
}

// Bias adds bias to each row.
func (c *cpu) Bias(x, bias Tensor) {
	fit(bias.Len() == x.Cols, "Bias", x, bias)
	kernel.Bias(c.pool, x.host, bias.host, x.Rows, x.Cols)
}

// BiasReLU adds bias to each row and cuts at zero.
func (c *cpu) BiasReLU(x, bias Tensor) {
	fit(bias.Len() == x.Cols, "BiasReLU", x, bias)
	kernel.BiasReLU(c.pool, x.host, bias.host, x.Rows, x.Cols)
}

// ReLUGrad masks and scales dx by y.
func (c *cpu) ReLUGrad(dx, y Tensor, rate float32) {
	fit(dx.Len() == y.Len(), "ReLUGrad", dx, y)
	kernel.DropoutReLUGrad(c.pool, dx.host, y.host, rate)
}

// Dropout masks x.
func (c *cpu) Dropout(x Tensor, first int, rate float32, key uint64) {
	kernel.Dropout(c.pool, x.host, first, rate, key)
}

// SegmentMeanDropout averages masked rows of x.
func (c *cpu) SegmentMeanDropout(out, x Tensor, s Segments, at []uint32, rate float32,
	key uint64) {
	fit(out.Cols == x.Cols && out.Rows+1 == len(s.off) && len(at) == len(s.idx),
		"SegmentMeanDropout", out, x)
	kernel.SegmentMeanDropout(c.pool, out.host, x.host, s.off, s.idx, at, x.Cols, rate, key)
}

// ColumnSum sums rows.
func (c *cpu) ColumnSum(out, x Tensor) {
	fit(out.Len() == x.Cols, "ColumnSum", out, x)
	kernel.ColumnSum(c.pool, out.host, x.host, x.Rows, x.Cols, false)
}

// Add is dst += src.
func (c *cpu) Add(dst, src Tensor) {
	fit(dst.Len() == src.Len(), "Add", dst, src)
	kernel.Add(c.pool, dst.host, src.host)
}

// Zero clears x.
func (c *cpu) Zero(x Tensor) { clear(x.host) }

// SoftmaxCrossEntropy is the loss of class labels.
func (c *cpu) SoftmaxCrossEntropy(grad, logits Tensor, labels []int32) (float64, int, int) {
	fit(grad.Len() == logits.Len() && len(labels) == logits.Rows, "SoftmaxCrossEntropy", logits)
	return kernel.SoftmaxCrossEntropy(c.pool, grad.host, logits.host, labels, logits.Rows,
		logits.Cols)
}

// SigmoidBCE is the loss of multi-labels.
func (c *cpu) SigmoidBCE(grad, logits, targets Tensor) float64 {
	fit(grad.Len() == logits.Len() && targets.Len() == logits.Len(), "SigmoidBCE", logits, targets)
	return kernel.SigmoidBCE(c.pool, grad.host, logits.host, targets.host, logits.Rows,
		logits.Cols)
}

// Adam takes one step.
func (c *cpu) Adam(w, g Tensor, m Moments, s AdamStep) {
	kernel.Adam(c.pool, w.host, g.host, m.M.host, m.V.host, s.Step, s.Rate, s.Beta1, s.Beta2,
		s.Eps, s.WeightDecay, s.Decoupled)
}

// SGD takes one step.
func (c *cpu) SGD(w, g Tensor, rate, weightDecay float32) {
	kernel.SGD(c.pool, w.host, g.host, rate, weightDecay)
}

// Adagrad takes one step.
func (c *cpu) Adagrad(w, g, sums Tensor, rate, eps, weightDecay float32) {
	kernel.Adagrad(c.pool, w.host, g.host, sums.host, rate, eps, weightDecay)
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

// fit checks shapes.
func fit(ok bool, op string, ts ...Tensor) {
	if ok {
		return
	}
	shapes := ""
	for _, t := range ts {
		shapes += " " + shape(t)
	}
	panic("BUG: " + op + " of shapes" + shapes)
}

func shape(t Tensor) string { return fmt.Sprintf("(%d,%d)", t.Rows, t.Cols) }
