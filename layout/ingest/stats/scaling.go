package stats

import "math"

// Scaling normalizes feature rows.
type Scaling struct {
	rows    bool // rows sum to 1
	columns bool // columns have mean 0 and deviation 1
	n       float64
	shift   []float64 // the first row: sums of differences lose less precision
	sum     []float64
	squares []float64
	mean    []float32
	inverse []float32 // of the deviation
}

// NewScaling scales rows of so many columns as --normalize says.
func NewScaling(normalize string, dim int) *Scaling {
	s := &Scaling{rows: normalize == "row", columns: normalize == "zscore"}
	if s.columns {
		s.sum, s.squares = make([]float64, dim), make([]float64, dim)
	}
	return s
}

// Observe adds rows to the statistics of the columns.
func (s *Scaling) Observe(rows []float32) {
	dim := len(s.sum)
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
		}
	}
}

// Finish computes mean and deviation; a column that does not vary becomes zero.
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

// Columns says that Observe and Finish must see all rows before Apply.
func (s *Scaling) Columns() bool { return s.columns }
