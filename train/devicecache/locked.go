package devicecache

import (
	"context"
	"errors"

	"gdb/blockdev"
	"gdb/compute/backend"
	"gdb/compute/kernel"
	"gdb/internal/bug"
	"gdb/internal/mem"
)

// stepsFlying is how many of the last steps the device may still be copying from locked memory: see
// backend.Device.
const stepsFlying = 2

// lockedRows returns page-locked memory of a number of bytes, which the device copies from or reads
// while the host goes on. It returns nil where there is no room for it.
func (c *Cache) lockedRows(on backend.Device, p *places, bytes int) ([]byte, error) {
	if p.memory != nil && len(p.memory.Bytes()) < bytes {
		if err := p.free(on); err != nil {
			return nil, err
		}
	}
	if p.memory == nil {
		a, err := mem.NewArena(c.budget, "rows on their way to the device", int64(bytes+bytes/8))
		var full *mem.LimitError
		if errors.As(err, &full) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if err := on.Lock(a.Bytes()); err != nil {
			return nil, errors.Join(err, a.Free())
		}
		p.memory = a
	}
	return p.memory.Bytes()[:bytes:bytes], nil
}

// free unlocks and frees the memory, which the device must not be using any more.
func (p *places) free(on backend.Device) error {
	a := p.memory
	if p.memory, p.locked = nil, nil; a == nil {
		return nil
	}
	return errors.Join(on.Unlock(a.Bytes()), a.Free())
}

// gatherLocked gathers the rows that the device lacks into locked memory, or notes where the device
// reads them. It returns false if there is no room.
func (c *Cache) gatherLocked(ctx context.Context, on backend.Device, p *places) (bool, error) {
	if c.located != nil {
		return c.gatherLocated(ctx, on, p)
	}
	memory, err := c.lockedRows(on, p, 4*len(p.missed)*c.Dim())
	if err != nil || memory == nil {
		return false, err
	}
	p.locked = mem.View[float32](memory)
	if err := p.inOrder(0, c.Dim()); err != nil {
		return false, err
	}
	return true, c.host.Gather(ctx, p.missed, p.locked)
}

// gatherLocated does the work of gatherLocked for features that tell where their rows are.
func (c *Cache) gatherLocated(ctx context.Context, on backend.Device, p *places) (bool, error) {
	p.slots = mem.Resize(p.slots, len(p.missed))
	if err := c.located.Locate(p.missed, p.slots); err != nil {
		return false, err
	}
	p.locate(c.held.inPlace)
	if err := p.held.AtLeast(p.bytes()); err != nil {
		return false, err
	}
	g := &gathering{c: c, on: on, p: p, first: p.keptRows()}
	if p.inPlace {
		g.first += len(c.held.rows) / c.Dim()
	}
	err := errors.Join(g.readRows(ctx), g.wait())
	return g.done, err
}

// gathering gathers rows of a batch into locked memory: first copies of rows that the host keeps,
// then rows that are read from disk.
type gathering struct {
	c      *Cache
	on     backend.Device
	p      *places
	first  int        // the number in from that means the first value of locked memory
	front  int        // bytes of locked memory before the rows that are read
	copied chan error // nil until rows are being copied
	done   bool       // there was room for all rows
}

// storedMore bounds what is read for rows that stay as they are stored: at most one part in
// storedMore more than the rows have. If more would be read the rows are copied instead.
const storedMore = 4

// MoreSent returns how many bytes more than a number of bytes of rows may be sent to a device.
func MoreSent(rows int64) int64 { return rows / storedMore }

// readRows reads the rows that the host does not keep. They stay where they are read to if they are
// stored as they are used and make up most of what is read.
func (g *gathering) readRows(ctx context.Context) (err error) {
	p, rows, dim := g.p, g.c.located.Behind(), g.c.Dim()
	least := int64(4 * len(p.read) * dim)
	var to []byte
	read := false
	if len(p.read) > 0 {
		read, err = rows.GatherStored(ctx, p.read, p.at, func(bytes, most int64) ([]byte, error) {
			if bytes <= least+MoreSent(least) {
				to, err = g.room(ctx, most)
			}
			return to, err
		})
	}
	if err == nil && to == nil {
		to, err = g.room(ctx, least)
	}
	if err != nil || !g.done {
		return err
	}
	if !read && len(p.read) > 0 {
		err = rows.GatherParts(ctx, p.read, nil, mem.View[float32](to), nil)
		for j := range p.at {
			p.at[j] = uint32(j * dim)
		}
	}
	g.place(read)
	return err
}

// room takes memory for the copies and for bytes bytes behind them, which it returns, and starts to
// copy. If there is no memory g.done stays false.
func (g *gathering) room(ctx context.Context, bytes int64) ([]byte, error) {
	dim := g.c.Dim()
	copies := 4 * len(g.p.apart) * dim
	g.front = (copies + blockdev.Align - 1) &^ (blockdev.Align - 1)
	all := g.front + int(bytes)
	if g.first+all/4 >= kernel.NoRow {
		return nil, errTooWide
	}
	if g.done = all == 0; g.done {
		return nil, nil
	}
	memory, err := g.c.lockedRows(g.on, g.p, all)
	if err != nil || memory == nil {
		return nil, err
	}
	g.done, g.p.locked = true, mem.View[float32](memory)
	for j, i := range g.p.apartTo {
		g.p.from[i] = uint32(g.first + j*dim)
	}
	if len(g.p.apart) > 0 {
		copied, host, apart := make(chan error, 1), g.c.host, g.p.apart
		to := g.p.locked[:copies/4] // place cuts what is locked while rows are copied
		g.copied = copied
		go func() {
			defer bug.Catch()
			copied <- host.Gather(ctx, apart, to)
		}()
	}
	return memory[g.front:], nil
}

// wait waits until the copies are made.
func (g *gathering) wait() error {
	if g.copied == nil {
		return nil
	}
	return <-g.copied
}

// place notes where each row was read to, and cuts off the memory behind the last one.
func (g *gathering) place(stored bool) {
	p, end := g.p, uint32(0)
	for j, i := range p.readTo {
		p.from[i] = uint32(g.first+g.front/4) + p.at[j]
		end = max(end, p.at[j]+uint32(g.c.Dim()))
	}
	if end > 0 {
		end += uint32(g.front / 4)
	} else {
		end = uint32(len(p.apart) * g.c.Dim())
	}
	p.locked = p.locked[:end]
	p.whole = p.kept == nil && !p.inPlace && !stored && len(p.read) == len(p.missed)
}

// fly keeps the places of a batch from being reused while the device may read them. It frees the
// places of the step stepsFlying steps earlier, whose copies are complete.
func (c *Cache) fly(p *places) {
	c.notes.give(c.flying[c.step%stepsFlying])
	c.flying[c.step%stepsFlying] = p
	c.step++
}

// sendWhole sends all rows of a batch, with zero rows before them.
func (c *Cache) sendWhole(p *places, rows int) backend.Tensor {
	return c.be.Device().SendLocked(p.locked, rows-len(p.missed), rows, c.Dim())
}

// boundShare is by which part the bound of the values sent is larger than the values,
// when it grows.
const boundShare = 16

// sendLocked sends the rows that the device does not keep. They take as much memory there as the
// bound, so that what a step is given after them has the same addresses in each step: see
// Backend.Groups.
func (c *Cache) sendLocked(p *places) backend.Tensor {
	n := len(p.locked)
	if n > c.bound {
		c.bound = n + n/boundShare
	}
	return c.be.Device().SendLocked(p.locked, 0, 1, c.bound)
}

// Rest ends the step under way, and frees the locked memory that no batch has rows in, once the
// device has finished what it was given. Batches that follow take it again.
func (c *Cache) Rest() (err error) {
	on := c.be.Device()
	if on != nil {
		err = c.be.Trim()
	}
	for i, p := range c.flying {
		c.notes.give(p)
		c.flying[i] = nil
	}
	for _, p := range c.notes.idle() {
		if on != nil {
			err = errors.Join(err, p.free(on))
		}
		c.notes.give(p)
	}
	return err
}

// freeLocked frees all locked memory once the device has finished what it was given.
func (c *Cache) freeLocked() error {
	err := c.Rest()
	for _, p := range c.notes.end() {
		p.held.Release()
		if on := c.be.Device(); on != nil {
			err = errors.Join(err, p.free(on))
		}
	}
	return err
}
