package backend

import (
	"errors"

	"gdb/internal/mem"
)

// Operations that move whole values: from one tensor to another, and rows from several places.

var (
	copyOp = &Op{Name: "copy", Fits: func(o *Operands) bool {
		return o.Out.Len() == o.In[0].Len() && o.Out.Half == o.In[0].Half
	}}
	zeroOp     = &Op{Name: "zero"}
	pickRowsOp = &Op{Name: "pick-rows", Fits: func(o *Operands) bool {
		return o.In[2].Len() == o.Out.Rows && o.In[0].Cols == o.Out.Cols
	}}
	putRowsOp = &Op{Name: "put-rows", Fits: func(o *Operands) bool {
		return o.In[1].Len() == o.In[0].Rows && o.Out.Cols == o.In[0].Cols
	}}
)

// Copy copies the values of src to dst, which are both of the same kind.
func Copy(be Backend, dst, src Tensor) { be.Run(copyOp, &Operands{Out: dst, In: [4]Tensor{src}}) }

// Zero clears x.
func Zero(be Backend, x Tensor) { be.Run(zeroOp, &Operands{Out: x}) }

// PickRows copies rows to out. Row i comes from the place that from (rows,1) holds as bits: a row
// of kept, or, counted on behind the last row of kept, the value of sent at which it begins.
// kernel.NoRow writes zeros.
func PickRows(be Backend, out, kept, sent, from Tensor) {
	be.Run(pickRowsOp, &Operands{Out: out, In: [4]Tensor{kept, sent, from}})
}

// Assemble puts the rows of a batch together in the step that was begun: a tensor of a number of
// rows, which begins with rows of zeros where that is more than the batch has. places are the
// numbers that were prepared with the batch and say where its rows are.
type Assemble func(rows int, places Tensor) Tensor

// Words makes numbers available for the step, as bits.
func Words(be Backend, x []uint32) Tensor {
	return be.Host(mem.View[float32](mem.BytesOf(x)), len(x), 1)
}

// PutRows copies each row of rows to that of into whose number is in to (rows,1), as bits; a number
// that into does not have stands for none.
func PutRows(be Backend, into, rows, to Tensor) {
	be.Run(putRowsOp, &Operands{Out: into, In: [4]Tensor{rows, to}})
}

// ErrDeviceMemory says that a device has no room for what was asked for.
var ErrDeviceMemory = errors.New("the device has no room")

// Device is memory of a backend's own, beside the host's.
type Device interface {
	Preparer
	// DeviceMemory is what the device has, and what is free of it.
	DeviceMemory() (free, total int64, err error)
	// Sent is how many bytes steps were given so far, which went over the bus: at once, or read in
	// place.
	Sent() int64
	// Lock locks the pages of memory outside the Go heap, for SendLocked and ReadLocked, and Unlock
	// undoes that, once nothing is copied from there or read any more: as often as it was locked.
	// Both may be called from any goroutine.
	Lock(x []byte) error
	Unlock(x []byte) error
	// SendLocked is Host of values in locked memory: they are copied from where they lie, beside
	// the operations, and must stay as they are until the second Begin from then, or Trim. So many
	// rows of zeros stand before them, and any values behind.
	SendLocked(x []float32, zeros, rows, cols int) Tensor
	// AwaitSent waits until what SendLocked was given so far was copied, so that it may change at
	// once. The device computes meanwhile.
	AwaitSent() error
	// ReadLocked picks rows for this step, beside its operations: rows of kept, and over rows that
	// the device reads over the bus from locked memory. from has a number for each row, as bits: it
	// numbers the rows of kept, then those of held, then the values of read at which rows begin.
	// held and read must stay unchanged as long as with SendLocked.
	ReadLocked(kept Tensor, held, read []float32, from Tensor, cols, over int) Tensor
	// Neighbors copies the lists of a graph, of one direction or two, to the device. Two are taken
	// as one, the first direction's entries first.
	Neighbors(all []Neighbors) (NeighborLists, error)
	// Group has operations be given to the device at once where they come again, or one by one,
	// from the next step on: see About.
	Group(on bool)
	// Release gives back memory of Params before Close.
	Release(t Tensor) error
}
