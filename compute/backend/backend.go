// Package backend runs the operations of training on a device. Models are written once against
// Backend; the CPU is the first device.
//
// Tensors are row-major matrices of float32, or of bfloat16. Two kinds of memory stand behind them:
// that of parameters and tables, which lives until Close, and that of a step, which lives until the
// next Begin, so that a step allocates nothing once it has grown to the size of a batch.
//
// What goes wrong in a step stays until it is asked for: operations do nothing after the first
// error, which Err returns.
package backend

import (
	"fmt"

	"gdb/compute/kernel"
	"gdb/internal/bug"
	"gdb/internal/mem"
)

// Memory is a piece of a device's memory, by a number that its backend gave.
type Memory int32

// Tensor is a matrix of Rows x Cols in a device's memory, Offset values into a piece of it. It is a
// view: copying it copies no values.
type Tensor struct {
	Rows, Cols int
	Memory     Memory
	Offset     int
	// Half says that values are bfloat16, of which Offset counts as many.
	Half bool
}

// Slice returns the view of n rows from first on.
func (t Tensor) Slice(first, n int) Tensor {
	bug.Check(first >= 0 && n >= 0 && first+n <= t.Rows, "rows %d to %d of %d", first,
		first+n, t.Rows)
	return Tensor{Rows: n, Cols: t.Cols, Memory: t.Memory, Offset: t.Offset + first*t.Cols,
		Half: t.Half}
}

// Last returns the view of the last n rows.
func (t Tensor) Last(n int) Tensor { return t.Slice(t.Rows-n, n) }

// View returns the part of a vector (one row) that begins at value off, as a matrix.
func (t Tensor) View(off, rows, cols int) Tensor {
	bug.Check(t.Rows == 1 && off+rows*cols <= t.Cols, "view of a tensor of %d rows, values "+
		"%d to %d of %d", t.Rows, off, off+rows*cols, t.Cols)
	return Tensor{Rows: rows, Cols: cols, Memory: t.Memory, Offset: t.Offset + off, Half: t.Half}
}

// Halved returns the same memory as values of bfloat16: rows of twice as many columns.
func (t Tensor) Halved() Tensor {
	bug.Check(!t.Half, "values of bfloat16 are halved")
	return Tensor{Rows: t.Rows, Cols: 2 * t.Cols, Memory: t.Memory, Offset: 2 * t.Offset,
		Half: true}
}

// Flat returns the tensor as a vector (one row).
func (t Tensor) Flat() Tensor {
	return Tensor{Rows: 1, Cols: t.Len(), Memory: t.Memory, Offset: t.Offset, Half: t.Half}
}

// Len returns the number of values.
func (t Tensor) Len() int { return t.Rows * t.Cols }

// Lists are lists of row numbers in the host's memory: those of list i are Idx[Off[i]:Off[i+1]].
// Off[0] is 0, but for a backend that Groups, which takes entries of no list before the first.
type Lists struct {
	Off, Idx []uint32
	// At has the places of the entries' rows in the matrix that is dropped out as they are read,
	// parallel to Idx; nil if none is.
	At []uint32
	// Cut says where the rows lie that entries name, if a table has them in pieces; its Dim is 0
	// where rows are whole.
	Cut kernel.Cut
	// Rows is how many rows they number, if gradients of rows will be asked for, which takes
	// SegmentFloats of scratch; else 0. Entries says that those of weights of entries will be too.
	Rows    int
	Entries bool
	// There has the lists on the device, as a Preparer laid them out; it is the zero Tensor for
	// lists that were not prepared. Names is one more than the largest row number then.
	There Tensor
	Names uint32
}

// Segments are lists that a backend made available for a step, by a number that it gave. Rows
// equals Lists.Rows.
type Segments struct {
	Lists, Entries, Rows, ID int
	Cut                      bool // Lists.Cut is set
}

// Launches counts Operations on a device (kernels, products, copies and zeroing in its memory), and
// the Calls of its driver that asked for them. Graphs are those that asked for many. Busy is the
// seconds that the device worked on those that are done.
type Launches struct {
	Operations uint64  `json:"operations"`
	Calls      uint64  `json:"calls"`
	Graphs     uint64  `json:"graphs"`
	Busy       float64 `json:"device_busy_s"`
}

// Add returns the sums of both.
func (l Launches) Add(o Launches) Launches {
	return Launches{l.Operations + o.Operations, l.Calls + o.Calls, l.Graphs + o.Graphs,
		l.Busy + o.Busy}
}

// Sub returns what was counted since before.
func (l Launches) Sub(before Launches) Launches {
	return Launches{l.Operations - before.Operations, l.Calls - before.Calls,
		l.Graphs - before.Graphs, l.Busy - before.Busy}
}

// About says what a backend is.
type About struct {
	Name string
	// Workers is the number of threads that compute.
	Workers int
	// StepsPerRead is how many steps are worth one read of their losses: 1 where reading waits for
	// nothing.
	StepsPerRead int
	// Groups says that steps cost less that are the same but for values: batches are worth being
	// padded to the same sizes.
	Groups bool
}

// Backend runs operations on one device. It is for one goroutine. Results have the same bits for
// the same inputs and the same Workers.
type Backend interface {
	About() About
	// Launches counts what a device was given.
	Launches() Launches
	// Device is the memory of the backend's own; nil where it computes in the host's.
	Device() Device

	// Params returns a vector of n zeros that lives until Close.
	Params(what string, n int) (Tensor, error)
	// Table makes rows of the caller available until Forget or Close: equal memory gives the same
	// tensor. The caller may change values between steps, and only then: they are not copied.
	Table(x []float32, rows, cols int) Tensor
	// Forget ends what Table made available, before the memory of the rows is freed. The step that
	// reads them ends too.
	Forget(x []float32)

	// Begin starts a step: all memory handed out for the one before is used again.
	Begin() error
	// Err is the first error of the step. A device is given what was asked for so far.
	Err() error
	// Trim gives the memory of steps back, for others to use until the next one.
	Trim() error
	// Scratch returns a matrix for this step, with any values in it.
	Scratch(rows, cols int) Tensor
	// Host makes rows*cols values of the caller available for this step, which must stay as they
	// are until its end. On the CPU they are not copied, and operations write to them. Where x has
	// fewer, zeros stand before them.
	Host(x []float32, rows, cols int) Tensor
	// Segments makes lists available for this step.
	Segments(l Lists) Segments
	// Read copies a tensor to dst, Write copies src to a tensor: values of bfloat16 are float32 on
	// the host.
	Read(dst []float32, t Tensor)
	Write(t Tensor, src []float32)

	// Run does an operation. It panics with "BUG: …" when shapes do not fit. A tensor of bfloat16
	// may stand where the operation says so.
	Run(op *Op, o *Operands)
	// Losses appends the losses that were computed since the last call to dst, in their order. It
	// waits for the steps that they are of.
	Losses(dst []Loss) []Loss
	// ClipNorm scales a vector so that its norm is at most most, and returns the factor. beside is
	// the sum of the squares of gradients that are elsewhere, which count too and are not scaled.
	ClipNorm(g Tensor, most float32, beside float64) (factor float32)

	Close() error
}

// The names of backends, as settings have them.
const (
	// Auto is CUDA if a device opens, and else CPU.
	Auto = "auto"
	// CPU computes with the threads of the process.
	CPU = "cpu"
	// CUDA computes on a device of NVIDIA, in a gdb that was built for it.
	CUDA = "cuda"
)

// Options configure a backend.
type Options struct {
	// Workers is the number of threads that compute. Default: all cores.
	Workers int
	// Budget counts the memory; nil for none.
	Budget *mem.Budget
	// Device is the number of the device, from 0 on, where there are several of a kind.
	Device int
	// DeviceMemory bounds what is taken of a device's memory, but for the driver and kernels, in
	// bytes; 0 for what there is.
	DeviceMemory int64
	// TF32 has a device round the factors of products of float32 to 10 bits behind the point.
	TF32 bool
	// Plain has a device be given each operation by a call of its own.
	Plain bool
}

// OpenCPU opens the backend that computes with compute/kernel.
func OpenCPU(opt Options) (Backend, error) {
	if _, err := kernel.Chosen(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return newCPU(opt), nil
}
