package columnfile

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Range are the values that a scan looks for, ends included. Blocks whose bounds are outside are
// skipped; null rows, and NaN, are in no range.
type Range struct{ from, to uint64 }

// IntRange is a range of int64, bool, date or timestamp.
func IntRange(from, to int64) *Range { return &Range{keyOfInt(from), keyOfInt(to)} }

// FloatRange is a range of float64; its ends are not NaN.
func FloatRange(from, to float64) *Range { return &Range{keyOfFloat(from), keyOfFloat(to)} }

// StringRange is a range of strings. Blocks are told apart by the first 8 bytes.
func StringRange(from, to string) *Range {
	return &Range{keyOfString([]byte(from)), keyOfString([]byte(to))}
}

// meets reports whether a block may have values of the range.
func (r *Range) meets(e *entry) bool {
	return e.least <= e.greatest && e.least <= r.to && e.greatest >= r.from
}

// keyOfInt returns a key that sorts as v.
func keyOfInt(v int64) uint64 { return uint64(v) ^ 1<<63 }

// keyOfFloat returns a key that sorts as v, which is not NaN. Zeros are equal.
func keyOfFloat(v float64) uint64 {
	b := math.Float64bits(v + 0) // -0 + 0 is 0
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

// keyOfString returns the first 8 bytes of s, filled up with zeros, as a number: it does not sort
// against s.
func keyOfString(s []byte) uint64 {
	var b [8]byte
	copy(b[:], s)
	return binary.BigEndian.Uint64(b[:])
}

// bounds are the least and the greatest of some values.
type bounds struct {
	some   bool
	ints   [2]int64
	floats [2]float64
	texts  [2][]byte
}

// reset empties the bounds, and keeps their memory.
func (b *bounds) reset() { *b = bounds{texts: b.texts} }

// of sets the bounds of a block. Sparse vectors have none.
func (b *bounds) of(v *Values, k class) {
	b.reset()
	if k == ints && len(v.Valid) == 0 && v.Rows > 0 {
		b.some, b.ints = true, [2]int64{slices.Min(v.Ints), slices.Max(v.Ints)}
		return
	}
	var low, high []byte
	for i := range v.Rows {
		if v.Null(i) {
			continue
		}
		switch k {
		case ints:
			b.addInt(v.Ints[i])
		case floats:
			b.addFloat(v.Floats[i])
		case texts:
			s := v.Strings.At(i)
			if !b.some || bytes.Compare(s, low) < 0 {
				low = s
			}
			if !b.some || bytes.Compare(s, high) > 0 {
				high = s
			}
			b.some = true
		}
	}
	b.texts = [2][]byte{append(b.texts[0][:0], low...), append(b.texts[1][:0], high...)}
}

func (b *bounds) addInt(x int64) {
	if !b.some {
		b.some, b.ints = true, [2]int64{x, x}
	}
	b.ints = [2]int64{min(b.ints[0], x), max(b.ints[1], x)}
}

func (b *bounds) addFloat(x float64) {
	if x != x {
		return
	}
	if !b.some {
		b.some, b.floats = true, [2]float64{x, x}
	}
	b.floats = [2]float64{min(b.floats[0], x), max(b.floats[1], x)}
}

// add widens the bounds by those of a block.
func (b *bounds) add(x *bounds, k class) {
	if !x.some {
		return
	}
	switch k {
	case ints:
		b.addInt(x.ints[1])
		b.addInt(x.ints[0])
	case floats:
		b.addFloat(x.floats[1])
		b.addFloat(x.floats[0])
	case texts:
		if !b.some || bytes.Compare(x.texts[0], b.texts[0]) < 0 {
			b.texts[0] = append(b.texts[0][:0], x.texts[0]...)
		}
		if !b.some || bytes.Compare(x.texts[1], b.texts[1]) > 0 {
			b.texts[1] = append(b.texts[1][:0], x.texts[1]...)
		}
		b.some = true
	}
}

// keys returns the bounds as keys.
func (b *bounds) keys(k class) (least, greatest uint64) {
	switch {
	case !b.some:
		return math.MaxUint64, 0
	case k == ints:
		return keyOfInt(b.ints[0]), keyOfInt(b.ints[1])
	case k == floats:
		return keyOfFloat(b.floats[0]), keyOfFloat(b.floats[1])
	}
	return keyOfString(b.texts[0]), keyOfString(b.texts[1])
}

// shownBytes is how much of a string the bounds of a column show.
const shownBytes = 64

// text writes a bound for people: 0 for the least, 1 for the greatest. It is empty if there is
// none.
func (b *bounds) text(i int, typ string) string {
	if !b.some {
		return ""
	}
	switch typ {
	case Int64, Bool:
		return strconv.FormatInt(b.ints[i], 10)
	case Float64:
		return strconv.FormatFloat(b.floats[i], 'g', -1, 64)
	case Date:
		return time.Unix(b.ints[i]*24*3600, 0).UTC().Format(time.DateOnly)
	case Timestamp:
		return time.UnixMicro(b.ints[i]).UTC().Format(time.RFC3339Nano)
	}
	s := strings.ToValidUTF8(string(b.texts[i]), "\uFFFD")
	n := min(len(s), shownBytes)
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
