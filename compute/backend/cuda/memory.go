//go:build cuda && cgo && linux

package cuda

import (
	"errors"
	"fmt"

	"gdb/compute/backend"
	"gdb/compute/kernel/bf16"
	"gdb/internal/cuda"
	"gdb/internal/mem"
)

// floatBytes is the size of a value.
const floatBytes = 4

// Params takes memory of the device, and zeroes it.
func (g *gpu) Params(what string, n int) (backend.Tensor, error) {
	p, err := g.driver.alloc(what, max(1, n)*floatBytes)
	if errors.Is(err, cuda.ErrOutOfMemory) {
		err = fmt.Errorf("%w: %w", backend.ErrDeviceMemory, err)
	}
	if err != nil {
		return backend.Tensor{}, err
	}
	g.params = append(g.params, p)
	if err := g.driver.zero(p, n*floatBytes); err != nil {
		return backend.Tensor{}, err
	}
	return g.keep(p, 1, n), nil
}

// keep numbers memory that lives until Close.
func (g *gpu) keep(p uint64, rows, cols int) backend.Tensor {
	g.kept = append(g.kept, p)
	return backend.Tensor{Rows: rows, Cols: cols, Memory: backend.Memory(len(g.kept) - 1)}
}

// lend numbers memory that lives until the next step.
func (g *gpu) lend(m lent, rows, cols int) backend.Tensor {
	g.step = append(g.step, m)
	return backend.Tensor{Rows: rows, Cols: cols, Memory: backend.Memory(-len(g.step))}
}

// Table locks the pages of x, which the device reads over the bus.
func (g *gpu) Table(x []float32, rows, cols int) backend.Tensor {
	x = x[:rows*cols]
	g.reads = true
	if len(x) == 0 {
		return backend.Tensor{Cols: cols}
	}
	t, known := g.tables[&x[0]]
	if known && t.Rows == rows && t.Cols == cols {
		return t.Tensor
	}
	g.Forget(x)
	p, err := g.driver.lock(mem.BytesOf(x))
	if err != nil {
		g.fail("lock rows of the host", err)
		return g.lend(lent{}, rows, cols)
	}
	t = table{Tensor: backend.Tensor{Rows: rows, Cols: cols}, values: x}
	if n := len(g.spare); n > 0 {
		t.Memory, g.spare = g.spare[n-1], g.spare[:n-1]
		g.kept[t.Memory] = p
	} else {
		t.Tensor = g.keep(p, rows, cols)
	}
	g.tables[&x[0]] = t
	return t.Tensor
}

// Forget unlocks the pages of a table, after what reads it.
func (g *gpu) Forget(x []float32) {
	if len(x) == 0 {
		return
	}
	if t, known := g.tables[&x[0]]; known {
		g.flush()
		g.fail("finish the step", g.driver.sync())
		g.fail("unlock rows of the host", g.driver.unlock(mem.BytesOf(t.values)))
		g.kept[t.Memory], g.spare = 0, append(g.spare, t.Memory)
		delete(g.tables, &x[0])
	}
}

// Begin takes all memory of steps back: activations at once, since operations are in order, and
// what the step before the last one was given: see staging.
func (g *gpu) Begin() error {
	if err := g.settle(); err != nil {
		return err
	}
	g.endStep()
	if err := g.staged.next(&g.driver); err != nil {
		return err
	}
	return g.scratch.Reset()
}

// endStep forgets what was handed out.
func (g *gpu) endStep() {
	clear(g.step)
	clear(g.lists)
	g.err, g.reads, g.step, g.lists = nil, false, g.step[:0], g.lists[:0]
	g.numbers.begin()
}

// Trim frees the memory of steps, and with it ends the step.
func (g *gpu) Trim() error {
	if err := errors.Join(g.settle(), g.driver.sync()); err != nil {
		return err
	}
	g.endStep()
	if err := g.staged.free(&g.driver); err != nil {
		return err
	}
	return g.scratch.Release()
}

// take returns the address of n bytes of the step's arena; 0 for none, and after an error.
func (g *gpu) take(n int) uint64 {
	if n == 0 || g.err != nil {
		return 0
	}
	p, err := g.scratch.take(n)
	g.fail("take memory of a step", err)
	return p
}

// takeFloats is take of values.
func (g *gpu) takeFloats(n int) uint64 { return g.take(n * floatBytes) }

// Scratch takes memory of the step's arena.
func (g *gpu) Scratch(rows, cols int) backend.Tensor {
	return g.lend(lent{at: g.takeFloats(rows * cols)}, rows, cols)
}

// Host notes values that are copied when an operation needs them.
func (g *gpu) Host(x []float32, rows, cols int) backend.Tensor {
	n := rows * cols
	return g.lend(lent{host: x[:min(n, len(x))], room: n}, rows, cols)
}

// width returns the bytes of a tensor's values.
func width(t backend.Tensor) int {
	if t.Half {
		return halfBytes
	}
	return floatBytes
}

// at returns the address of a tensor's first value.
func (g *gpu) at(t backend.Tensor) uint64 {
	if t.Memory >= 0 {
		if t.Len() == 0 {
			return 0
		}
		return g.kept[t.Memory] + uint64(t.Offset)*uint64(width(t))
	}
	m := &g.step[-1-t.Memory]
	if m.at == 0 && m.room > 0 {
		zeros, values := (m.room-len(m.host))*floatBytes, mem.BytesOf(m.host)
		m.at = g.sendBytes(m.room*floatBytes, func(to []byte) {
			clear(to[:zeros])
			copy(to[zeros:], values)
		})
		m.host, m.room = nil, 0
	}
	if m.at == 0 {
		return 0
	}
	return m.at + uint64(t.Offset)*uint64(width(t))
}

// send copies values of the host to the device, and returns where they are. x may change at once.
func send[T mem.Scalar](g *gpu, x []T) uint64 {
	bytes := mem.BytesOf(x)
	return g.sendBytes(len(bytes), func(to []byte) { copy(to, bytes) })
}

// sendBytes copies n bytes to the device that fill writes.
func (g *gpu) sendBytes(n int, fill func(to []byte)) uint64 {
	if n == 0 || g.err != nil {
		return 0
	}
	from, at, err := g.staged.take(n)
	if err != nil {
		g.fail("take memory for what a step is given", err)
		return 0
	}
	fill(from)
	g.sent += int64(n)
	g.fail("copy to the device", g.driver.toDevice(at, from))
	return at
}

// Read copies a tensor to dst, and waits for it.
func (g *gpu) Read(dst []float32, t backend.Tensor) {
	if !g.there(t) || t.Len() == 0 {
		return
	}
	at, to := g.at(t), mem.BytesOf(dst[:t.Len()])
	var half []bf16.Number
	if t.Half {
		half = make([]bf16.Number, t.Len())
		to = mem.BytesOf(half)
	}
	if g.flush(); at != 0 && g.err == nil {
		g.fail("copy from the device", g.driver.read(to, at))
		bf16.Widen(nil, dst, half)
	}
}

// Write copies src to a tensor, and waits for it.
func (g *gpu) Write(t backend.Tensor, src []float32) {
	if !g.there(t) || t.Len() == 0 {
		return
	}
	at, from := g.at(t), mem.BytesOf(src[:t.Len()])
	if t.Half {
		half := make([]bf16.Number, t.Len())
		bf16.Narrow(nil, half, src[:t.Len()])
		from = mem.BytesOf(half)
	}
	if g.flush(); at != 0 && g.err == nil {
		g.fail("copy to the device", g.driver.write(at, from))
	}
}
