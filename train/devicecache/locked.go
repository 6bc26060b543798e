package devicecache

import (
	"errors"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/train/backend"
)

// stepsFlying is how many steps may still be copied from locked memory: see Separate.SendLocked.
const stepsFlying = 2

// places say where the rows of a batch are.
type places struct {
	// from is the row of each node among those kept and, behind these, sent; whole says that all
	// are sent, and from is not used.
	from   []uint32
	whole  bool
	missed []sample.NodeID // whose rows are sent
	// locked has these rows; nil if X has them.
	locked []float32
	memory *mem.Arena // page-locked; nil until there is some
	held   mem.Account
}

// lockedRows is page-locked memory for so many values, which the device copies from while the host
// goes on. It is nil where there is none, or no room for it.
func (c *Cache) lockedRows(p *places, values int) ([]float32, error) {
	on, ok := c.be.(backend.Separate)
	if !ok || values == 0 {
		return nil, nil
	}
	if p.memory != nil && len(p.memory.Bytes()) < 4*values {
		if err := p.free(on); err != nil {
			return nil, err
		}
	}
	if p.memory == nil {
		bytes := 4 * int64(values+values/8)
		a, err := mem.NewArena(c.budget, "rows on their way to the device", bytes)
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
	return mem.View[float32](p.memory.Bytes())[:values:values], nil
}

// free frees the locked memory, from which nothing is copied any more.
func (p *places) free(on backend.Separate) error {
	a := p.memory
	if p.memory, p.locked = nil, nil; a == nil {
		return nil
	}
	return errors.Join(on.Unlock(a.Bytes()), a.Free())
}

// fly notes a batch of which the device is sent rows in this step, and has that of the step before
// the last one used again, whose copies are made.
func (c *Cache) fly(p *places) {
	c.give(c.flying[c.step%stepsFlying])
	c.flying[c.step%stepsFlying] = p
	c.step++
}

// sendWhole sends all rows, behind rows of zeros.
func (c *Cache) sendWhole(p *places, rows int) backend.Tensor {
	return c.be.(backend.Separate).SendLocked(p.locked, rows-len(p.missed), rows, c.Dim())
}

// boundShare is the part of the rows sent by which the bound of them is larger, when it grows.
const boundShare = 16

// sendMissed sends the rows that the device does not have. Their memory there is that of a bound,
// so that what a step is given behind them has the same addresses in each: see Backend.Groups.
func (c *Cache) sendMissed(p *places) backend.Tensor {
	n := len(p.missed)
	if n > c.bound {
		c.bound = n + n/boundShare
	}
	return c.be.(backend.Separate).SendLocked(p.locked, 0, c.bound, c.Dim())
}

// freeLocked frees all locked memory, once the device has done what it was given.
func (c *Cache) freeLocked() (err error) {
	on, ok := c.be.(backend.Separate)
	if ok {
		err = c.be.Trim()
	}
	all := append(c.mu.free, c.flying[:]...)
	for _, p := range c.mu.placed {
		all = append(all, p)
	}
	for _, p := range all {
		if p == nil {
			continue
		}
		p.held.Release()
		if ok {
			err = errors.Join(err, p.free(on))
		}
	}
	c.mu.placed, c.mu.free, c.flying = nil, nil, [stepsFlying]*places{}
	return err
}
