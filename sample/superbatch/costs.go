package superbatch

import (
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/layout"
)

// Costs are what decides between reading missing rows one by one and sweeping the file once for
// many batches, in seconds. All zero never sweeps.
type Costs struct {
	Read    float64 // of a read of features
	Byte    float64 // of each byte that it reads
	Written float64 // of each byte written to runtime files
	Step    float64 // of a batch, besides reading for it, which goes on meanwhile
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

	apartIdle, packedIdle float64 // see idle
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
	once          layout.ReadCost
	apart, packed []layout.ReadCost // of each batch: of its rows where they are, and packed
	free          float64           // seconds of a sweep that cost nothing
}

// weigh decides for a sweep if the batches are done sooner with it. A sweep is made before the
// first of them; all other reads go on while batches are trained on, a batch or two ahead.
func (c Costs) weigh(l load, r *Reading) {
	r.Once, r.Apart, r.SweptBytes, r.PackedBytes = 0, 0, l.once.Bytes, 0
	r.apartIdle, r.packedIdle = 0, 0
	reads, late := uint64(0), 0
	for i, apart := range l.apart {
		packed := l.packed[i]
		r.Apart += max(c.Step, c.Seconds(apart))
		r.apartIdle += max(0, c.Step-c.Seconds(apart))
		r.Once += max(c.Step, c.Seconds(packed))
		r.packedIdle += max(0, c.Step-c.Seconds(packed))
		r.PackedBytes += packed.Bytes
		reads += apart.Reads
		if c.Seconds(apart) > c.Step {
			late++
		}
	}
	sweep := c.Seconds(l.once) + c.Written*float64(r.PackedBytes)
	r.Once += max(0, sweep-l.free)
	beside := ""
	if hidden := min(sweep, l.free); hidden > 0 {
		beside = fmt.Sprintf(" (%.1f s of it while others are trained on)", hidden)
	}
	r.Swept = r.Once < r.Apart
	r.Why = fmt.Sprintf("%.1f s with a sweep of %s%s, %.1f s with %d reads, which take longer "+
		"than a step for %d batches", r.Once, mem.FormatSize(l.once.Bytes), beside, r.Apart,
		reads, late)
}

// after is the time of the batches after the first so many, which are swept for: read one by one
// or, if there is a sweep ahead, swept for while these are trained on, if that is sooner.
func (c Costs) after(l load, first int, ahead bool) float64 {
	apart, packed, free := 0.0, c.Seconds(l.once), 0.0
	for i, p := range l.packed {
		if i < first {
			free += max(0, c.Step-c.Seconds(p))
			continue
		}
		apart += max(c.Step, c.Seconds(l.apart[i]))
		packed += c.Written * float64(p.Bytes)
	}
	if !ahead {
		return apart
	}
	packed = max(0, packed-free)
	for _, p := range l.packed[first:] {
		packed += max(c.Step, c.Seconds(p))
	}
	return min(apart, packed)
}

// idle are the seconds that nothing is read while batches are trained on whose rows are read so.
func (r *Reading) idle() float64 {
	if r.Swept {
		return r.packedIdle
	}
	return r.apartIdle
}

// Seconds is what reading takes.
func (c Costs) Seconds(r layout.ReadCost) float64 {
	return c.Read*float64(r.Reads) + c.Byte*float64(r.Bytes)
}

// SweepRoom is what a sweep may take, and how rows are stored.
type SweepRoom struct {
	Memory, Storage int64
	RowBytes        int
}

// Fits says whether so many batches that miss so many rows can be swept for together.
func (s SweepRoom) Fits(misses uint64, batches int) bool {
	buffer := rowsPerRecord(bufferLeast, s.RowBytes) * s.RowBytes
	return sweepBytes(misses, batches, buffer) <= s.Memory &&
		int64(misses)*int64(s.RowBytes) <= s.Storage
}

// Packed is what reading so many rows of a batch takes that were swept, for so many batches that
// miss so many together.
func (s SweepRoom) Packed(rows, misses float64, batches int) layout.ReadCost {
	reads := math.Ceil(rows / s.record(misses, batches))
	return layout.ReadCost{Reads: uint64(reads),
		Bytes: int64(rows*float64(s.RowBytes) + reads*unitBytes)}
}

// Twice is how many bytes of them are read again, if so many rows are read ahead and the others
// later: the record that has rows of both. See Config.StageRows.
func (s SweepRoom) Twice(rows, misses float64, batches, ahead int) int64 {
	record, staged := s.record(misses, batches), float64(ahead)
	whole := math.Floor(staged/record) * record
	if ahead == 0 || staged >= rows || whole == staged {
		return 0
	}
	return int64(min(record, rows-whole) * float64(s.RowBytes))
}

// record is how many rows a record holds.
func (s SweepRoom) record(misses float64, batches int) float64 {
	most := min(bufferMost, (float64(s.Memory)-8*misses)/float64(batches))
	return float64(rowsPerRecord(max(bufferLeast, int(most)), s.RowBytes))
}

// BatchStorage is how much of the storage of a superbatch is for batches and their plans if there
// may be sweeps.
func BatchStorage(storage int64) int64 { return storage / filesShare }
