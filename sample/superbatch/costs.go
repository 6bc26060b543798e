package superbatch

import (
	"fmt"

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
		r.Apart += max(c.Step, c.of(apart))
		r.apartIdle += max(0, c.Step-c.of(apart))
		r.Once += max(c.Step, c.of(packed))
		r.packedIdle += max(0, c.Step-c.of(packed))
		r.PackedBytes += packed.Bytes
		reads += apart.Reads
		if c.of(apart) > c.Step {
			late++
		}
	}
	sweep := c.of(l.once) + c.Written*float64(r.PackedBytes)
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
	apart, packed, free := 0.0, c.of(l.once), 0.0
	for i, p := range l.packed {
		if i < first {
			free += max(0, c.Step-c.of(p))
			continue
		}
		apart += max(c.Step, c.of(l.apart[i]))
		packed += c.Written * float64(p.Bytes)
	}
	if !ahead {
		return apart
	}
	packed = max(0, packed-free)
	for _, p := range l.packed[first:] {
		packed += max(c.Step, c.of(p))
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

func (c Costs) of(r layout.ReadCost) float64 {
	return c.Read*float64(r.Reads) + c.Byte*float64(r.Bytes)
}
