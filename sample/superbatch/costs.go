package superbatch

import (
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/layout/rowfile"
	"gdb/sample/superbatch/runtimefile"
)

// Costs are what decides between reading missing rows one by one and sweeping the file once for
// many batches, in seconds. All zero never sweeps.
type Costs struct {
	Read    float64 // of a read of features
	Byte    float64 // of each byte that it reads
	Written float64 // of each byte written to runtime files
	Step    float64 // of a batch, besides reading for it, which goes on at the same time
}

// Reading tells how the rows that some consecutive batches miss are read.
type Reading struct {
	Epoch   uint64 `json:"epoch"` // of the first batch, both from 0
	Batch   uint64 `json:"batch"`
	Batches int    `json:"batches"`
	Rows    uint64 `json:"rows"` // that they miss, summed
	Swept   bool   `json:"swept"`
	Why     string `json:"why"`
	// Apart and Once are the seconds that the batches are expected to take with rows read one by
	// one, and with a sweep; SweptBytes and PackedBytes what a sweep reads and writes.
	Apart       float64 `json:"apart_s"`
	Once        float64 `json:"sweep_s"`
	SweptBytes  int64   `json:"swept_bytes"`
	PackedBytes int64   `json:"packed_bytes"`

	idle float64 // seconds that nothing is read for the batches while they are trained on
}

// String is one line.
func (r *Reading) String() string {
	how := "read one by one"
	if r.Swept {
		how = "swept, " + mem.FormatSize(r.PackedBytes) + " written"
	}
	return fmt.Sprintf("%d rows of %d batches from batch %d of epoch %d are %s: %s", r.Rows,
		r.Batches, r.Batch+1, r.Epoch+1, how, r.Why)
}

// load is what reading the rows that some batches miss takes.
type load struct {
	once          rowfile.ReadCost
	apart, packed []rowfile.ReadCost // of each batch: of its rows where they are, and packed
	free          float64            // seconds of a sweep that cost nothing
}

// Weighed are the seconds of training on some batches, by how the rows are read that they miss. A
// batch takes a step or its reading, whichever is longer: reads go on while batches are trained on,
// a batch or two ahead.
type Weighed struct {
	Apart, Packed         float64 // with rows read where they are, and with those that were swept
	ApartIdle, PackedIdle float64 // of these, those in which nothing is read
	Sweep                 float64 // of reading and writing them in a sweep, which is made before
	Written               float64 // of it, of writing
}

// Add takes so many batches that each read the same.
func (w *Weighed) Add(c Costs, batches float64, apart, packed rowfile.ReadCost) {
	a, p := c.Seconds(apart), c.Seconds(packed)
	w.Apart, w.Packed = w.Apart+batches*max(c.Step, a), w.Packed+batches*max(c.Step, p)
	w.ApartIdle += batches * max(0, c.Step-a)
	w.PackedIdle += batches * max(0, c.Step-p)
	written := batches * c.Written * float64(packed.Bytes)
	w.Sweep, w.Written = w.Sweep+written, w.Written+written
}

// Once is the time with a sweep, of which so much costs nothing.
func (w Weighed) Once(free float64) float64 { return w.Packed + max(0, w.Sweep-free) }

// after is the time of the batches after the first ones, which are swept for: read one by one or,
// if there is a sweep ahead, swept for while the first are trained on, if that is sooner.
func (w Weighed) after(first Weighed, ahead bool) float64 {
	apart := w.Apart - first.Apart
	if !ahead {
		return apart
	}
	sweep := w.Sweep - first.Written
	return min(apart, w.Packed-first.Packed+max(0, sweep-first.PackedIdle))
}

// partGain is what a sweep for a part takes at most, of the time with one for all: for less a plan
// and what comes of it would go apart.
const partGain = 0.97

// Part is for how many of n batches a sweep saves the most time: all or, as the first batches of an
// empty cache may miss much more than those after, the first half, quarter, … of them if that saves
// more than a little; 0 for none. So many seconds of a sweep cost nothing. weigh is called with n,
// then with ever fewer.
func Part(n, free float64, ahead bool, weigh func(batches float64) Weighed) (best float64) {
	whole := weigh(n)
	least := whole.Once(free)
	if least < whole.Apart {
		best, least = n, partGain*least
	}
	for n = math.Floor(n / 2); n >= 1; n = math.Floor(n / 2) {
		w := weigh(n)
		once := w.Once(free)
		if all := once + whole.after(w, ahead); once < w.Apart && all < least {
			best, least = n, all
		}
	}
	return best
}

// leastWith is what all batches of a load take at least if there is a sweep for the first of them:
// as if the sweep itself took no time.
func (c Costs) leastWith(all load, first int, ahead bool) float64 {
	var before, after Weighed
	for i, apart := range all.apart {
		w := &before
		if i >= first {
			w = &after
		}
		w.Add(c, 1, apart, all.packed[i])
	}
	if ahead {
		return before.Packed + min(after.Apart, after.Packed)
	}
	return before.Packed + after.Apart
}

// weigh decides for a sweep if the batches are done sooner with it.
func (c Costs) weigh(l load, r *Reading) (w Weighed) {
	r.SweptBytes, r.PackedBytes = l.once.Bytes, 0
	reads, late := uint64(0), 0
	for i, apart := range l.apart {
		w.Add(c, 1, apart, l.packed[i])
		r.PackedBytes += l.packed[i].Bytes
		reads += apart.Reads
		if c.Seconds(apart) > c.Step {
			late++
		}
	}
	w.Sweep += c.Seconds(l.once)
	beside := ""
	if hidden := min(w.Sweep, l.free); hidden > 0 {
		beside = fmt.Sprintf(" (%.1f s of it while others are trained on)", hidden)
	}
	r.Once, r.Apart, r.idle = w.Once(l.free), w.Apart, w.ApartIdle
	if r.Swept = r.Once < r.Apart; r.Swept {
		r.idle = w.PackedIdle
	}
	r.Why = fmt.Sprintf("%.1f s with a sweep of %s%s, %.1f s with %d reads, which take longer "+
		"than a step for %d batches", r.Once, mem.FormatSize(l.once.Bytes), beside, r.Apart,
		reads, late)
	return w
}

// Seconds is what reading takes.
func (c Costs) Seconds(r rowfile.ReadCost) float64 {
	return c.Read*float64(r.Reads) + c.Byte*float64(r.Bytes)
}

// SweepRoom is what a sweep may take, and how rows are stored.
type SweepRoom struct {
	Memory, Storage int64
	RowBytes        int
	BatchNodes      int // of the largest batch
}

// Fits says whether so many batches that miss so many rows can be swept for together.
func (s SweepRoom) Fits(misses uint64, batches int) bool {
	buffer := rowsPerRecord(bufferLeast, s.RowBytes) * s.RowBytes
	return int64(batches)*int64(buffer) <= collectBytes(s.Memory) &&
		finding(s.BatchNodes) <= s.Memory-keysBytes(s.Memory) &&
		int64(misses)*int64(s.RowBytes+missingBytes) <= s.Storage
}

// Packed is what reading so many rows of a batch takes that were swept for so many batches.
func (s SweepRoom) Packed(rows float64, batches int) rowfile.ReadCost {
	reads := math.Ceil(rows / s.record(batches))
	return rowfile.ReadCost{Reads: uint64(reads),
		Bytes: int64(rows*float64(s.RowBytes) + reads*runtimefile.UnitBytes)}
}

// record is how many rows a record holds.
func (s SweepRoom) record(batches int) float64 {
	most := min(bufferMost, collectBytes(s.Memory)/int64(max(1, batches)))
	return float64(rowsPerRecord(max(bufferLeast, int(most)), s.RowBytes))
}

// BatchStorage is how much of the storage of a superbatch is for batches and their plans if there
// may be sweeps.
func BatchStorage(storage int64) int64 { return storage / filesShare }
