package temporal

import "fmt"

// Between returns the duration from a to b in a unit: "inMonths", "inDays" and "inSeconds" return
// whole ones of it, "between" as many months, then days, then seconds. What one has and the other
// lacks, a date or a zone, is taken from the other; a time that both lack is midnight. If one has
// only a time, the difference is in seconds, and nothing in greater units.
func Between(unit string, a, b Value) (Value, error) {
	x, ok := a.(Instant)
	y, ok2 := b.(Instant)
	if !ok || !ok2 {
		return nil, fmt.Errorf("duration.%s(): two instants are wanted, not %v and %v", unit, a, b)
	}
	dates := hasDate(x.kind) && hasDate(y.kind)
	x, y = x.beside(y), y.beside(x)
	var d Duration
	switch unit {
	case "between", "inMonths", "inDays":
		if dates {
			x = x.calendar(unit, y.in(x.zoneOf()), &d)
		}
	case "inSeconds":
	default:
		return nil, fmt.Errorf("no function duration.%s: it is between, inMonths, inDays or "+
			"inSeconds", unit)
	}
	if unit == "between" || unit == "inSeconds" {
		s, n := x.utc()
		s2, n2 := y.utc()
		d.seconds, d.nanos = s2-s+floorDiv(n2-n, second), floorMod(n2-n, second)
	}
	return result(d.checked())
}

// beside returns t as a DATETIME, with the date and the zone of other where it has none.
func (t Instant) beside(other Instant) Instant {
	if !hasDate(t.kind) {
		t.day = other.day
	}
	z := t.zoneOf()
	if !hasZone(t.kind) {
		z = other.zoneOf()
	}
	return t.local(z, t.offset)
}

// calendar counts months and days from t to end in d, and returns t moved by them. A day that is
// not over, in either direction, does not count.
func (t Instant) calendar(unit string, end Instant, d *Duration) Instant {
	z := t.zoneOf()
	last := func() int64 {
		switch {
		case end.day > t.day && end.nano < t.nano:
			return end.day - 1
		case end.day < t.day && end.nano > t.nano:
			return end.day + 1
		}
		return end.day
	}
	if unit != "inDays" {
		y, m, dom := civil(t.day)
		y2, m2, dom2 := civil(last())
		d.months = ((y2*12+m2)*32 + dom2 - (y*12+m)*32 - dom) / 32
		t.day = plusMonths(t.day, d.months)
	}
	if unit != "inMonths" {
		d.days = last() - t.day
		t.day += d.days
	}
	return t.local(z, t.offset)
}
