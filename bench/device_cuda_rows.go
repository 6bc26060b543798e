//go:build cuda && cgo && linux

package bench

import (
	"errors"
	"math"
	"math/rand/v2"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/internal/mem"
)

const (
	// rowCols is the values of a row.
	rowCols = 128
	// rowListRows is the rows of a list.
	rowListRows = 10
	// leastRows and mostRows bound the rows of a table: 512 MiB are more than a device's caches.
	leastRows, mostRows = 1 << 11, 1 << 20
	// rowsEnough is the seconds after which a measurement is taken for exact.
	rowsEnough = 0.02
	// rowsTimes is how often a measurement repeats its work. There are rowsRounds measurements, and
	// the best counts.
	rowsTimes, rowsRounds = 8, 5
)

// tableSpeeds are bytes that were read and written in a second: by copies, by gathering random
// rows, and by averaging random lists. Rows is how many the table had.
type tableSpeeds struct {
	Copy, Gather, Mean float64
	Rows               int
}

// measureRowSpeeds measures a device that counts the time it works. Tables grow until one is large
// enough.
func measureRowSpeeds(be backend.Backend) (s tableSpeeds, err error) {
	for rows := leastRows; ; rows *= 2 {
		seconds, err := measureRowsOnce(be, rows, &s)
		if err != nil || seconds >= rowsEnough || rows == mostRows {
			return s, err
		}
	}
}

// measureRowsOnce measures a table of `rows` rows, and returns the seconds of its longest
// measurement.
func measureRowsOnce(be backend.Backend, rows int, s *tableSpeeds) (seconds float64, err error) {
	both, err := be.Params("rows to measure with", 2*rows*rowCols)
	if err != nil {
		return 0, err
	}
	if on := be.Device(); on != nil {
		defer func() { err = errors.Join(err, on.Release(both)) }()
	}
	if err := be.Begin(); err != nil {
		return 0, err
	}
	x, out := both.View(0, rows, rowCols), both.View(rows*rowCols, rows, rowCols)
	from, lists := draw(rows)
	picked := be.Host(mem.View[float32](mem.BytesOf(from)), rows, 1)
	segments := be.Segments(lists)
	copied := timeOf(be, func() { backend.Copy(be, out, x) })
	gathered := timeOf(be, func() { backend.PickRows(be, out, x, x.Slice(0, 0), picked) })
	means, mean := out.Slice(0, segments.Lists), program.Named("pull-mean")
	averaged := timeOf(be, func() {
		be.Run(mean, &backend.Operands{Out: means, In: [4]backend.Tensor{x}, Lists: segments})
	})
	const row, number = 4 * rowCols, 4
	n, l := float64(rows), float64(segments.Lists)
	*s = tableSpeeds{Copy: 2 * n * row / copied, Gather: (2*n*row + n*number) / gathered,
		Mean: (n*row + l*row + (n+l+1)*number) / averaged, Rows: rows}
	return rowsTimes * max(copied, gathered, averaged), be.Err()
}

// draw draws the rows to gather, and lists of as many.
func draw(rows int) (from []uint32, l backend.Lists) {
	r := rand.New(rand.NewPCG(1, 2))
	from = make([]uint32, rows)
	for i := range from {
		from[i] = uint32(r.IntN(rows))
	}
	l = backend.Lists{Off: []uint32{0}, Idx: from[:rows/rowListRows*rowListRows]}
	for end := rowListRows; end <= rows; end += rowListRows {
		l.Off = append(l.Off, uint32(end))
	}
	return from, l
}

// timeOf returns the seconds that the device needs for an operation.
func timeOf(be backend.Backend, operation func()) float64 {
	best := math.Inf(1)
	var one [1]float32
	w := be.Scratch(1, 1)
	backend.Zero(be, w)
	for range rowsRounds {
		before := be.Launches().Busy
		for range rowsTimes {
			operation()
		}
		_ = be.Err()       // the device is given them; the caller asks again
		be.Read(one[:], w) // it has done them
		best = min(best, be.Launches().Busy-before)
	}
	return best / rowsTimes
}
