package rowcache

import (
	"slices"
	"sync"

	"gdb/internal/bug"
	"gdb/layout"
)

// Missed rows get slots while they are being read. Such a slot is pending in the index: it is no
// hit, and nobody copies from it. Whoever has the row of a pending slot copies it there and clears
// the mark. If its read fails the mark stays, and the next gather that reads the row fills the
// slot.

// arrivals are the rows of one gather that have been read, as indexes into missed, in the order in
// which they came. Rows that arrive before slots are given wait until then.
type arrivals struct {
	mu     sync.Mutex
	rows   []uint32
	placed bool
}

// begin makes room for this number of rows, so that the list is not moved while others read it.
func (a *arrivals) begin(rows int) {
	a.rows, a.placed = slices.Grow(a.rows[:0], rows), false
}

// arrive adds n rows, and returns those to copy to slots now.
func (a *arrivals) arrive(n int, row func(k int) uint32) []uint32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := len(a.rows)
	for k := range n {
		a.rows = append(a.rows, row(k))
	}
	if !a.placed {
		return nil
	}
	return a.rows[first:]
}

// place notes that slots are given, and returns the rows that arrived before, to copy to slots now.
func (a *arrivals) place() []uint32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.placed = true
	return a.rows
}

// place offers missed rows to the policy, and gives slots to those that it keeps. A row that
// another gather has brought in meanwhile is left alone; a row that is pending may be filled by
// both gathers.
func (f *Cache) place(l *lookup) {
	f.content.Lock()
	defer f.content.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, v := range l.missed {
		s, ok := f.mu.index.Find(v)
		switch {
		case ok && s&slotPending != 0:
			l.keep[i] = s&^slotPending + 1
		case !ok:
			l.keep[i] = f.placeOne(v)
		}
	}
}

// placeOne gives a slot to v and returns slot+1, or 0. In a small cache the slot may be given to
// another row again before all rows have theirs.
func (f *Cache) placeOne(v layout.NodeID) (kept uint32) {
	s, keep := f.mu.policy.Place(v)
	if !keep {
		return 0
	}
	if int(s) >= f.mu.slots { // this slot's memory was given back
		f.mu.used = max(f.mu.used, int(s)+1)
		f.mu.held[s] = v
		return 0
	}
	bug.Check(int(s) <= f.mu.used && int(s) < len(f.mu.held),
		"sample: policy placed a row in slot %d, %d are used", s, f.mu.used)
	if int(s) == f.mu.used {
		f.mu.used++
	} else {
		f.mu.index.Remove(f.mu.held[s])
		f.evicted.Add(1)
	}
	f.mu.index.Put(v, s|slotPending)
	f.mu.held[s] = v
	return s + 1
}

// fill copies rows that have been read to their slots, if the slots are still theirs. rows are
// indexes into missed; fill overwrites them.
func (f *Cache) fill(l *lookup, out []float32, rows []uint32) {
	if len(rows) == 0 {
		return
	}
	f.content.RLock()
	defer f.content.RUnlock()
	f.filling.Lock()
	defer f.filling.Unlock()
	rows = f.stillPending(l, rows)
	d := uint64(f.dim)
	for _, i := range rows {
		to, from := uint64(l.keep[i]-1)*d, uint64(l.at[i])*d
		copy(f.values[to:to+d], out[from:from+d])
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range rows {
		f.mu.index.Fill(l.missed[i], l.keep[i]-1)
	}
}

// stillPending returns those of rows whose slots still wait for them, in the same memory.
func (f *Cache) stillPending(l *lookup, rows []uint32) []uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(rows, func(i uint32) bool {
		s, ok := f.mu.index.Find(l.missed[i])
		return l.keep[i] == 0 || !ok || s != l.keep[i]-1|slotPending
	})
}
