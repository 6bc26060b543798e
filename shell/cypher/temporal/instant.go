package temporal

import (
	"cmp"
	"fmt"
	"strings"
)

const (
	second     int64 = 1e9 // nanoseconds
	minute           = 60 * second
	hour             = 60 * minute
	dayNanos         = 24 * hour
	daySeconds int64 = 24 * 60 * 60
	// maxYear is openCypher's; so days fit 39 bits and seconds 55.
	maxYear = 999_999_999
)

// Instant is a date, a time or both. Fields that its kind does not have are zero.
type Instant struct {
	kind   string
	day    int64  // days since 1970-01-01
	nano   int64  // nanoseconds since midnight, as a clock of the zone shows them
	offset int64  // seconds east of UTC
	zone   string // a name, or "" where there is only an offset
}

// Kind returns the name of the type.
func (t Instant) Kind() string { return t.kind }

func hasDate(kind string) bool {
	return kind == KindDate || kind == KindLocalDateTime || kind == KindDateTime
}
func hasTime(kind string) bool { return kind != KindDate }
func hasZone(kind string) bool { return kind == KindTime || kind == KindDateTime }

func (t Instant) check() error {
	if y, _, _ := civil(t.day); y < -maxYear || y > maxYear {
		return fmt.Errorf("year %d is not in -999999999..999999999", y)
	}
	return nil
}

// utc returns the seconds since 1970 in UTC, and the nanoseconds after them; of a value without a
// zone as if it were in UTC.
func (t Instant) utc() (seconds, nanos int64) {
	return t.day*daySeconds + t.nano/second - t.offset, t.nano % second
}

// Compare returns the sign of a - b for values of one kind, of which the earlier instant is less.
// Of times at the same instant the one further west is less, then the one whose zone's name is. It
// is not ok for two kinds, and for durations, of which months have no length; see Order.
func Compare(a, b Value) (sign int, ok bool) {
	if a.Kind() != b.Kind() || a.Kind() == KindDuration {
		return 0, false
	}
	return Order(a, b), true
}

// Order returns the sign of a - b in the order of ORDER BY for values of one kind: as Compare, and
// durations by their mean length.
func Order(a, b Value) int {
	if a, ok := a.(Duration); ok {
		return a.order(b.(Duration))
	}
	x, y := a.(Instant), b.(Instant)
	xs, xn := x.utc()
	ys, yn := y.utc()
	return cmp.Or(cmp.Compare(xs, ys), cmp.Compare(xn, yn), cmp.Compare(x.offset, y.offset),
		strings.Compare(x.zone, y.zone))
}

// convert returns t as another kind: what the kind lacks is dropped, and what t lacks is midnight
// or UTC.
func convert(kind string, t Instant) (Instant, error) {
	if hasDate(kind) && !hasDate(t.kind) {
		return t, fmt.Errorf("a %s has no date: give {date: …, time: …}", function(t.kind))
	}
	if kind != KindDate && t.kind == KindDate && !hasDate(kind) {
		return t, fmt.Errorf("a date has no time: give {hour: …} or '12:30'")
	}
	return t.as(kind), nil
}

func (t Instant) as(kind string) Instant {
	t.kind = kind
	if !hasDate(kind) {
		t.day, t.zone = 0, ""
	}
	if !hasTime(kind) {
		t.nano = 0
	}
	if !hasZone(kind) {
		t.offset, t.zone = 0, ""
	}
	return t
}

// String returns the value in ISO 8601: seconds and their fraction only if they are not zero.
func (t Instant) String() string {
	var b strings.Builder
	if hasDate(t.kind) {
		y, m, d := civil(t.day)
		switch {
		case y > 9999:
			b.WriteByte('+')
		case y < 0:
			b.WriteByte('-')
			y = -y
		}
		fmt.Fprintf(&b, "%04d-%02d-%02d", y, m, d)
	}
	if hasTime(t.kind) {
		if hasDate(t.kind) {
			b.WriteByte('T')
		}
		fmt.Fprintf(&b, "%02d:%02d", t.nano/hour, t.nano%hour/minute)
		if s := t.nano % minute; s > 0 {
			fmt.Fprintf(&b, ":%02d%s", s/second, fraction(s%second))
		}
	}
	if hasZone(t.kind) {
		b.WriteString(offsetText(t.offset))
		if t.zone != "" {
			fmt.Fprintf(&b, "[%s]", t.zone)
		}
	}
	return b.String()
}

// fraction returns nanoseconds as digits after a point, or "" for 0.
func fraction(nanos int64) string {
	if nanos == 0 {
		return ""
	}
	return strings.TrimRight(fmt.Sprintf(".%09d", nanos), "0")
}
