//go:build cuda && cgo && linux

package cuda

import (
	"errors"
	"fmt"
	"time"

	"gdb/internal/cuda"
	"gdb/internal/mem"
)

const (
	// bounceBytes is the page-locked memory through which values go between a tensor and memory of
	// the caller.
	bounceBytes = 4 << 20
	// workspaceBytes is the memory of the device in which cuBLAS works: as much as its own default
	// on devices before Hopper.
	workspaceBytes = 4 << 20
)

// driver is a device with its streams, kernels and cuBLAS. Each call makes the device current for
// its thread, since a goroutine may move to another between two calls.
type driver struct {
	device  *cuda.Device
	stream  *cuda.Stream // of operations
	copies  *cuda.Stream // of what steps are given
	copied  *cuda.Event  // behind the copies that operations wait for
	copying bool         // there are copies since, which the next operation waits for
	blas    *cuda.BLAS
	tf32    bool // products round their factors
	module  *cuda.Module
	kernels map[string]cuda.Function
	bounce  *cuda.Pinned
	// workspace is the memory that cuBLAS works in: its own could not be part of a graph.
	workspace cuda.DevicePtr
	meter     meter
	// most bounds the bytes that are allocated, 0 for no bound; used counts them, and sizes holds
	// them by address.
	most, used int64
	sizes      map[uint64]int64
	locked     lockedMemory
}

// event is a place in the order of operations.
type event struct{ event *cuda.Event }

// on makes the device current and calls f.
func (d *driver) on(f func() error) error {
	unbind, err := d.device.Bind()
	if err != nil {
		return err
	}
	defer unbind()
	return f()
}

// operate is on for an operation, which comes behind all copies so far.
func (d *driver) operate(f func() error) error {
	return d.on(func() error {
		if d.copying {
			if err := d.copies.Record(d.copied); err != nil {
				return err
			}
			if err := d.stream.Wait(d.copied); err != nil {
				return err
			}
			d.copying = false
		}
		return f()
	})
}

// measured is operate for what is counted as the device's work.
func (d *driver) measured(f func() error) error {
	return d.operate(func() error { return d.meter.around(d, f) })
}

// busy returns how long the device has worked on what is done.
func (d *driver) busy() (time.Duration, error) {
	err := d.on(d.meter.collect)
	return d.meter.busy, err
}

// open opens a device by its number, and compiles PTX for it.
func (d *driver) open(number int, ptx string) (err error) {
	if err := cuda.Available(); err != nil {
		return err
	}
	if d.device, err = cuda.Open(number); err != nil {
		return err
	}
	err = d.on(func() error { return d.explained("kernels and cuBLAS need some", d.start(ptx)) })
	if err != nil {
		return errors.Join(err, d.close())
	}
	d.kernels, d.sizes = map[string]cuda.Function{}, map[uint64]int64{}
	return nil
}

// start makes what works on the device.
func (d *driver) start(ptx string) (err error) {
	if d.stream, err = d.device.NewStream(); err != nil {
		return err
	}
	if d.copies, err = d.device.NewStream(); err != nil {
		return err
	}
	if d.copied, err = d.device.NewEvent(false); err != nil {
		return err
	}
	if d.blas, err = d.device.NewBLAS(d.stream); err != nil {
		return err
	}
	if d.tf32 {
		if err = d.blas.SetMath(cuda.TF32); err != nil {
			return err
		}
	}
	if d.workspace, err = d.device.Alloc(workspaceBytes); err != nil {
		return err
	}
	d.used += workspaceBytes
	if err = d.blas.SetWorkspace(d.workspace, workspaceBytes); err != nil {
		return err
	}
	if d.bounce, err = d.device.AllocPinned(bounceBytes); err != nil {
		return err
	}
	d.module, err = d.device.Load(ptx)
	return err
}

// close ends all that was opened.
func (d *driver) close() error {
	if d.device == nil {
		return nil
	}
	err := d.on(func() (err error) {
		if d.module != nil {
			err = errors.Join(err, d.module.Close())
		}
		if d.bounce != nil {
			err = errors.Join(err, d.device.FreePinned(d.bounce))
		}
		if d.blas != nil {
			err = errors.Join(err, d.blas.Close())
		}
		if d.workspace != 0 {
			err = errors.Join(err, d.device.Free(d.workspace))
		}
		err = errors.Join(err, d.meter.close())
		if d.copied != nil {
			err = errors.Join(err, d.copied.Close())
		}
		for _, s := range []*cuda.Stream{d.copies, d.stream} {
			if s != nil {
				err = errors.Join(err, s.Close())
			}
		}
		return err
	})
	err = errors.Join(err, d.device.Close())
	*d = driver{}
	return err
}

// alloc takes n bytes of the device's memory. If they are not there, the error says how many are.
func (d *driver) alloc(what string, n int) (p uint64, err error) {
	if d.most > 0 && d.used+int64(n) > d.most {
		return 0, fmt.Errorf("%s need %s of the device's memory; %s of the %s that are allowed "+
			"are free: allow more with --device-memory, or --backend cpu: %w", what,
			mem.FormatSize(int64(n)), mem.FormatSize(max(0, d.most-d.used)),
			mem.FormatSize(d.most), cuda.ErrOutOfMemory)
	}
	err = d.on(func() error {
		at, err := d.device.Alloc(int64(n))
		if p = uint64(at); err == nil {
			d.used, d.sizes[p] = d.used+int64(n), int64(n)
		}
		return d.explained(what+" need "+mem.FormatSize(int64(n)), err)
	})
	return p, err
}

// explained adds to an error of the device's memory what is free of it, and what to do.
func (d *driver) explained(what string, err error) error {
	if !errors.Is(err, cuda.ErrOutOfMemory) {
		return err
	}
	free, total, unknown := d.device.MemInfo()
	if unknown != nil {
		return errors.Join(err, unknown)
	}
	return fmt.Errorf("%s of the device's memory; %s of %s are free: lower --batch, --fanout or "+
		"--hidden, or --backend cpu: %w", what, mem.FormatSize(free), mem.FormatSize(total), err)
}

// free frees what alloc took.
func (d *driver) free(p uint64) error {
	d.used -= d.sizes[p]
	delete(d.sizes, p)
	return d.on(func() error { return d.device.Free(cuda.DevicePtr(p)) })
}

// toDevice copies locked memory beside the operations, before the next one. It may change once an
// event behind the copy is over.
func (d *driver) toDevice(to uint64, from []byte) error {
	return d.on(func() error {
		d.copying = true
		return d.copies.CopyToDevice(cuda.DevicePtr(to), from)
	})
}

// zeroBeside clears n bytes beside the operations, before the next one.
func (d *driver) zeroBeside(p uint64, n int) error {
	return d.on(func() error {
		d.copying = true
		return d.copies.Zero(cuda.DevicePtr(p), int64(n))
	})
}

// write copies any memory to the device, and waits for it; read copies it back.
func (d *driver) write(to uint64, from []byte) error {
	return d.through(from, func(part []byte, at int) error {
		buf := d.bounce.Bytes[:copy(d.bounce.Bytes, part)]
		if err := d.stream.CopyToDevice(cuda.DevicePtr(to)+cuda.DevicePtr(at), buf); err != nil {
			return err
		}
		return d.stream.Synchronize()
	})
}

func (d *driver) read(to []byte, from uint64) error {
	return d.through(to, func(part []byte, at int) error {
		buf := d.bounce.Bytes[:len(part)]
		if err := d.stream.CopyToHost(buf, cuda.DevicePtr(from)+cuda.DevicePtr(at)); err != nil {
			return err
		}
		err := d.stream.Synchronize()
		if err == nil {
			copy(part, buf)
		}
		return err
	})
}

// through calls f with the parts of x that fit in the locked memory, and with where they begin.
func (d *driver) through(x []byte, f func(part []byte, at int) error) error {
	return d.operate(func() error {
		for at := 0; at < len(x); at += bounceBytes {
			if err := f(x[at:min(len(x), at+bounceBytes)], at); err != nil {
				return err
			}
		}
		return nil
	})
}

// zero clears n bytes.
func (d *driver) zero(p uint64, n int) error {
	return d.operate(func() error { return d.stream.Zero(cuda.DevicePtr(p), int64(n)) })
}

// sync waits for all copies and operations, and returns the first error since.
func (d *driver) sync() error {
	if d.device == nil {
		return nil
	}
	return d.on(func() error {
		return errors.Join(d.copies.Synchronize(), d.stream.Synchronize())
	})
}

// awaitCopies waits for all copies beside the operations.
func (d *driver) awaitCopies() error { return d.on(d.copies.Synchronize) }

// endStep puts one event behind all copies, and one behind all operations.
func (d *driver) endStep(copied, done *event) error {
	return d.on(func() error {
		return errors.Join(d.record(copied, d.copies), d.record(done, d.stream))
	})
}

// record puts an event into a stream. It is made at its first use.
func (d *driver) record(e *event, in *cuda.Stream) (err error) {
	if e.event == nil {
		if e.event, err = d.device.NewEvent(false); err != nil {
			return err
		}
	}
	return in.Record(e.event)
}

// reuse waits until copies were made, and has the copies to come wait for operations.
func (d *driver) reuse(copied, done *event) error {
	return d.on(func() error {
		if err := copied.event.Synchronize(); err != nil {
			return err
		}
		return d.copies.Wait(done.event)
	})
}

// end frees an event, if there is one.
func (d *driver) end(e *event) error {
	if e.event == nil {
		return nil
	}
	err := d.on(e.event.Close)
	e.event = nil
	return err
}

// launch runs a kernel. The caller has made the device current, as for product.
func (d *driver) launch(name string, blocks int, words []cuda.Argument) error {
	return d.launchOn(d.stream, name, blocks, words)
}

// launchOn runs a kernel in one of the streams.
func (d *driver) launchOn(s *cuda.Stream, name string, blocks int,
	words []cuda.Argument) (err error) {
	f, known := d.kernels[name]
	if !known {
		if f, err = d.module.Function(name); err != nil {
			return err
		}
		d.kernels[name] = f
	}
	return s.Launch(f, blocks, blockThreads, 0, words...)
}

// product computes a product. cuBLAS has matrices by columns, so that it sees the transpose of
// each, and computes cᵀ = bᵀ · aᵀ.
func (d *driver) product(p *product) error {
	beta := float32(0)
	if p.acc {
		beta = 1
	}
	of := func(x matrix) cuda.Operand {
		return cuda.Operand{Memory: cuda.DevicePtr(x.at), Stride: x.stride,
			Transposed: x.transposed}
	}
	if p.a.half {
		return d.halfProduct(p, beta, of)
	}
	if p.heads == 1 {
		return d.blas.Sgemm(p.n, p.m, p.k, 1, of(p.b), of(p.a), beta, of(p.c))
	}
	return d.blas.SgemmBatched(p.n, p.m, p.k, 1, of(p.b), of(p.a), beta, of(p.c),
		cuda.Steps{A: p.b.step, B: p.a.step, C: p.c.step}, p.heads)
}

// halfProduct computes one of bfloat16, a head after the other.
func (d *driver) halfProduct(p *product, beta float32, of func(x matrix) cuda.Operand) error {
	for h := range p.heads {
		a, b, c := p.a, p.b, p.c
		for _, x := range []*matrix{&a, &b, &c} {
			bytes := floatBytes
			if x.half {
				bytes = halfBytes
			}
			x.at += uint64(h * x.step * bytes)
		}
		if err := d.blas.GemmBF16(p.n, p.m, p.k, 1, of(b), of(a), beta, of(c),
			c.half); err != nil {
			return err
		}
	}
	return nil
}
