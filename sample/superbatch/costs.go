package superbatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Costs are measured times, in seconds, by which the loader decides between reading missing rows
// one by one and sweeping the file of features once for many batches. The zero value never sweeps.
type Costs struct {
	Read    float64 // a read of features
	Byte    float64 // each byte of such a read
	Written float64 // each byte written to runtime files
	Step    float64 // a training step on a batch; rows are read at the same time
}

// Reading reports how the rows that some consecutive batches miss are read, and why.
type Reading struct {
	Epoch   uint64 `json:"epoch"` // epoch and batch of the first, both from 0
	Batch   uint64 `json:"batch"`
	Batches int    `json:"batches"`
	Rows    uint64 `json:"rows"` // missed rows, summed over the batches
	Swept   bool   `json:"swept"`
	Why     string `json:"why"`
	// Apart and Once are the expected seconds of training on the batches, with rows read one by one
	// and with a sweep. SweptBytes and PackedBytes are what a sweep reads and writes.
	Apart       float64 `json:"apart_s"`
	Once        float64 `json:"sweep_s"`
	SweptBytes  int64   `json:"swept_bytes"`
	PackedBytes int64   `json:"packed_bytes"`

	idle float64 // seconds of training on the batches in which nothing is read for them
}

// String describes the reading in one line.
func (r *Reading) String() string {
	how := "read one by one"
	if r.Swept {
		how = "swept, " + mem.FormatSize(r.PackedBytes) + " written"
	}
	return fmt.Sprintf("%d rows of %d batches from batch %d of epoch %d are %s: %s", r.Rows,
		r.Batches, r.Batch+1, r.Epoch+1, how, r.Why)
}

// load holds the costs of the two ways to read the rows that some batches miss.
type load struct {
	once          rowfile.ReadCost
	apart, packed []rowfile.ReadCost // for each batch: its rows read where they lie, and packed
	free          float64            // seconds of a sweep that other work hides
}

// Weighed sums the seconds of training on some batches, for both ways to read the rows that they
// miss. A batch takes its step or its reading, whichever is longer, because rows are read while the
// batches before are trained on.
type Weighed struct {
	Apart, Packed         float64 // training with rows read where they lie, and with swept rows
	ApartIdle, PackedIdle float64 // the parts of Apart and Packed in which nothing is read
	Sweep                 float64 // reading and writing in a sweep, before training
	Written               float64 // the part of Sweep that writes
}

// Add adds a number of batches, each of which costs the same to read: apart or packed.
func (w *Weighed) Add(c Costs, batches float64, apart, packed rowfile.ReadCost) {
	a, p := c.Seconds(apart), c.Seconds(packed)
	w.Apart, w.Packed = w.Apart+batches*max(c.Step, a), w.Packed+batches*max(c.Step, p)
	w.ApartIdle += batches * max(0, c.Step-a)
	w.PackedIdle += batches * max(0, c.Step-p)
	written := batches * c.Written * float64(packed.Bytes)
	w.Sweep, w.Written = w.Sweep+written, w.Written+written
}

// Once returns the seconds with a sweep, of which other work hides free seconds.
func (w Weighed) Once(free float64) float64 { return w.Packed + max(0, w.Sweep-free) }

// after returns the seconds of the batches beyond first, if there is a sweep for first. Their rows
// are read one by one or, if sweeps go on ahead, swept for while the first are trained on, if that
// is sooner.
func (w Weighed) after(first Weighed, ahead bool) float64 {
	apart := w.Apart - first.Apart
	if !ahead {
		return apart
	}
	sweep := w.Sweep - first.Written
	return min(apart, w.Packed-first.Packed+max(0, sweep-first.PackedIdle))
}

// partGain is the largest share of the time of one sweep for all that a sweep for a part may take.
// A smaller gain is not worth departing from what was planned.
const partGain = 0.97

// Part returns for how many of n batches a sweep saves the most time; 0 is for none. It weighs all
// of them and, since the first batches of an empty cache may miss far more than later ones, the
// first half, quarter, … of them, which must save more than a little. Other work hides free seconds
// of a sweep. weigh is called with n, then with ever smaller numbers.
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

// leastWith returns a lower bound of the seconds that all batches of a load take if there is a
// sweep for the first of them: as if the sweep itself took no time.
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

// weigh computes the seconds of both ways, fills in r, and chooses a sweep if that is faster.
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

// Seconds returns the seconds that reading r takes.
func (c Costs) Seconds(r rowfile.ReadCost) float64 {
	return c.Read*float64(r.Reads) + c.Byte*float64(r.Bytes)
}

// SweepRoom says how much memory and storage a sweep may take, and how large rows and batches are.
type SweepRoom struct {
	Memory, Storage int64
	RowBytes        int
	BatchNodes      int // nodes of the largest batch
}

// Fits reports whether one sweep can serve this number of batches and of missed rows.
func (s SweepRoom) Fits(misses uint64, batches int) bool {
	buffer := rowsPerRecord(bufferLeast, s.RowBytes) * s.RowBytes
	return max(int64(batches)*int64(buffer), finding(s.BatchNodes)) <= collectBytes(s.Memory) &&
		int64(misses)*int64(s.RowBytes+missingBytes) <= s.Storage
}

// Packed returns the cost of reading rows of one batch that were swept for together with those of
// other batches.
func (s SweepRoom) Packed(rows float64, batches int) rowfile.ReadCost {
	reads := math.Ceil(rows / s.record(batches))
	return rowfile.ReadCost{Reads: uint64(reads),
		Bytes: int64(rows*float64(s.RowBytes) + reads*unitBytes)}
}

// record returns how many rows a record of packed rows holds.
func (s SweepRoom) record(batches int) float64 {
	most := min(bufferMost, collectBytes(s.Memory)/int64(batches+recordsAhead))
	return float64(rowsPerRecord(max(bufferLeast, int(most)), s.RowBytes))
}

// BatchStorage returns how many bytes of a superbatch's storage are for batches and their plans, if
// there may be sweeps.
func BatchStorage(storage int64) int64 { return storage / filesShare }

// TimeWriting writes this number of bytes to a runtime file in prep, in records as a sweep does,
// and returns the time until they were synced to disk. The file is removed.
func TimeWriting(fs vfs.FS, prep, name string, bytes int64) (took time.Duration, err error) {
	d, err := openDir(fs, prep, name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.Remove()) }()
	w, err := identity{FS: fs, Dir: d.Path}.Create(kindRows)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.Abort()) }()
	// Not zeros, which some disks need not write.
	payload, draw := make([]byte, bufferMost), rng.NewStream(1)
	for i := 0; i < len(payload); i += 8 {
		binary.LittleEndian.PutUint64(payload[i:], draw.Uint64())
	}
	begun := time.Now()
	for w.Size < bytes {
		if _, err := w.Append(payload); err != nil {
			return 0, err
		}
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	if err := w.File.Sync(); err != nil {
		return 0, fmt.Errorf("superbatch: sync %s: %w", w.ID.Path(w.Kind), err)
	}
	return time.Since(begun), nil
}
