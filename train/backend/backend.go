// Package backend runs the operations of training on a device. Models are written once against
// Backend; the CPU is the first device.
//
// Tensors are row-major matrices of float32. Two kinds of memory stand behind them: parameters,
// which live until Close, and scratch, which lives until the next Begin, so that a step allocates
// nothing once it has grown to the size of a batch.
package backend

import (
	"fmt"

	"gdb/internal/invariants"
	"gdb/internal/mem"
	"gdb/train/kernel"
)

// Tensor is a matrix of Rows x Cols in a device's memory. Only the backend that made it sees what
// is inside. It is a view: copying it copies no values.
type Tensor struct {
	Rows, Cols int
	host       []float32 // the values, on the CPU
}

// Slice is the view of n rows from first on.
func (t Tensor) Slice(first, n int) Tensor {
	return Tensor{Rows: n, Cols: t.Cols, host: t.host[first*t.Cols : (first+n)*t.Cols]}
}

// View is the part of a vector (one row) that begins at value off, as a matrix.
func (t Tensor) View(off, rows, cols int) Tensor {
	invariants.Check(t.Rows == 1, "view of a tensor of %d rows", t.Rows)
	return Tensor{Rows: rows, Cols: cols, host: t.host[off : off+rows*cols]}
}

// Flat is the tensor as a vector (one row).
func (t Tensor) Flat() Tensor { return Tensor{Rows: 1, Cols: t.Len(), host: t.host} }

// Len is the number of values.
func (t Tensor) Len() int { return t.Rows * t.Cols }

// Segments are lists of row numbers: those of list i are Idx[Off[i]:Off[i+1]].
type Segments struct {
	off, idx []uint32
	back     []float32 // memory for the way back, if it was asked for
}

// Moments is the state of Adam and AdamW, of the parameters' shape.
type Moments struct{ M, V Tensor }

// AdamStep are the settings of one step of Adam, the Step-th from 1 on. Decoupled is AdamW: the
// decay shrinks the weights and is not part of the gradient.
type AdamStep struct {
	Step                                 int
	Rate, Beta1, Beta2, Eps, WeightDecay float32
	Decoupled                            bool
}

// Backend runs operations on one device. It is for one goroutine. Operations panic with "BUG: …"
// when shapes do not fit; they cannot fail otherwise. Results have the same bits for the same
// inputs and the same Workers.
type Backend interface {
	Name() string
	// Workers is the number of threads that compute.
	Workers() int

	// Params returns a vector of n zeros that lives until Close.
	Params(what string, n int) (Tensor, error)
	// Begin starts a step: all scratch handed out before is used again.
	Begin() error
	// Trim gives the memory of scratch back, for others to use until the next step.
	Trim() error
	// Scratch returns a matrix for this step, with any values in it.
	Scratch(rows, cols int) (Tensor, error)
	// Host makes rows*cols values of the caller available for this step. On the CPU they are not
	// copied, and operations write to them.
	Host(x []float32, rows, cols int) (Tensor, error)
	// Segments makes lists available for this step. rows is how many rows they number, if
	// SegmentMeanGrad will be called, which takes 4 bytes for each row, entry and list; else 0.
	Segments(off, idx []uint32, rows int) (Segments, error)
	// Read copies a tensor to dst, Write copies src to a tensor.
	Read(dst []float32, t Tensor)
	Write(t Tensor, src []float32)

	// MatMul is c = a·b, or c += a·b with acc. MatMulTA transposes a, MatMulTB transposes b.
	MatMul(c, a, b Tensor, acc bool)
	MatMulTA(c, a, b Tensor, acc bool)
	MatMulTB(c, a, b Tensor, acc bool)
	// SegmentMean writes the mean of the rows of x in list i to row i of out: zeros if it is empty.
	SegmentMean(out, x Tensor, s Segments)
	// SegmentMeanGrad adds the gradient of SegmentMean's input to dx. Its first fresh rows are
	// overwritten instead, whatever they hold.
	SegmentMeanGrad(dx, dout Tensor, s Segments, fresh int)
	// Bias adds a row vector to every row of x; BiasReLU cuts at zero too.
	Bias(x, bias Tensor)
	BiasReLU(x, bias Tensor)
	// ReLUGrad is the gradient of ReLU and then Dropout of a rate, or 0, whose output is y: it
	// scales dx as Dropout scaled, and zeroes it where y is not positive.
	ReLUGrad(dx, y Tensor, rate float32)
	// Dropout zeroes values with probability rate and scales the others by 1/(1-rate): which is a
	// function of key and position. x begins with the position first.
	Dropout(x Tensor, first int, rate float32, key uint64)
	// SegmentMeanDropout is SegmentMean of rows that went through Dropout, and leaves x as it is:
	// the row of list entry e has the positions of row at[e].
	SegmentMeanDropout(out, x Tensor, s Segments, at []uint32, rate float32, key uint64)
	// ColumnSum writes the sum of the rows of x to out.
	ColumnSum(out, x Tensor)
	Add(dst, src Tensor)
	Zero(x Tensor)
	// SoftmaxCrossEntropy returns the mean loss of the rows whose label is not negative, how many
	// of them have their largest logit at the label, and how many they are. grad becomes its
	// gradient.
	SoftmaxCrossEntropy(grad, logits Tensor, labels []int32) (loss float64, correct, counted int)
	// SigmoidBCE returns the mean loss over all values, and its gradient.
	SigmoidBCE(grad, logits, targets Tensor) float64

	Adam(w, g Tensor, state Moments, s AdamStep)
	SGD(w, g Tensor, rate, weightDecay float32)
	Adagrad(w, g, sums Tensor, rate, eps, weightDecay float32)

	Close() error
}

// Options configure a backend.
type Options struct {
	// Workers is the number of threads that compute. Default: all cores.
	Workers int
	// Budget counts the memory; nil for none.
	Budget *mem.Budget
}

// Open opens a backend by name: cpu.
func Open(name string, opt Options) (Backend, error) {
	switch name {
	case "cpu":
		if _, err := kernel.Chosen(); err != nil {
			return nil, fmt.Errorf("train: %w", err)
		}
		return newCPU(opt), nil
	}
	return nil, fmt.Errorf("train: unknown backend %q: known is cpu", name)
}
