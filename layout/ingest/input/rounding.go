package input

import (
	"bytes"
	"math"
	"slices"
	"strconv"
)

// Rounded is a number of a column of Floats that float32 holds as another number: see Rounds.
type Rounded struct {
	Row  int    // of the batch
	Text []byte // as written
}

// RoundedAt returns the text of the number of a row if float32 holds it as another number.
func (v *Values) RoundedAt(row int) (written []byte, ok bool) {
	i, ok := slices.BinarySearchFunc(v.Rounded, row, func(r Rounded, row int) int {
		return r.Row - row
	})
	if !ok {
		return nil, false
	}
	return v.Rounded[i].Text, true
}

// smallestNormal is the smallest float32 that has all its digits.
const smallestNormal = 0x1p-126

// MayRound reports whether a number may be one that Rounds. It is a cheap test, which nearly all
// numbers fail.
func MayRound(v float64) bool {
	switch size := math.Abs(v); {
	case size >= 1<<53: // an integer may have been rounded on its way to float64
		return true
	case size >= smallestNormal && v != math.Trunc(v):
		return false
	}
	return float64(float32(v)) != v
}

// Rounds reports whether float32 holds the number that is written as f as another one, beyond the
// rounding that every fraction gets: an integer becomes another integer, or a number near zero
// becomes zero or loses digits. A number beyond float32's range is not asked for: it is an error.
func Rounds(f []byte) bool {
	v, err := strconv.ParseFloat(str(f), 64)
	if err != nil {
		return false
	}
	x := float64(float32(v))
	if digits := bytes.TrimLeft(f, "+-"); allDigits(digits) {
		digits = bytes.TrimLeft(digits, "0")
		return strconv.FormatFloat(math.Abs(x), 'f', 0, 64) != string(digits) && x != 0
	}
	if math.Abs(v) < 1<<53 && v == math.Trunc(v) {
		return x != v
	}
	return math.Abs(x-v) > math.Abs(v)*0x1p-24
}

func allDigits(f []byte) bool {
	for _, c := range f {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(f) > 0
}
