package columnfile

import (
	"fmt"
	"math"
	"slices"
)

// Types of columns, as in kv.TableColumn.
const (
	Int64     = "int64"
	Float64   = "float64"
	Bool      = "bool"
	String    = "string"
	Date      = "date"      // days since 1970
	Timestamp = "timestamp" // microseconds since 1970, UTC
	Sparse    = "sparse"    // sparse vectors
)

// Values are rows of a column. Which fields they are in depends on the type of the column; the
// others are empty. A null row has the value 0, an empty string or an empty vector.
type Values struct {
	Rows    int
	Ints    []int64   // int64, bool (0 and 1), date and timestamp
	Floats  []float64 // float64
	Strings Strings   // string
	Sparse  Lists     // sparse
	// Valid has a bit for each row, from the lowest of the first word on, which is 0 for a null
	// row. It is empty if no row is null.
	Valid []uint64
}

// Strings are strings one after the other: string i is Bytes[Off[i]:Off[i+1]], and Off[0] is 0. Off
// may be empty if there are none.
type Strings struct {
	Off   []uint32
	Bytes []byte
}

// Lists are sparse vectors: vector i has the numbers Index[Off[i]:Off[i+1]], which ascend, with
// the same range of Value. Off[0] is 0; Off may be empty if there are none. Value is empty if all
// values are 1.
type Lists struct {
	Off   []uint32
	Index []uint32
	Value []float32
}

// At returns string i. It is valid as long as Bytes.
func (s *Strings) At(i int) []byte { return s.Bytes[s.Off[i]:s.Off[i+1]] }

// Add appends a string.
func (s *Strings) Add(b []byte) {
	s.Off = appendEnds(s.Off, len(s.Bytes), []uint32{0, uint32(len(b))})
	s.Bytes = append(s.Bytes, b...)
}

// Add appends a vector; nil values are 1.
func (l *Lists) Add(index []uint32, value []float32) {
	l.append(&Lists{Index: index, Value: value}, []uint32{0, uint32(len(index))})
}

// append appends the vectors of src that are between ends.
func (l *Lists) append(src *Lists, ends []uint32) {
	from, to := ends[0], ends[len(ends)-1]
	if len(l.Value) == 0 && len(src.Value) > 0 {
		l.Value = ones(l.Value, len(l.Index))
	}
	if len(src.Value) > 0 {
		l.Value = append(l.Value, src.Value[from:to]...)
	} else if len(l.Value) > 0 {
		l.Value = ones(l.Value, int(to-from))
	}
	l.Off = appendEnds(l.Off, len(l.Index), ends)
	l.Index = append(l.Index, src.Index[from:to]...)
}

// appendEnds appends where strings or vectors end whose ends were these, and which now begin at
// base.
func appendEnds(off []uint32, base int, ends []uint32) []uint32 {
	if len(off) == 0 {
		off = append(off, 0)
	}
	off = slices.Grow(off, len(ends)-1)
	for _, end := range ends[1:] {
		off = append(off, uint32(base)+end-ends[0])
	}
	return off
}

// ones appends n ones.
func ones(v []float32, n int) []float32 {
	for range n {
		v = append(v, 1)
	}
	return v
}

// Null reports whether row i is null.
func (v *Values) Null(i int) bool { return len(v.Valid) > 0 && v.Valid[i>>6]>>(i&63)&1 == 0 }

// Reset removes all rows, and keeps the memory.
func (v *Values) Reset() {
	*v = Values{Ints: v.Ints[:0], Floats: v.Floats[:0], Valid: v.Valid[:0],
		Strings: Strings{v.Strings.Off[:0], v.Strings.Bytes[:0]},
		Sparse:  Lists{v.Sparse.Off[:0], v.Sparse.Index[:0], v.Sparse.Value[:0]}}
}

// Append appends rows from … to-1 of others of the same type.
func (v *Values) Append(src *Values, from, to int) {
	if len(src.Ints) > 0 {
		v.Ints = append(v.Ints, src.Ints[from:to]...)
	}
	if len(src.Floats) > 0 {
		v.Floats = append(v.Floats, src.Floats[from:to]...)
	}
	if s := &src.Strings; len(s.Off) > 0 {
		ends := s.Off[from : to+1]
		v.Strings.Off = appendEnds(v.Strings.Off, len(v.Strings.Bytes), ends)
		v.Strings.Bytes = append(v.Strings.Bytes, s.Bytes[ends[0]:s.Off[to]]...)
	}
	if l := &src.Sparse; len(l.Off) > 0 {
		v.Sparse.append(l, l.Off[from:to+1])
	}
	v.addValid(src.Valid, from, to)
	v.Rows += to - from
}

// addValid appends which of the rows from … to-1 are not null; an empty valid stands for all. The
// caller raises Rows.
func (v *Values) addValid(valid []uint64, from, to int) {
	if len(valid) == 0 && len(v.Valid) == 0 {
		return
	}
	for i, at := from, v.Rows; i < to; {
		v.growValid(at)
		n, word := min(to-i, 64-i&63, 64-at&63), uint64(math.MaxUint64) // bits of one word
		if len(valid) > 0 {
			word = valid[i>>6] >> (i & 63)
		}
		v.Valid[at>>6] |= (word & (1<<n - 1)) << (at & 63)
		i, at = i+n, at+n
	}
}

// growValid makes room for the bit of row at, the next one, which is 0 after it. No row before it
// is null if there are no bits yet.
func (v *Values) growValid(at int) {
	if len(v.Valid) == 0 {
		for range at >> 6 {
			v.Valid = append(v.Valid, math.MaxUint64)
		}
		v.Valid = append(v.Valid, 1<<(at&63)-1)
	}
	if at>>6 >= len(v.Valid) {
		v.Valid = append(v.Valid, 0)
	}
}

// AddNull appends a null row of a type.
func (v *Values) AddNull(typ string) {
	switch k, _ := classOf(typ); k {
	case ints:
		v.Ints = append(v.Ints, 0)
	case floats:
		v.Floats = append(v.Floats, 0)
	case texts:
		v.Strings.Add(nil)
	case lists:
		v.Sparse.Add(nil, nil)
	}
	v.AddRow(false)
}

// AddRow counts a row whose value the caller has appended to the field of the type, 0 or empty if
// the row is null. It is for callers that add one row at a time.
func (v *Values) AddRow(valid bool) {
	if !valid {
		v.addValid([]uint64{0}, 0, 1)
	} else {
		v.addValid(nil, 0, 1)
	}
	v.Rows++
}

// bytes returns the memory held, in bytes.
func (v *Values) bytes() int64 {
	return 8*int64(cap(v.Ints)+cap(v.Floats)+cap(v.Valid)) + int64(cap(v.Strings.Bytes)) +
		4*int64(cap(v.Strings.Off)+cap(v.Sparse.Off)+cap(v.Sparse.Index)+cap(v.Sparse.Value))
}

// size returns the bytes of all strings or vectors.
func (v *Values) size() int64 {
	return int64(len(v.Strings.Bytes)) + 8*int64(len(v.Sparse.Index))
}

// sizeOf returns the bytes of the strings or vectors of rows from … to-1.
func (v *Values) sizeOf(from, to int) (n int64) {
	if off := v.Strings.Off; len(off) > 0 {
		n += int64(off[to] - off[from])
	}
	if off := v.Sparse.Off; len(off) > 0 {
		n += 8 * int64(off[to]-off[from])
	}
	return n
}

// check returns what is wrong with values of a column, or nil.
func (v *Values) check(c *column) error {
	lengths := [...]int{ints: len(v.Ints), floats: len(v.Floats),
		texts: len(v.Strings.Off) - 1, lists: len(v.Sparse.Off) - 1}
	for k, n := range lengths {
		if class(k) == c.class && max(n, 0) != v.Rows {
			return fmt.Errorf("%d values of %s for %d rows", max(n, 0), c.Type, v.Rows)
		}
		if class(k) != c.class && n > 0 {
			return fmt.Errorf("values that are not of the type %s", c.Type)
		}
	}
	if len(v.Valid) > 0 && len(v.Valid) < (v.Rows+63)/64 {
		return fmt.Errorf("%d words of Valid for %d rows", len(v.Valid), v.Rows)
	}
	if l := &v.Sparse; len(l.Value) > 0 && len(l.Value) != len(l.Index) {
		return fmt.Errorf("%d values of %d entries", len(l.Value), len(l.Index))
	}
	if c.class == floats || c.Type == Int64 || c.Type == Timestamp {
		return nil
	}
	for i := range v.Rows {
		if err := v.checkRow(c, i); err != nil {
			return fmt.Errorf("row %d of %d: %w", i, v.Rows, err)
		}
	}
	return nil
}

// checkRow returns what is wrong with a row, or nil.
func (v *Values) checkRow(c *column, i int) error {
	null := v.Null(i)
	switch {
	case c.Type == Bool && !null && v.Ints[i]>>1 != 0:
		return fmt.Errorf("%d is not a bool", v.Ints[i])
	case c.Type == Date && !null && int64(int32(v.Ints[i])) != v.Ints[i]:
		return fmt.Errorf("%d days do not fit in 32 bits", v.Ints[i])
	case c.class == texts:
		return checkEnds(v.Strings.Off[i], v.Strings.Off[i+1], len(v.Strings.Bytes), null)
	case c.class == lists:
		l := &v.Sparse
		if err := checkEnds(l.Off[i], l.Off[i+1], len(l.Index), null); err != nil {
			return err
		}
		least := int64(-1)
		for _, k := range l.Index[l.Off[i]:l.Off[i+1]] {
			if int64(k) <= least || int64(k) >= int64(c.Dim) {
				return fmt.Errorf("index %d after %d, of %d dimensions", k, least, c.Dim)
			}
			least = int64(k)
		}
	}
	return nil
}

// checkEnds checks where a string or vector begins and ends.
func checkEnds(from, to uint32, size int, null bool) error {
	if from > to || int64(to) > int64(size) || null && from < to {
		return fmt.Errorf("it goes from %d to %d of %d, null: %t", from, to, size, null)
	}
	return nil
}
