package match

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
	"strings"

	"gdb/shell/words"
)

// number is a value as a number. Whole numbers compare exactly, whatever their size, because ids
// may be larger than the numbers that a float64 tells apart.
type number struct {
	whole bool
	i     int64
	large *big.Int // a whole number that does not fit int64; otherwise nil
	f     float64  // a number that is not written as a whole one
}

// digitsMost bounds the length of a whole number; a longer one is taken as text.
const digitsMost = 1000

// parseNumber reads a number, and whole numbers of any size. 1.0 is a whole number.
func parseNumber(s string) (number, bool) {
	digits := s
	if before, fraction, ok := strings.Cut(s, "."); ok && strings.Trim(fraction, "0") == "" {
		digits = before
	}
	if i, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return number{whole: true, i: i}, true
	}
	bare := strings.TrimPrefix(digits, "-")
	if bare != "" && len(bare) <= digitsMost && strings.Trim(bare, "0123456789") == "" {
		large, ok := new(big.Int).SetString(digits, 10)
		return number{whole: true, large: large}, ok
	}
	c, ok := words.ParseNumber(s)
	return number{f: c.Float}, ok
}

// numberOf returns a cell as a number, also if it is text that is written as a number.
func numberOf(c words.Cell) (number, bool) {
	switch c.Kind {
	case words.Int:
		return number{whole: true, i: c.Int}, true
	case words.Float:
		return number{f: c.Float}, true
	case words.String:
		return parseNumber(c.Text)
	}
	return number{}, false
}

func (x number) isNaN() bool { return !x.whole && x.f != x.f }

// float returns the nearest float64.
func (x number) float() float64 {
	switch {
	case !x.whole:
		return x.f
	case x.large != nil:
		f, _ := new(big.Float).SetInt(x.large).Float64()
		return f
	}
	return float64(x.i)
}

// text returns a whole number in digits; false if the number is not whole.
func (x number) text() (string, bool) {
	switch {
	case x.large != nil:
		return x.large.String(), true
	case x.whole:
		return strconv.FormatInt(x.i, 10), true
	case x.f == math.Trunc(x.f) && !math.IsInf(x.f, 0):
		n, _ := big.NewFloat(x.f).Int(nil)
		return n.String(), true
	}
	return "", false
}

// compareNumbers orders two numbers. Neither may be NaN.
func compareNumbers(x, y number) int {
	switch {
	case !x.whole && !y.whole:
		return cmp.Compare(x.f, y.f)
	case x.whole && y.whole && x.large == nil && y.large == nil:
		return cmp.Compare(x.i, y.i)
	}
	return x.exact().Cmp(y.exact())
}

// exact returns a number with all its bits. It may not be NaN.
func (x number) exact() *big.Float {
	switch {
	case !x.whole:
		return big.NewFloat(x.f)
	case x.large != nil:
		return new(big.Float).SetInt(x.large)
	}
	return new(big.Float).SetInt64(x.i)
}

// compareCells orders two values. Ids and labels that are written as numbers compare as numbers,
// but texts that write one number in two ways, such as 7 and 07, are not equal. It returns false
// for values that do not compare.
func compareCells(a, b words.Cell) (int, bool) {
	x, okX := numberOf(a)
	y, okY := numberOf(b)
	numbers := okX && okY && !x.isNaN() && !y.isNaN()
	if a.Kind == words.String && b.Kind == words.String {
		if a.Text == b.Text {
			return 0, true
		}
		if numbers {
			if order := compareNumbers(x, y); order != 0 {
				return order, true
			}
		}
		return strings.Compare(a.Text, b.Text), true
	}
	if !numbers {
		return 0, false
	}
	return compareNumbers(x, y), true
}

// orderCells orders two values for sorting: numbers come first, then NaN, then text, and nothing
// last.
func orderCells(a, b words.Cell) int {
	if order := cmp.Compare(rank(a), rank(b)); order != 0 {
		return order
	}
	order, _ := compareCells(a, b)
	return order
}

func isNaN(c words.Cell) bool { return c.Kind == words.Float && c.Float != c.Float }

func rank(c words.Cell) int {
	n, ok := numberOf(c)
	switch {
	case ok && n.isNaN():
		return 1
	case ok:
		return 0
	case c.Kind == words.String:
		return 2
	}
	return 3
}
