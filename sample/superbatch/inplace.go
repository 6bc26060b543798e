package superbatch

import (
	"gdb/sample"
	"gdb/sample/rowcache"
	"gdb/sample/superbatch/changeset"
	"gdb/sample/superbatch/runtimefile"
)

// readInPlace reads the rows that a batch misses to their slots, and sets f.rows to the slots of
// its neighbors. No batch still in use has a row in these slots: see changeset.Changes.Alone.
func (t *assembly) readInPlace(f *frame, buf *runtimefile.Buffer) error {
	c, d := &f.changes, &f.batch.Dense
	f.missed, f.at = f.missed[:0], f.at[:0]
	for k, i := range c.Keep {
		if c.From[i] != 0 {
			return t.s.plans.Damage(t.s.index[f.step-t.s.first].plan.Off(),
				"row %d is in two slots", i)
		}
		c.From[i] = c.Slots[k] + 1
		f.missed, f.at = append(f.missed, d.NodeIDs[i]), append(f.at, c.Slots[k])
	}
	if c.Hits+len(c.Keep) != len(c.From) {
		return t.s.plans.Damage(t.s.index[f.step-t.s.first].plan.Off(),
			"%d rows of %d have no slot", len(c.From)-c.Hits-len(c.Keep), len(c.From))
	}
	if cap(f.rows) < len(d.ReprMap) {
		f.rows = make([]uint32, 0, cap(d.ReprMap))
	}
	f.rows = f.rows[:len(d.ReprMap)]
	for e, r := range d.ReprMap {
		f.rows[e] = c.From[r] - 1
	}
	if err := t.count(f); err != nil || len(f.missed) == 0 {
		return err
	}
	if c.Alone { // wait until the previous batch's frame was returned
		other, ok := sample.Receive(t.stages, t.empty, &t.l.reading.Blocked)
		if !ok {
			return t.stages.Err()
		}
		t.empty <- other
	}
	if err := t.order(f); err != nil {
		return err
	}
	return t.fetch(f, 0, len(f.missed), f.at, t.l.slots, buf)
}

// assembleInPlace copies the rows to the batch, except those of the outermost delta, which stay in
// slots.
func (t *assembly) assembleInPlace(f *frame) {
	l, b := t.l, &f.batch
	from := f.changes.From[b.Dense.NodeIDOffsets[1]:]
	n := len(from) * l.dim
	x := f.x.Floats()[:n:n]
	rowcache.Parallel(len(from), l.cfg.Threads, n*4, func(first, end int) {
		rowcache.CopyEach(x[first*l.dim:], l.slots, l.dim, end-first, n*4, func(i int) uint32 {
			return from[first+i] - 1
		})
	})
	b.X, b.Dim, b.Table, b.TableRows = x, l.dim, l.slots, f.rows
	l.add(&f.changes)
}

// add counts the rows that a batch asked for, found in slots and copied to slots.
func (l *Loader) add(c *changeset.Changes) {
	l.requests.Add(uint64(len(c.From)))
	l.hits.Add(uint64(c.Hits))
	l.kept.Add(uint64(len(c.Keep)))
}

// lend counts a batch that the consumer holds, which may have rows in slots.
func (l *Loader) lend() {
	l.mu.Lock()
	l.mu.lent++
	l.mu.Unlock()
}

// giveBack counts a batch as returned, and frees the slots if the loader was closed meanwhile.
func (l *Loader) giveBack() {
	l.mu.Lock()
	l.mu.lent--
	l.mu.Unlock()
	_ = l.freeSlots() // unmapping what was mapped cannot fail
}

// slotsHeld reports whether the consumer holds a batch with rows in slots.
func (l *Loader) slotsHeld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cfg.InPlace && l.mu.lent > 0
}

// freeSlots frees the slots of a loader that was closed, unless a lent batch has rows there.
func (l *Loader) freeSlots() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mu.closed || l.mu.lent > 0 || l.arena == nil {
		return nil
	}
	a := l.arena
	l.arena, l.slots = nil, nil
	return a.Free()
}
