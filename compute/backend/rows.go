package backend

import (
	"errors"

	"gdb/compute/kernel"
)

// Rows are operations on rows that are taken from several places.
type Rows interface {
	// PickRows writes to each row of out that row of kept or, behind these, the one that begins so
	// many values into sent whose number is in from (rows,1), as bits: zeros for kernel.NoRow.
	PickRows(out, kept, sent, from Tensor)
	// PutRows copies each row of rows to that of into whose number is in to (rows,1), as bits; a
	// number that into does not have stands for none.
	PutRows(into, rows, to Tensor)
}

// ErrDeviceMemory says that a device has no room for what was asked for.
var ErrDeviceMemory = errors.New("the device has no room")

// Separate is a backend whose device has memory of its own.
type Separate interface {
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
	// ReadLocked is PickRows for this step beside its operations, of rows that the device reads
	// over the bus where they lie in locked memory, but for those of kept: held has rows, behind
	// whose numbers are those of values in read. Both stay as they are as long as with SendLocked.
	ReadLocked(kept Tensor, held, read []float32, from []uint32, cols int) Tensor
	// Release gives back memory of Params before Close.
	Release(t Tensor) error
}

// PickRows copies rows.
func (c *cpu) PickRows(out, kept, sent, from Tensor) {
	if !c.ready(from.Len() == out.Rows && kept.Cols == out.Cols, "PickRows", out, kept, sent,
		from) {
		return
	}
	kernel.PickRows(c.pool, c.values(out), c.values(kept), c.values(sent), c.words(from), out.Cols)
}

// PutRows copies rows.
func (c *cpu) PutRows(into, rows, to Tensor) {
	if c.ready(to.Len() == rows.Rows && into.Cols == rows.Cols, "PutRows", into, rows, to) {
		kernel.PutRows(c.pool, c.values(into), c.values(rows), c.words(to), into.Cols)
	}
}
