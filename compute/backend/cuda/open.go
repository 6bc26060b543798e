//go:build cuda && cgo && linux

package cuda

import (
	_ "embed"
	"errors"
	"fmt"
	"runtime"

	"gdb/compute/backend"
	"gdb/internal/cuda"
	"gdb/internal/mem"
)

// ptx is what clang made of the kernels.
//
//go:embed kernels/kernels.ptx
var ptx string

// gpu computes on a device. Tensors lie in its memory, or in page-locked memory of the caller that
// the device reads over the bus.
type gpu struct {
	driver  driver
	workers int
	budget  *mem.Budget
	err     error // the first of the step

	params  []uint64 // to free at the end
	kept    []uint64 // where parameters and tables are: Memory 0, 1, …
	tables  map[*float32]table
	spare   []backend.Memory // of tables that were forgotten
	step    []lent           // what this step was given: Memory -1, -2, …
	lists   []stepLists
	scratch *arena
	staged  staging
	blocks  blocks
	reads   bool  // the step reads memory of the caller where it lies
	sent    int64 // bytes that steps were given

	losses lossSlots

	queue   queue
	numbers numbers
}

// table is rows of the caller that are page-locked.
type table struct {
	backend.Tensor
	values []float32
}

// lent is memory of a step: on the device, or room for values of the host, which are copied there
// when an operation first needs them, behind zeros where they are fewer.
type lent struct {
	at   uint64
	host []float32
	room int
}

// Open opens a device and loads the kernels.
func Open(opt backend.Options) (backend.Backend, error) {
	g := &gpu{workers: opt.Workers, budget: opt.Budget, tables: map[*float32]table{}}
	g.queue.plain, g.queue.refused = opt.Plain, opt.Plain
	if g.workers == 0 {
		g.workers = runtime.NumCPU()
	}
	g.driver.tf32, g.driver.most = opt.TF32, opt.DeviceMemory
	if err := g.driver.open(opt.Device, ptx); err != nil {
		return nil, fmt.Errorf("train: open device %d: %w", opt.Device, err)
	}
	g.scratch = newArena(&g.driver, "activations and gradients of a step")
	g.blocks.open(&g.driver, g.budget)
	g.staged.open(&g.driver, g.budget, &g.blocks)
	if err := g.losses.open(&g.driver); err != nil {
		return nil, errors.Join(fmt.Errorf("train: open device %d: %w", opt.Device, err), g.Close())
	}
	return g, nil
}

// About says that a read waits for the steps before it, and that steps of the same sizes are
// launched at once.
func (g *gpu) About() backend.About {
	return backend.About{Name: backend.CUDA, Workers: g.workers, StepsPerRead: stepsPerRead,
		Groups: !g.queue.plain}
}

// Err is the first error of the step, whose operations so far are given to the device. A step that
// read memory of the caller is at an end then.
func (g *gpu) Err() error {
	g.flush()
	if g.err == nil && g.reads {
		g.fail("finish the step", g.driver.sync())
		g.reads = false
	}
	return g.err
}

// fail notes the first error.
func (g *gpu) fail(op string, err error) {
	if err != nil && g.err == nil {
		g.err = fmt.Errorf("train: cuda: %s: %w", op, err)
	}
}

// Close waits for all operations and frees all memory.
func (g *gpu) Close() error {
	g.queue.drop()
	err := errors.Join(g.driver.sync(), g.queue.close(&g.driver))
	for _, t := range g.tables {
		err = errors.Join(err, g.driver.unlock(mem.BytesOf(t.values)))
	}
	for _, p := range g.params {
		err = errors.Join(err, g.driver.free(p))
	}
	g.params, g.tables = nil, nil
	err = once(errors.Join(err, g.losses.close(&g.driver), g.staged.free(&g.driver),
		g.blocks.close(), g.scratch.Release(), g.driver.close()))
	if err != nil {
		return fmt.Errorf("train: close the device: %w", err)
	}
	return nil
}

// once is the first of joined errors that say that the device is lost, which all calls do then; any
// others as they are.
func once(err error) error {
	all, joined := err.(interface{ Unwrap() []error })
	if !joined || !errors.Is(err, cuda.ErrLost) {
		return err
	}
	for _, e := range all.Unwrap() {
		if errors.Is(e, cuda.ErrLost) {
			return once(e)
		}
	}
	return err
}

// there reports whether a tensor has memory: one of a step that was short of it has none.
func (g *gpu) there(t backend.Tensor) bool { return t.Memory >= 0 || g.err == nil }
