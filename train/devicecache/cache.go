// Package devicecache keeps rows of features in the memory of the device that computes, so that
// batches carry only the other rows over the bus. It keeps the rows of the nodes that occur in most
// lists (Z. Lin, C. Li, Y. Miao, Y. Liu, Y. Xu, PaGraph, section 3.3). Other rows are read from
// disk into page-locked memory; rows that are stored as float32 stay there as they were read. From
// there they are sent, together with copies of rows that the host keeps; or the device reads both
// where they lie (S. Min and others, PyTorch-Direct, section 4). Both ways are tried and the faster
// is taken. A step computes the same, to the bit, with and without the cache.
package devicecache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"gdb/compute/backend"
	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/rowcache"
)

// Cache is a source of features of which a device keeps some rows, once it was filled: For returns
// it as those of a batch, for the pipeline of one training. Of each batch it gathers the rows that
// the device does not keep, into page-locked memory of its own or, where there is none, into the
// beginning of the batch's X. It writes where each row is into what was prepared of the batch, so
// that a step goes over no rows. For, Place and the features may be called from any goroutine, all
// others only from the goroutine of the backend.
type Cache struct {
	host    rowcache.Features
	located rowcache.Located // host, or nil if that does not say where its rows are
	be      backend.Backend
	budget  *mem.Budget
	kept    atomic.Pointer[kept] // nil until the cache was filled
	held    held

	notes  notes[places]
	stats  Stats
	flying [stepsFlying]*places // of the last steps, which the device may still read
	step   int
	bound  int // values sent in a step, at least the most so far
}

// kept holds the rows that the device has.
type kept struct {
	set  *sample.NodeSet // their nodes, in the order of the rows
	rows backend.Tensor  // (nodes, Dim)
}

// Prepared is what was prepared of a batch, as *program.Prepared: it has room for numbers that say
// where rows are, of which a step is given the tensor.
type Prepared interface {
	// FeatureRows returns how many rows the step asks for.
	FeatureRows() int
	// Places returns memory for a number of words, instead of what it returned before.
	Places(words int) []uint32
}

// preparedOf returns what was prepared of a batch.
func preparedOf(b *sample.Batch) Prepared {
	p, ok := b.Prepared.(Prepared)
	bug.Check(ok, "a batch is not prepared whose rows are put together on the device")
	return p
}

// Stats counts the rows of batches that were trained on (Rows), and those of them that the
// device had (Hits).
type Stats struct{ Rows, Hits uint64 }

// New returns a cache in front of the features host, which their owner closes after the cache.
// located is the same, or nil if it does not say where its rows are. The device keeps no rows until
// Fill.
func New(host rowcache.Features, located rowcache.Located, be backend.Backend,
	budget *mem.Budget) *Cache {
	c := &Cache{host: host, located: located, be: be, budget: budget}
	c.notes = newNotes(func() *places {
		return &places{held: mem.NewAccount(budget, "places of rows on the device")}
	})
	return c
}

// Dim returns the number of values in a row.
func (c *Cache) Dim() int { return c.host.Dim() }

// For returns the features of a batch that was prepared, which gather X of it.
func (c *Cache) For(b *sample.Batch) rowcache.Features {
	return features{Features: c.host, gather: c.gatherFor, to: preparedOf(b)}
}

// features are those behind a cache, of which a batch gathers what the device does not keep.
type features struct {
	rowcache.Features
	gather func(ctx context.Context, to Prepared, nodes []sample.NodeID, out []float32) error
	to     Prepared
}

// Lent returns nil: a step assembles rows on the device.
func (f features) Lent() []float32 { return nil }

// Gather reads the rows of nodes that the device does not keep, and notes for Input where each row
// is. out must be X of the batch.
func (f features) Gather(ctx context.Context, nodes []sample.NodeID, out []float32) error {
	return f.gather(ctx, f.to, nodes, out)
}

// gatherFor gathers a batch, of which to is prepared.
func (c *Cache) gatherFor(ctx context.Context, to Prepared, nodes []sample.NodeID,
	out []float32) error {
	numbered, err := c.gather(ctx, to.Places(to.FeatureRows()), nodes, out)
	if !numbered {
		to.Places(0)
	}
	return err
}

// gather gathers the rows of nodes that the device does not keep, and writes where each row is to
// the end of from. It returns whether a step needs these numbers.
func (c *Cache) gather(ctx context.Context, from []uint32, nodes []sample.NodeID,
	out []float32) (numbered bool, err error) {
	if len(out) == 0 {
		return false, c.host.Gather(ctx, nodes, out)
	}
	c.notes.give(c.notes.take(&out[0])) // of a batch that was given up
	p := c.notes.spare()
	err = p.split(c.kept.Load(), from, nodes)
	if err == nil {
		err = c.gatherMissed(ctx, p, out)
	}
	if err != nil || p.whole && p.locked == nil { // X is as it is without the cache
		c.notes.give(p)
		return false, err
	}
	c.notes.put(&out[0], p)
	return !p.whole, nil
}

// Place does what gathering does for a batch that has all its rows in X, which is page-locked: it
// moves those that the device does not keep to the front of X, from which they are sent, and notes
// where each is. X must stay as it is until backend.Device.AwaitSent.
func (c *Cache) Place(b *sample.Batch) error {
	if len(b.X) == 0 || b.Table != nil {
		return nil
	}
	c.notes.give(c.notes.take(&b.X[0])) // of a batch that was given up
	to, p := preparedOf(b), c.notes.spare()
	err := p.split(c.kept.Load(), to.Places(to.FeatureRows()), b.Dense.NodeIDs)
	if err == nil {
		err = p.inOrder(0, c.Dim())
	}
	sends := c.be.Device() != nil
	if err != nil || p.whole && !sends { // X is as it is without the cache
		c.notes.give(p)
		return err
	}
	if p.whole {
		to.Places(0)
	} else {
		p.compact(b.X, c.Dim())
	}
	if sends {
		p.locked = b.X[:len(p.missed)*c.Dim()]
	}
	c.notes.put(&b.X[0], p)
	return nil
}

// gatherMissed reads the rows that the device lacks, into locked memory if there is some, else into
// out.
func (c *Cache) gatherMissed(ctx context.Context, p *places, out []float32) error {
	if on := c.be.Device(); on != nil && len(p.missed) > 0 {
		done, err := c.gatherLocked(ctx, on, p)
		if done || err != nil {
			return err
		}
	}
	p.inPlace, p.locked = false, nil
	if err := p.inOrder(0, c.Dim()); err != nil {
		return err
	}
	return c.host.Gather(ctx, p.missed, out[:len(p.missed)*c.Dim()])
}

// Filled reports whether the device keeps rows.
func (c *Cache) Filled() bool { return c.kept.Load() != nil }

// Rows returns how many rows the device keeps.
func (c *Cache) Rows() int {
	if k := c.kept.Load(); k != nil {
		return k.set.Count()
	}
	return 0
}

// Used returns the counts so far.
func (c *Cache) Used() Stats { return c.stats }

// Input returns a function that assembles the rows of a batch on the device, in the order of its
// nodes. It may be called once, in the step that was begun. Input returns nil if X has all rows and
// goes to the device as it is.
func (c *Cache) Input(b *sample.Batch) (backend.Assemble, error) {
	return c.input(b.X, len(b.Dense.NodeIDs)), nil
}

// input is Input of a number of nodes whose X is x.
func (c *Cache) input(x []float32, nodes int) backend.Assemble {
	if len(x) == 0 {
		return nil
	}
	c.stats.Rows += uint64(nodes)
	p := c.notes.take(&x[0])
	if p == nil {
		return nil
	}
	c.fly(p)
	c.stats.Hits += uint64(nodes - len(p.missed))
	if p.whole {
		return func(rows int, _ backend.Tensor) backend.Tensor { return c.sendWhole(p, rows) }
	}
	return func(rows int, from backend.Tensor) backend.Tensor { return c.pick(p, x, rows, from) }
}

// pick assembles rows on the device, as from says. Rows that it does not keep come from locked
// memory or from x.
func (c *Cache) pick(p *places, x []float32, rows int, from backend.Tensor) backend.Tensor {
	keptRows := c.be.Scratch(0, c.Dim())
	if p.kept != nil {
		keptRows = p.kept.rows
	}
	if p.inPlace {
		return c.be.Device().ReadLocked(keptRows, c.held.rows, p.locked, from, c.Dim(),
			len(p.missed))
	}
	out := c.be.Scratch(rows, c.Dim())
	var sent backend.Tensor
	if p.locked != nil {
		sent = c.sendLocked(p)
	} else {
		sent = c.be.Host(x, 1, len(p.missed)*c.Dim())
	}
	backend.PickRows(c.be, out, keptRows, sent, from)
	return out
}

// Close frees the host's memory once the device has finished what it was given. The backend frees
// the device's memory.
func (c *Cache) Close() error {
	err := errors.Join(c.freeLocked(), c.release())
	if k := c.kept.Swap(nil); k != nil {
		err = errors.Join(err, k.set.Free())
	}
	return err
}

// fillBytes is about how many bytes of rows are read and copied to the device at a time.
const fillBytes = 4 << 20

// Fill copies the rows of some nodes to the device; total is the number of nodes in the graph. It
// is called between two steps. Batches that were gathered before it are still good. After an error
// the device keeps no rows.
func (c *Cache) Fill(ctx context.Context, rows rowcache.Rows, nodes []sample.NodeID,
	total uint64) (err error) {
	if len(nodes) == 0 || c.Filled() {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("devicecache: copy rows of features to the device: %w", err)
		}
	}()
	set, err := sample.NewNodeSet(total, c.budget)
	if err != nil {
		return err
	}
	for _, v := range nodes {
		set.Add(uint32(v))
	}
	set.Number()
	all, err := c.be.Params("rows of features", set.Count()*c.Dim())
	if err != nil {
		return errors.Join(err, set.Free())
	}
	k := &kept{set: set, rows: all.View(0, set.Count(), c.Dim())}
	if err := c.copyRows(ctx, rows, k); err != nil {
		if on := c.be.Device(); on != nil {
			err = errors.Join(err, on.Release(all))
		}
		return errors.Join(err, set.Free())
	}
	c.kept.Store(k)
	return nil
}

// copyRows copies the rows to the device in the order of the file.
func (c *Cache) copyRows(ctx context.Context, rows rowcache.Rows, k *kept) (err error) {
	part := max(1, fillBytes/(4*c.Dim()))
	a, err := mem.NewArena(c.budget, "rows to copy to the device", int64(4*part*c.Dim()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Free()) }()
	x, ids := mem.View[float32](a.Bytes()), make([]sample.NodeID, part)
	next := k.set.Nodes(k.set.Total())
	for first := 0; first < k.set.Count(); {
		some := next(ids[:part])
		if err := rows.GatherParts(ctx, some, nil, x, nil); err != nil {
			return err
		}
		c.be.Write(k.rows.Slice(first, len(some)), x)
		if err := c.be.Err(); err != nil {
			return err
		}
		first += len(some)
	}
	return nil
}
