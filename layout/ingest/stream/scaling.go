package stream

import "math"

// Scaling normalizes feature rows.
type Scaling struct {
	rows    bool // rows sum to 1
	columns bool // columns have mean 0 and deviation 1
	auto    bool // columns is decided when all was observed
	counts  CountWatch
	// scaleCounts is set where counts are scaled as other columns.
	scaleCounts bool

	n       float64
	shift   []float64 // the first row: sums of differences lose less precision
	sum     []float64
	squares []float64
	zeros   []float64 // how many values are 0
	mean    []float32
	inverse []float32 // of the deviation
}

// NewScaling returns a scaling of rows of dim columns as --normalize says.
func NewScaling(normalize string, dim int) *Scaling {
	s := &Scaling{rows: normalize == "row", auto: normalize == "auto",
		columns: normalize == "zscore" || normalize == "auto"}
	if s.columns {
		s.sum, s.squares = make([]float64, dim), make([]float64, dim)
		s.zeros = make([]float64, dim)
	}
	return s
}

// Observe adds rows to the statistics of the columns.
func (s *Scaling) Observe(rows []float32) {
	dim := len(s.sum)
	if s.auto {
		s.counts.Observe(rows)
	}
	if s.shift == nil && len(rows) > 0 {
		s.shift = make([]float64, dim)
		for k, v := range rows[:dim] {
			s.shift[k] = float64(v)
		}
	}
	for ; len(rows) > 0; rows = rows[dim:] {
		s.n++
		for k, v := range rows[:dim] {
			d := float64(v) - s.shift[k]
			s.sum[k] += d
			s.squares[k] += d * d
			if v == 0 {
				s.zeros[k]++
			}
		}
	}
}

// ScaleCounts has auto scale counts as other columns: nothing divides their rows later.
func (s *Scaling) ScaleCounts() { s.scaleCounts = true }

// Finish computes mean and deviation; a column that does not vary becomes zero. With auto columns
// are scaled if their deviations are wide apart, and are not counts.
func (s *Scaling) Finish() {
	s.mean, s.inverse = make([]float32, len(s.sum)), make([]float32, len(s.sum))
	for k, sum := range s.sum {
		if s.n == 0 {
			continue
		}
		s.mean[k] = float32(s.shift[k] + sum/s.n)
		variance := s.squares[k]/s.n - sum/s.n*sum/s.n
		if variance > 0 {
			s.inverse[k] = float32(1 / math.Sqrt(variance))
		}
	}
	if s.auto {
		s.columns = (s.scaleCounts || !s.counts.Are()) && s.Uneven()
	}
}

// Chosen returns what auto came to, in words; "" if it was not asked.
func (s *Scaling) Chosen() string {
	switch {
	case !s.auto:
		return ""
	case s.columns:
		return "zscore, since columns have very different or large ranges"
	case s.counts.Are() && !s.scaleCounts:
		return "none, since they are counts, which training divides by the sum of their row"
	}
	return "none, since columns have like ranges"
}

// wideTimes is how many times the least deviation of a column the largest is where ranges are so
// different that large columns drown the others.
const wideTimes = 100

// wide reports whether columns have deviations that are wide apart. inverse has one over the
// deviation of each, and 0 for columns that do not vary.
func wide(inverse []float32) bool {
	least, most := float32(math.MaxFloat32), float32(0)
	for _, v := range inverse {
		if v > 0 {
			least, most = min(least, v), max(most, v)
		}
	}
	return most > wideTimes*least
}

// farMost is the largest root mean square of a column that models learn from as it is.
const farMost = 10

// Uneven reports whether models would learn little from the columns as they are: their deviations
// are wide apart, or some have values far from 1. Columns that are mostly 0, such as shares of
// words, vary as they are common or rare, which says nothing about their range.
func (s *Scaling) Uneven() bool {
	dense := make([]float32, len(s.inverse))
	for k, inverse := range s.inverse {
		if inverse == 0 {
			continue
		}
		mean, deviation := float64(s.mean[k]), 1/float64(inverse)
		if mean*mean+deviation*deviation > farMost*farMost {
			return true
		}
		if s.zeros[k] < s.n/2 {
			dense[k] = inverse
		}
	}
	return wide(dense)
}

// Statistics returns the means of the columns and one over their deviations, 0 for columns that do
// not vary.
func (s *Scaling) Statistics() (mean, inverse []float32) { return s.mean, s.inverse }

// rangeRows is how many rows a RangeWatch looks at.
const rangeRows = 4096

// RangeWatch tells from the first rows whether columns have very different ranges.
type RangeWatch struct {
	scale *Scaling
	rows  int
}

// Observe looks at a row.
func (w *RangeWatch) Observe(row []float32) {
	if w.rows == rangeRows {
		return
	}
	if w.scale == nil {
		w.scale = NewScaling("zscore", len(row))
	}
	w.rows++
	w.scale.Observe(row)
}

// Uneven reports whether columns have very different ranges, or values far from 1.
func (w *RangeWatch) Uneven() bool {
	if w.scale == nil {
		return false
	}
	w.scale.Finish()
	return w.scale.Uneven()
}

// Apply scales a row in place.
func (s *Scaling) Apply(row []float32) {
	if s.columns {
		for k, v := range row {
			row[k] = (v - s.mean[k]) * s.inverse[k]
		}
	}
	if !s.rows {
		return
	}
	sum := 0.0
	for _, v := range row {
		sum += float64(v)
	}
	if sum == 0 {
		return
	}
	for k, v := range row {
		row[k] = float32(float64(v) / sum)
	}
}

// Columns reports whether Observe and Finish must see all rows before Apply.
func (s *Scaling) Columns() bool { return s.columns }

// CountWatch tells features that are counts, such as of words: whole numbers of 0 and more, most of
// them 0, and not only 0 and 1.
type CountWatch struct {
	other        bool // a value is no count
	more         bool // one is above 1
	values, zero uint64
}

// Observe looks at some values; nothing more once one is no count.
func (c *CountWatch) Observe(values []float32) {
	if c.other {
		return
	}
	zero, most := 0, float32(0)
	for _, v := range values {
		if v == 0 {
			zero++
			continue
		}
		if !(v > 0 && v < 1<<24) || v != float32(int32(v)) {
			c.other = true
			return
		}
		most = max(most, v)
	}
	c.values, c.zero, c.more = c.values+uint64(len(values)), c.zero+uint64(zero), c.more || most > 1
}

// ObserveZeros looks at as many zeros.
func (c *CountWatch) ObserveZeros(n int) {
	c.values, c.zero = c.values+uint64(n), c.zero+uint64(n)
}

// Are reports whether all that was observed were counts.
func (c *CountWatch) Are() bool { return !c.other && c.more && 2*c.zero > c.values }
