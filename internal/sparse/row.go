// Package sparse holds how a row of mostly zeros is kept: its entries alone, in a number of words
// of 4 bytes that is the same for all rows of a matrix, so that a row is found and copied like one
// of numbers. Stores have such rows in files, batches in memory, and products read them.
//
//	word 0      bits 0-29: entries, n; bit 30: columns take 32 bits; bit 31: entries have values
//	word 1      a factor of all values, f32
//	columns     n of them, ascending: u16, two a word, the first in the lower half; or u32
//	values      n of them, f32; without them each is 1
//	zeros       to the end
//
// A row of zero words has no entries.
package sparse

import (
	"fmt"
	"math"
)

const (
	wide   = 1 << 30
	valued = 1 << 31
	// head is how many words come before the columns.
	head = 2
	// narrowDim is up to how many columns their numbers take 16 bits.
	narrowDim = 1 << 16
)

// Words returns how many words a row of up to this number of entries takes, of a matrix of dim
// columns. values says whether entries have some, or are all 1.
func Words(entries, dim int, values bool) int {
	n := head + columnWords(entries, dim > narrowDim)
	if values {
		n += entries
	}
	return n
}

func columnWords(entries int, wide bool) int {
	if wide {
		return entries
	}
	return (entries + 1) / 2
}

// Most returns the most entries that a row of a number of words has, of a matrix of dim columns.
func Most(words, dim int) int {
	n := max(0, words-head)
	if dim <= narrowDim {
		n *= 2
	}
	return min(n, dim)
}

// Row is a row as this package keeps it.
type Row []uint32

// Set writes entries: columns ascend and are below dim. Without values all are 1.
func (r Row) Set(dim int, columns []uint32, values []float32) {
	clear(r)
	n := len(columns)
	r[0], r[1] = uint32(n), math.Float32bits(1)
	if dim > narrowDim {
		r[0] |= wide
		copy(r[head:], columns)
	} else {
		for i, c := range columns {
			r[head+i/2] |= c << (i % 2 * 16)
		}
	}
	if values != nil {
		r[0] |= valued
		to := r[head+columnWords(n, dim > narrowDim):]
		for i, v := range values {
			to[i] = math.Float32bits(v)
		}
	}
}

// Len returns the number of entries.
func (r Row) Len() int { return int(r[0] &^ (wide | valued)) }

// Factor returns the factor of all values.
func (r Row) Factor() float32 { return math.Float32frombits(r[1]) }

// Scale multiplies all values.
func (r Row) Scale(by float32) { r[1] = math.Float32bits(r.Factor() * by) }

// Column returns the column of entry i.
func (r Row) Column(i int) uint32 {
	if r[0]&wide != 0 {
		return r[head+i]
	}
	return r[head+i/2] >> (i % 2 * 16) & 0xffff
}

// Value returns the value of entry i.
func (r Row) Value(i int) float32 {
	if r[0]&valued == 0 {
		return r.Factor()
	}
	at := head + columnWords(r.Len(), r[0]&wide != 0)
	return r.Factor() * math.Float32frombits(r[at+i])
}

// Sum returns the sum of all values.
func (r Row) Sum() (sum float64) {
	for i := range r.Len() {
		sum += float64(r.Value(i))
	}
	return sum
}

// Append appends the columns and the values of all entries.
func (r Row) Append(columns []uint32, values []float32) ([]uint32, []float32) {
	n, f := r.Len(), r.Factor()
	if r[0]&(wide|valued) == 0 { // as most are
		for i, w := range r[head:][:columnWords(n, false)] {
			columns, values = append(columns, w&0xffff), append(values, f)
			if 2*i+1 < n {
				columns, values = append(columns, w>>16), append(values, f)
			}
		}
		return columns, values
	}
	for i := range n {
		columns, values = append(columns, r.Column(i)), append(values, r.Value(i))
	}
	return columns, values
}

// Dense writes all values of the row to out, zeros included.
func (r Row) Dense(out []float32) {
	clear(out)
	for i := range r.Len() {
		out[r.Column(i)] = r.Value(i)
	}
}

// Keep keeps the entries for which keep returns true, in place.
func (r Row) Keep(keep func(column uint32) bool) {
	n, kept := r.Len(), 0
	if n == 0 {
		return
	}
	from := r[min(len(r), head+columnWords(n, r[0]&wide != 0)):]
	for i := range n {
		c := r.Column(i)
		if !keep(c) {
			continue
		}
		r.setColumn(kept, c)
		if r[0]&valued != 0 {
			from[kept] = from[i]
		}
		kept++
	}
	flags := r[0] & (wide | valued)
	to := head + columnWords(kept, flags&wide != 0)
	if flags&valued != 0 {
		to += copy(r[to:], from[:kept])
	}
	r[0] = uint32(kept) | flags
	clear(r[to:])
}

func (r Row) setColumn(i int, c uint32) {
	if r[0]&wide != 0 {
		r[head+i] = c
		return
	}
	shift := i % 2 * 16
	r[head+i/2] = r[head+i/2]&^(0xffff<<shift) | c<<shift
}

// Check returns an error for a row that is not one of a matrix of dim columns.
func (r Row) Check(dim int) error {
	if len(r) < head {
		return fmt.Errorf("a sparse row of %d words", len(r))
	}
	n, need := r.Len(), head
	if n > 0 && r[0]&wide != 0 != (dim > narrowDim) {
		return fmt.Errorf("columns of another width than %d columns need", dim)
	}
	if need += columnWords(n, r[0]&wide != 0); r[0]&valued != 0 {
		need += n
	}
	if need > len(r) {
		return fmt.Errorf("%d entries in %d words", n, len(r))
	}
	for i := range n {
		c := r.Column(i)
		if int(c) >= dim || i > 0 && c <= r.Column(i-1) {
			return fmt.Errorf("column %d of entry %d: columns ascend, and there are %d", c, i, dim)
		}
	}
	return nil
}

// Fill writes rows of as many words that have half the entries that they have room for, far apart.
func Fill(rows []uint32, words, dim int) {
	columns := make([]uint32, Most(words, dim)/2)
	for i := range columns {
		columns[i] = uint32(i * (dim / len(columns)))
	}
	for ; len(rows) >= words; rows = rows[words:] {
		Row(rows[:words]).Set(dim, columns, nil)
	}
}
