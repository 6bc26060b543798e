package input

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"gdb/layout/columnfile"
)

// Append reads field f as column c of a row and appends it to v, or says what is wrong with it.
func (s *Spec) Append(v *Values, c Column, f []byte, bad *Bad) bool {
	switch c.Kind {
	case ID:
		id, ok := ParseID(f)
		if !ok && len(f) == 0 {
			bad.What, bad.Do = s.name(c.Field)+", an id, is empty", skipEmpty
			return false
		}
		if !ok {
			badID(f, bad)
			return false
		}
		v.IDs = append(v.IDs, id)
	case Reference:
		id, ok := ParseID(f)
		switch {
		case ok && id <= math.MaxInt64:
		case c.Nulls && s.isMissing(f):
			id = NoKey
		case len(f) == 0:
			bad.What, bad.Do = s.name(c.Field)+", an id, is empty", skipEmpty
			return false
		default:
			id = NotKey
		}
		v.IDs = append(v.IDs, id)
	case Key:
		if len(f) == 0 {
			bad.What, bad.Do = s.name(c.Field)+", an id, is empty", skipEmpty
			return false
		}
		v.Texts = append(v.Texts, f)
	case Text:
		if s.isMissing(f) {
			f = nil
		}
		v.Texts = append(v.Texts, f)
	case Int64, Float64, Truth:
		bits, what, ok := parseBits(c.Kind, f)
		if !ok && len(f) > 0 {
			s.unlike(c, f, what, bad)
			return false
		}
		v.Integers, v.Nulls = append(v.Integers, bits), append(v.Nulls, !ok)
	case Moment: // a column of times has nothing else
		v.Integers = append(v.Integers, NoMoment)
	case Time:
		n, ok := ParseInteger(f)
		if !ok {
			n, ok = ParseTime(f)
		}
		if !ok {
			s.unlike(c, f, "a time", bad)
			return false
		}
		v.Integers = append(v.Integers, n)
	default:
		x, ok := s.float(f, c, bad)
		if !ok {
			return false
		}
		if c.Kind == Float && MayRound(x) && Rounds(f) {
			v.Rounded = append(v.Rounded, Rounded{len(v.Floats), f})
		}
		v.Floats = append(v.Floats, float32(x))
	}
	return true
}

// parseBits reads a value in 64 bits, and tells what values of its kind are.
func parseBits(kind Kind, f []byte) (bits int64, what string, ok bool) {
	switch kind {
	case Int64:
		bits, ok = ParseInteger(f)
		return bits, "an integer of 64 bits", ok
	case Truth:
		x, ok := ParseTruth(f)
		return int64(x), "true or false", ok
	}
	x, err := strconv.ParseFloat(str(f), 64)
	if err != nil {
		x = 0
	}
	return int64(math.Float64bits(x)), "a number", err == nil
}

// ParseValue reads a value of a column of a type other than string, as the bits that
// columnfile.Values hold.
func ParseValue(typ string, f []byte) (bits int64, ok bool) {
	switch typ {
	case columnfile.Bool:
		x, ok := ParseTruth(f)
		return int64(x), ok
	case columnfile.Int64:
		n, ok := ParseInteger(f)
		// 007 and +7 are texts: as numbers they would come back as others.
		return n, ok && (len(f) == 1 || f[0] != '0' && f[0] != '+' && (f[0] != '-' || f[1] != '0'))
	case columnfile.Float64:
		x, err := strconv.ParseFloat(str(f), 64)
		return int64(math.Float64bits(x)), err == nil
	case columnfile.Date:
		at, day, ok := ParseDate(f)
		return at.Unix() / secondsOfDay, ok && day // a whole number of days
	}
	at, _, ok := ParseDate(f)
	return at.UnixMicro(), ok
}

// secondsOfDay is how long a day is.
const secondsOfDay = 24 * 60 * 60

// skipEmpty is what to do with a row that has no id.
const skipEmpty = "leave the row out, or pass over such rows with --skip-bad and their number"

// badID distinguishes a negative id from one that is no integer at all.
func badID(f []byte, bad *Bad) {
	if _, negative := ParseID(f[1:]); f[0] == '-' && negative {
		bad.What, bad.Do = fmt.Sprintf("id %s is negative", quote(f)), "node ids begin at 0"
		return
	}
	bad.What, bad.NotInteger = fmt.Sprintf("id %s is not an integer", quote(f)), true
}

// float reads a Float or Optional field.
func (s *Spec) float(f []byte, c Column, bad *Bad) (float64, bool) {
	if c.Kind == Optional && s.isMissing(f) {
		return math.NaN(), true
	}
	x, ok := parseDouble(f)
	switch {
	case !ok:
		s.unlike(c, f, "a number", bad)
	case !finite(float32(x)) && (c.Kind == Float || x == x):
		ok = false
		bad.What = fmt.Sprintf("%s is %s, not a finite number", s.name(c.Field), quote(f))
		if !math.IsInf(x, 0) && x == x {
			bad.What += " of float32"
		}
		bad.Do = c.Do
	}
	return x, ok
}

// unlike records in bad that a field is not of the kind of its column.
func (s *Spec) unlike(c Column, f []byte, kind string, bad *Bad) {
	bad.What, bad.Do = fmt.Sprintf("%s, %s, is not %s", s.name(c.Field), quote(f), kind), c.Do
	if len(f) == 0 {
		bad.What = s.name(c.Field) + " is empty"
	}
	how := ""
	if point := bytes.Replace(f, []byte(","), []byte("."), 1); c.Kind == Time {
		how = "write seconds since 1970, or a date as 2020-12-31"
	} else if _, ok := ParseFloat(point); ok {
		how = "a number has a point: " + string(point)
	}
	if how != "" && len(f) > 0 && c.Do != "" {
		bad.Do = how + "; or " + c.Do
	} else if how != "" && len(f) > 0 {
		bad.Do = how
	}
}

// Number reads a field of the vector.
func (s *Spec) Number(field int, f []byte, bad *Bad) (x float32, ok bool) {
	if x, ok = ParseFloat(f); ok && finite(x) {
		return x, true
	}
	switch truth, isTruth := ParseTruth(f); {
	case s.isMissing(f) && (s.Gaps || s.NaN):
		return nan, true
	case s.Gaps && x != x:
		return nan, true
	case ok && s.NaN:
		return x, true
	case isTruth:
		return truth, true
	case s.isMissing(f):
		bad.What = s.name(field) + " is empty"
		bad.Do = "--fill mean, --fill zero or a number fills it"
	case ok:
		bad.What = fmt.Sprintf("%s is %s", s.name(field), quote(f))
		bad.Do = "fill it with --fill, or allow it with --allow-nan"
	default:
		bad.What = fmt.Sprintf("%s, %s, is not a number", s.name(field), quote(f))
		bad.Do = "if it is a word for missing, name it with --na; if the column has categories, " +
			"with --categorical"
	}
	return x, false
}

// ParseTruth reads true or false, as programs write them, as 1 or 0.
func ParseTruth(f []byte) (x float32, ok bool) {
	switch string(f) {
	case "true", "True", "TRUE":
		return 1, true
	case "false", "False", "FALSE":
		return 0, true
	}
	return 0, false
}

// timeForms are the forms of ISO 8601 that are read, the most frequent first.
var timeForms = []string{time.DateOnly, time.RFC3339, "2006-01-02 15:04:05",
	"2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04", "2006-01-02 15:04"}

// ParseTime reads a number of seconds with a fraction, or a date and time, as seconds since 1970.
func ParseTime(f []byte) (seconds int64, ok bool) {
	if t, _, ok := parseDate(f); ok {
		return t.Unix(), true
	}
	x, err := strconv.ParseFloat(str(f), 64)
	if err != nil || math.Abs(x) > 1<<62 || x != x {
		return 0, false
	}
	return int64(math.Floor(x)), true
}

// ParseDate reads a date, or a date and time, and tells whether it is one without a time of day.
func ParseDate(f []byte) (at time.Time, day, ok bool) {
	at, form, ok := parseDate(f)
	return at, form == time.DateOnly, ok
}

// DateForm reports whether a field is a date, and whether it is one without a time of day.
func DateForm(f []byte) (date, day bool) {
	_, form, date := parseDate(f)
	return date, form == time.DateOnly
}

// parseDate reads a date or a date and time, and tells the form of it.
func parseDate(f []byte) (t time.Time, form string, ok bool) {
	if t, ok := parseDay(f); ok {
		return t, time.DateOnly, true
	}
	for _, form := range timeForms {
		if t, err := time.Parse(form, str(f)); err == nil {
			return t, form, true
		}
	}
	return t, "", false
}

// parseDay reads a date as 2020-12-31, as time.Parse does, which takes ten times as long.
func parseDay(f []byte) (t time.Time, ok bool) {
	const form = time.DateOnly
	if len(f) != len(form) || f[4] != '-' || f[7] != '-' {
		return t, false
	}
	number := func(digits []byte) (n int) {
		for _, c := range digits {
			ok = ok && c-'0' <= 9
			n = n*10 + int(c-'0')
		}
		return n
	}
	ok = true
	year, month, day := number(f[:4]), number(f[5:7]), number(f[8:])
	if !ok || month < 1 || month > 12 || day < 1 {
		return t, false
	}
	t = time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	return t, t.Day() == day // no 31st of a month that has 30
}

// quote shows a field in a message, shortened.
func quote(f []byte) string {
	const max = 40
	if len(f) > max {
		return fmt.Sprintf("%q…", f[:max])
	}
	return fmt.Sprintf("%q", f)
}

// ParseID reads an unsigned integer in canonical form.
func ParseID(b []byte) (v uint64, ok bool) {
	if len(b) == 0 || b[0] == '0' && len(b) > 1 {
		return 0, false
	}
	if len(b) > 19 {
		v, err := strconv.ParseUint(str(b), 10, 64)
		return v, err == nil && b[0] != '+'
	}
	for _, c := range b {
		d := c - '0'
		if d > 9 {
			return 0, false
		}
		v = v*10 + uint64(d)
	}
	return v, true
}

// ParseInteger reads a signed integer.
func ParseInteger(b []byte) (int64, bool) {
	if v, ok := ParseID(b); ok && v <= math.MaxInt64 { // nearly all
		return int64(v), true
	}
	v, err := strconv.ParseInt(str(b), 10, 64)
	return v, err == nil
}

// powersOfTen are exact in a float64.
var powersOfTen = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12,
	1e13, 1e14, 1e15}

// ParseFloat reads a number: rounded to float64, then to float32, as NumPy does.
func ParseFloat(b []byte) (float32, bool) {
	v, ok := parseDouble(b)
	return float32(v), ok
}

// parseDouble reads a number.
func parseDouble(b []byte) (float64, bool) {
	// Up to 15 digits and one point: the digits and the power of ten are exact in a float64, so
	// their quotient is rounded once, as strconv rounds it. Everything else goes there.
	var mantissa int64
	rest, point := b, -1
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		rest = b[1:]
	}
	if len(rest) == 0 || len(rest) > 16 {
		return parseAny(b)
	}
	for i, c := range rest {
		switch d := c - '0'; {
		case d <= 9:
			mantissa = mantissa*10 + int64(d)
		case c == '.' && point < 0 && len(rest) > 1:
			point = i
		default:
			return parseAny(b)
		}
	}
	if point < 0 && len(rest) == 16 {
		return parseAny(b)
	}
	v := float64(mantissa)
	if point >= 0 {
		v /= powersOfTen[len(rest)-1-point]
	}
	if negative {
		v = -v
	}
	return v, true
}

func parseAny(b []byte) (float64, bool) {
	v, err := strconv.ParseFloat(str(b), 64)
	return v, err == nil
}

// finite reports whether a number is neither NaN nor infinite.
func finite(v float32) bool { return v-v == 0 }

var nan = float32(math.NaN())

// str sees bytes as a string, for calls that do not keep it.
func str(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

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
