package superbatch

import (
	"iter"
	"math"

	"gdb/layout/rowfile"
)

// Outlook forecasts how the rows of a superbatch will be read, before it is made. It decides on
// sweeps by the rules of the loader, but from mean numbers, since nobody knows yet where the rows
// lie.
type Outlook struct {
	Costs Costs
	Room  SweepRoom
	Steps float64 // batches of the superbatch
	Head  float64 // batches of the first superbatch of a pair; 0 without pairs
	Ahead bool    // sweeps go on beside training
	// Missed returns how many rows the first batches miss. Apart returns what reading a number of
	// rows of one batch costs. Once returns what a sweep costs for the rows that n batches miss,
	// from batch at on.
	Missed func(batches float64) float64
	Apart  func(rows float64) rowfile.ReadCost
	Once   func(at, n, missed float64) rowfile.ReadCost

	before float64 // bytes of rows that the span before has in the same storage
	free   float64 // seconds of that span's training in which a sweep may run
}

// Foreseen is a span of batches whose rows will be read in one way.
type Foreseen struct {
	At, Batches float64 // its first batch, and how many they are
	Missed      float64 // rows
	Looked      float64 // batches whose lists are read to decide
	Swept       bool
	Weighed     Weighed
	Free        float64 // seconds in which a sweep runs beside training
}

// Spans goes through the spans of the superbatch.
func (o *Outlook) Spans() iter.Seq[Foreseen] {
	return func(yield func(Foreseen) bool) {
		o.before, o.free = 0, 0
		for at := 0.0; at < o.Steps; {
			s := o.next(at)
			o.before, o.free = 0, 0
			if o.Ahead {
				o.free = s.Weighed.ApartIdle
				if s.Swept {
					o.before, o.free = s.Missed*float64(o.Room.RowBytes), s.Weighed.PackedIdle
				}
			}
			if !yield(s) {
				return
			}
			at += s.Batches
		}
	}
}

// next decides how the next batches are read from batch at on, as many as there is room for.
func (o *Outlook) next(at float64) Foreseen {
	s := Foreseen{At: at, Batches: o.extent(at), Free: o.free}
	if s.Batches < 1 {
		s.Batches = o.Steps - at
	} else {
		s.Looked = s.Batches
		swept := Part(s.Batches, o.free, o.Ahead, func(n float64) Weighed { return o.weigh(at, n) })
		if s.Swept = swept > 0; s.Swept {
			s.Batches = swept
		}
	}
	s.Missed, s.Weighed = o.during(at, s.Batches), o.weigh(at, s.Batches)
	return s
}

// extent returns how many batches from batch at on there is room to sweep for.
func (o *Outlook) extent(at float64) float64 {
	room, end := o.Room, o.Steps
	if at < o.Head {
		end = o.Head
	}
	fits := func(n float64) bool { return room.Fits(uint64(o.during(at, n)), int(math.Ceil(n))) }
	low, high := 0.0, end-at
	if room.Storage -= int64(o.before); fits(high) {
		return high
	}
	if room = o.Room; o.Ahead {
		room.Storage /= 2
	}
	high = math.Ceil(high) // storage may end a superbatch within a batch
	for high-low > 1 {
		if mid := math.Floor((low + high) / 2); fits(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// during returns how many rows n batches miss, from batch at on.
func (o *Outlook) during(at, n float64) float64 { return o.Missed(at+n) - o.Missed(at) }

// parts divides n batches from batch at on into parts, the first ones shorter, and calls each with
// the number of batches in a part and the rows that one of them misses.
func (o *Outlook) parts(at, n float64, each func(batches, rows float64)) {
	const most = 8
	for first, k := 0.0, most-1; k >= 0; k-- {
		end := n / math.Exp2(float64(k))
		if missed := o.during(at+first, end-first); end > first {
			each(end-first, missed/(end-first))
		}
		first = end
	}
}

// weigh returns the costs of sweeping for n batches and of reading without a sweep, for the
// loader's rule to compare.
func (o *Outlook) weigh(at, n float64) (w Weighed) {
	w.Sweep = o.Costs.Seconds(o.Once(at, n, o.during(at, n)))
	o.parts(at, n, func(batches, rows float64) {
		w.Add(o.Costs, batches, o.Apart(rows), o.Room.Packed(rows, int(math.Ceil(n))))
	})
	return w
}

// Reads goes through the batches of a span: it yields a number of batches that miss equally many
// rows, and for one of them these rows and what reading them costs.
func (o *Outlook) Reads(s Foreseen, each func(batches, rows float64, read rowfile.ReadCost)) {
	o.parts(s.At, s.Batches, func(batches, rows float64) {
		read := o.Apart(rows)
		if s.Swept {
			read = o.Room.Packed(rows, int(math.Ceil(s.Batches)))
		}
		each(batches, rows, read)
	})
}
