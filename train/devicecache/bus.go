package devicecache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/sample/rowcache"
	"gdb/train/plan"
)

const (
	// tryBytes bounds the rows with which both ways are tried, and tryMemory the memory that they
	// lie in: more than a processor's caches hold.
	tryBytes, tryMemory = 32 << 20, 256 << 20
	// tryRounds is how often each way is measured, after a first round that does not count. The
	// fastest round counts.
	tryRounds = 3
)

// held describes rows of the host that the device reads in place.
type held struct {
	inPlace bool      // the device reads rows in place, also those read from disk
	memory  []byte    // page-locked; nil if the host keeps no rows
	rows    []float32 // in memory, one after the other
}

// Choose tries both ways by which rows can come to the device, with as many rows as a batch of a
// plan has, and records the faster one in the plan; if that has one already, of another device, it
// takes that. nodes is the number of nodes of the graph. It is called once, before the first step.
func (c *Cache) Choose(ctx context.Context, p *plan.Plan, nodes uint64, threads int) error {
	on := p.OnDevice
	if on == nil || p.Superbatch != nil || on.Rows == int64(nodes) {
		return nil
	}
	if on.Bus != nil {
		return c.readInPlace(on.Bus)
	}
	rows := float64(p.BatchNodes)
	if f := p.Forecast; f != nil {
		rows = f.Nodes * (1 - f.DeviceHit)
	}
	way, err := c.choose(ctx, int(rows), threads)
	if err != nil {
		return fmt.Errorf("devicecache: try how rows come to the device: %w", err)
	}
	on.Bus = &way
	return nil
}

// choose tries both ways with rows that lie apart in memory. In one, the host copies them to
// locked memory, on a number of threads, from which they are sent; copying and sending overlap,
// so this way takes as long as the slower of the two. In the other the device reads them where
// they lie. The faster way is used from then on. If they are equal it is reading in place, which
// leaves the host's cores and memory bandwidth to others. Memory that cannot be locked, or has no
// room, is no error.
func (c *Cache) choose(ctx context.Context, rows, threads int) (way plan.BusWay, err error) {
	on := c.be.Device()
	if on == nil || c.located == nil || rows == 0 {
		return way, nil
	}
	memory, first := c.located.Memory()
	t := trial{c: c, on: on, rows: min(rows, max(1, tryBytes/(4*c.Dim()))), threads: threads}
	if err := t.open(memory, first); err != nil {
		way.Why = err.Error()
		return way, t.close()
	}
	way, err = t.measure(ctx)
	if err = errors.Join(err, t.close()); err != nil || !way.InPlace {
		return way, err
	}
	c.located.Hold(true)
	if err := c.readInPlace(&way); err != nil {
		c.located.Hold(false)
		way.InPlace, way.Why = false, err.Error()
	}
	return way, nil
}

// readInPlace locks the host's rows, if the device reads them where they are.
func (c *Cache) readInPlace(way *plan.BusWay) error {
	if !way.InPlace {
		return nil
	}
	if memory, first := c.located.Memory(); memory != nil {
		if err := c.be.Device().Lock(memory); err != nil {
			return err
		}
		c.held.memory, c.held.rows = memory, mem.View[float32](memory[first:])
	}
	c.held.inPlace = true
	return nil
}

// release unlocks the rows that the device read in place.
func (c *Cache) release() error {
	if c.held.memory == nil {
		return nil
	}
	memory := c.held.memory
	c.held = held{}
	return c.be.Device().Unlock(memory)
}

// trial measures both ways.
type trial struct {
	c       *Cache
	on      backend.Device
	rows    int
	threads int
	arena   *mem.Arena // nil where the host's own rows are used
	memory  []byte     // locked: the host's rows, or the arena
	from    []float32  // rows in it
	held    bool       // memory is the host's rows
	sent    places     // has locked memory for copies
	ids     []uint32   // the rows in from that are copied and read
}

// open locks some of the host's rows, or memory of its own where the host keeps none, and
// memory for copies.
func (t *trial) open(memory []byte, first int) (err error) {
	dim := t.c.Dim()
	if t.held = first+4*dim <= len(memory); !t.held {
		t.arena, err = mem.NewArena(t.c.budget, "rows to try a device with", int64(4*t.rows*dim))
		if err != nil {
			return err
		}
		memory, first = t.arena.Bytes(), 0
	}
	memory = memory[:min(len(memory), first+tryMemory)]
	if err := t.on.Lock(memory); err != nil {
		return err
	}
	t.memory, t.from = memory, mem.View[float32](memory[first:])
	copies, err := t.c.lockedRows(t.on, &t.sent, 4*t.rows*dim)
	if err == nil && copies == nil {
		err = fmt.Errorf("no room in --memory for %s of rows to try it with",
			mem.FormatSize(int64(4*t.rows*dim)))
	}
	t.sent.locked = mem.View[float32](copies)
	t.ids = make([]uint32, t.rows)
	for i := range t.ids {
		t.ids[i] = uint32(rng.Key(uint64(i)) % uint64(len(t.from)/t.c.Dim()))
	}
	return err
}

// close waits for the device, then unlocks and frees everything.
func (t *trial) close() error {
	err := errors.Join(t.c.be.Trim(), t.sent.free(t.on))
	if t.memory != nil {
		err = errors.Join(err, t.on.Unlock(t.memory))
	}
	if t.arena != nil {
		err = errors.Join(err, t.arena.Free())
	}
	return err
}

// measure times both ways.
func (t *trial) measure(ctx context.Context) (way plan.BusWay, err error) {
	way.Bytes = int64(4 * t.rows * t.c.Dim())
	if t.held {
		way.Copy, err = t.best(ctx, func() error { t.copyRows(); return nil })
	}
	if err == nil {
		way.Send, err = t.best(ctx, func() error { return t.onDevice(t.send) })
	}
	if err == nil {
		way.Read, err = t.best(ctx, func() error { return t.onDevice(t.read) })
	}
	way.InPlace = way.Read <= max(way.Copy, way.Send)
	return way, err
}

// best returns the duration of the fastest of some rounds, in seconds.
func (t *trial) best(ctx context.Context, round func() error) (seconds float64, err error) {
	for i := range 1 + tryRounds {
		begun := time.Now()
		if err := errors.Join(ctx.Err(), round()); err != nil {
			return 0, err
		}
		if took := time.Since(begun).Seconds(); i == 1 || i > 1 && took < seconds {
			seconds = took
		}
	}
	return seconds, nil
}

// copyRows copies rows to locked memory as a gather does.
func (t *trial) copyRows() {
	d := t.c.Dim()
	rowcache.Parallel(t.rows, t.threads, 4*t.rows*d, func(first, end int) {
		rowcache.CopyRows(t.sent.locked[first*d:], t.from, d, t.ids[first:end], nil, 4*t.rows*d)
	})
}

// onDevice gives a step rows, and waits until the device has them.
func (t *trial) onDevice(give func() backend.Tensor) error {
	if err := t.c.be.Begin(); err != nil {
		return err
	}
	x := give()
	last := make([]float32, 1)
	t.c.be.Read(last, x.Flat().View(x.Len()-1, 1, 1))
	return t.c.be.Err()
}

func (t *trial) send() backend.Tensor {
	return t.on.SendLocked(t.sent.locked, 0, t.rows, t.c.Dim())
}

func (t *trial) read() backend.Tensor {
	return t.on.ReadLocked(t.c.be.Scratch(0, t.c.Dim()), t.from, nil,
		backend.Words(t.c.be, t.ids), t.c.Dim(), len(t.ids))
}
