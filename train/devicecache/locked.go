package devicecache

import (
	"context"
	"errors"

	"gdb/blockdev"
	"gdb/compute/backend"
	"gdb/compute/kernel"
	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/sample/rowcache"
)

// stepsFlying is how many steps may still be copied from locked memory: see backend.Device.
const stepsFlying = 2

// lockedRows is page-locked memory for so many bytes, which the device copies from or reads while
// the host goes on. It is nil where there is no room for it.
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

// free frees the locked memory, from which nothing is copied any more.
func (p *places) free(on backend.Device) error {
	a := p.memory
	if p.memory, p.locked = nil, nil; a == nil {
		return nil
	}
	return errors.Join(on.Unlock(a.Bytes()), a.Free())
}

// gatherLocked has the rows that miss in locked memory, or where the device reads them. It is false
// if there is no room.
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

// gatherLocated is gatherLocked of features that tell where their rows are.
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

// gathering gathers rows of a batch to locked memory: first copies of those that the host has, then
// those that are read from disk.
type gathering struct {
	c      *Cache
	on     backend.Device
	p      *places
	first  int        // the number in from of the first value of locked memory
	front  int        // bytes of it before what is read
	copied chan error // once rows are being copied
	done   bool       // there was room
}

// storedMore is the part of its rows by which what is read for them may be more, where they stay as
// they are stored: of others copies are made.
const storedMore = 4

// MoreSent is how much more may be sent to a device than so many bytes of rows.
func MoreSent(rows int64) int64 { return rows / storedMore }

// readRows reads the rows that the host does not have: to where they stay, if they are stored as
// they are used and are most of what is read.
func (g *gathering) readRows(ctx context.Context) (err error) {
	p, rows, dim := g.p, g.c.located.Behind(), g.c.Dim()
	least := int64(4 * len(p.read) * dim)
	var to []byte
	read := false
	if stored, ok := rows.(rowcache.StoredRows); ok && len(p.read) > 0 {
		read, err = stored.GatherStored(ctx, p.read, p.at, func(bytes, most int64) ([]byte, error) {
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
		err = rows.Gather(ctx, p.read, nil, mem.View[float32](to))
		for j := range p.at {
			p.at[j] = uint32(j * dim)
		}
	}
	g.place(read)
	return err
}

// room takes memory for copies and so many bytes behind them, which it returns, and begins to copy.
// Where there is none it is not done.
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

// wait waits for copies.
func (g *gathering) wait() error {
	if g.copied == nil {
		return nil
	}
	return <-g.copied
}

// place notes where rows were read to, and leaves what is behind the last of them out.
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

// fly notes a batch of which the device is sent rows in this step, and has that of the step before
// the last one used again, whose copies are made.
func (c *Cache) fly(p *places) {
	c.notes.give(c.flying[c.step%stepsFlying])
	c.flying[c.step%stepsFlying] = p
	c.step++
}

// sendWhole sends all rows, behind rows of zeros.
func (c *Cache) sendWhole(p *places, rows int) backend.Tensor {
	return c.be.Device().SendLocked(p.locked, rows-len(p.missed), rows, c.Dim())
}

// boundShare is the part of the values sent by which the bound of them is larger, when it grows.
const boundShare = 16

// sendLocked sends the rows that the device does not have. Their memory there is that of a bound,
// so that what a step is given behind them has the same addresses in each: see Backend.Groups.
func (c *Cache) sendLocked(p *places) backend.Tensor {
	n := len(p.locked)
	if n > c.bound {
		c.bound = n + n/boundShare
	}
	return c.be.Device().SendLocked(p.locked, 0, 1, c.bound)
}

// freeLocked frees all locked memory, once the device has done what it was given.
func (c *Cache) freeLocked() (err error) {
	on := c.be.Device()
	if on != nil {
		err = c.be.Trim()
	}
	for _, p := range append(c.notes.end(), c.flying[:]...) {
		if p == nil {
			continue
		}
		p.held.Release()
		if on != nil {
			err = errors.Join(err, p.free(on))
		}
	}
	c.flying = [stepsFlying]*places{}
	return err
}
