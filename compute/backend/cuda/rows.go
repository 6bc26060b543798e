//go:build cuda && cgo && linux

package cuda

import (
	"errors"
	"slices"

	"gdb/compute/backend"
	"gdb/internal/cuda"
	"gdb/internal/mem"
)

// pickRows copies rows.
func pickRows(g *gpu, o *backend.Operands) {
	out, kept, sent := o.Out, o.In[0], o.In[1]
	if out.Len() == 0 {
		return
	}
	four := g.fours(out.Cols, out, kept, sent)
	threads := out.Len()
	if four {
		threads /= 4
	}
	g.launch("pick_rows", threads, out, kept, 0, sent, o.In[2], out.Rows, out.Cols, kept.Rows, 0,
		four)
}

// ReadLocked runs the kernel of pickRows in the stream of copies.
func (g *gpu) ReadLocked(kept backend.Tensor, held, read []float32, from backend.Tensor,
	cols, over int) backend.Tensor {
	rows := from.Len()
	if rows*cols == 0 || g.err != nil {
		return g.lend(lent{}, rows, cols)
	}
	keptAt := uint64(0)
	if kept.Rows > 0 {
		keptAt = g.at(kept)
	}
	places := g.at(from)
	at, err := g.staged.steps[g.staged.now].device.take(rows * cols * floatBytes)
	if err != nil {
		g.fail("take memory for what a step is given", err)
		return g.lend(lent{}, rows, cols)
	}
	heldAt, readAt := g.driver.seen(mem.BytesOf(held)), g.driver.seen(mem.BytesOf(read))
	threads, four := rows*cols, cuda.Argument(0)
	if cols%4 == 0 && (at|keptAt|heldAt|readAt)%(4*floatBytes) == 0 {
		threads, four = threads/4, 1
	}
	g.fail("read rows of the host", g.driver.beside("pick_rows", threads, cuda.Argument(at),
		cuda.Argument(keptAt), cuda.Argument(heldAt), cuda.Argument(readAt),
		cuda.Argument(places), cuda.Int(rows), cuda.Int(cols), cuda.Int(kept.Rows),
		cuda.Int(len(held)/cols), four))
	g.queue.counts.Operations++
	g.queue.counts.Calls++
	g.sent += int64(over * cols * floatBytes)
	return g.lend(lent{at: at}, rows, cols)
}

// putRows copies rows.
func putRows(g *gpu, o *backend.Operands) {
	into, rows := o.Out, o.In[0]
	if rows.Len() == 0 {
		return
	}
	threads, four := rows.Len(), g.fours(rows.Cols, into, rows)
	if four {
		threads /= 4
	}
	g.launch("put_rows", threads, into, rows, o.In[1], rows.Rows, rows.Cols, into.Rows, four)
}

// Device returns the memory of the device.
func (g *gpu) Device() backend.Device { return g }

// DeviceMemory asks the driver, of what may be taken.
func (g *gpu) DeviceMemory() (free, total int64, err error) {
	err = g.driver.on(func() (err error) {
		free, total, err = g.driver.device.MemInfo()
		return err
	})
	if most := g.driver.most; most > 0 {
		free, total = min(free, max(0, most-g.driver.used)), min(total, most)
	}
	return free, total, err
}

// Sent counts what was copied for steps, and rows that they read where they lie.
func (g *gpu) Sent() int64 { return g.sent }

// Lock locks the pages of x.
func (g *gpu) Lock(x []byte) error {
	_, err := g.driver.lock(x)
	return err
}

// Unlock unlocks the pages of x.
func (g *gpu) Unlock(x []byte) error { return g.driver.unlock(x) }

// SendLocked copies x to memory of the step. That it was copied is known where the step's own
// page-locked memory is used again.
func (g *gpu) SendLocked(x []float32, zeros, rows, cols int) backend.Tensor {
	if rows*cols == 0 || g.err != nil {
		return g.lend(lent{}, rows, cols)
	}
	at, err := g.staged.steps[g.staged.now].device.take(rows * cols * floatBytes)
	if err != nil {
		g.fail("take memory for what a step is given", err)
		return g.lend(lent{}, rows, cols)
	}
	before, bytes := zeros*cols*floatBytes, mem.BytesOf(x)
	g.sent += int64(len(bytes))
	if before > 0 {
		g.fail("zero memory of a step", g.driver.zeroBeside(at, before))
	}
	if len(bytes) > 0 {
		g.fail("copy to the device", g.driver.toDevice(at+uint64(before), bytes))
	}
	return g.lend(lent{at: at}, rows, cols)
}

// AwaitSent waits for all copies.
func (g *gpu) AwaitSent() error { return g.driver.awaitCopies() }

// Release frees what Params took, after what uses it.
func (g *gpu) Release(t backend.Tensor) error {
	p := g.kept[t.Memory]
	if !slices.Contains(g.params, p) { // it was given back
		return nil
	}
	g.params = slices.DeleteFunc(g.params, func(q uint64) bool { return p == q })
	g.kept[t.Memory], g.spare = 0, append(g.spare, t.Memory)
	g.flush()
	return errors.Join(g.driver.sync(), g.driver.free(p))
}
