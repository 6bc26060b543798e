package temporal

import (
	"fmt"
	"slices"
)

// dateUnits and clockUnits are what Truncate takes, from the greatest.
var (
	dateUnits = []string{"millennium", "century", "decade", "year", "weekYear", "quarter", "month",
		"week", "day"}
	clockUnits  = []string{"day", "hour", "minute", "second", "millisecond", "microsecond"}
	clockGrains = []int64{dayNanos, hour, minute, second, 1e6, 1e3} // nanoseconds
)

// Truncate returns t as the kind, with everything below the unit at its least; then the components
// of m replace or, parts of a second, add to what is left.
func Truncate(kind, unit string, from Value, m map[string]any) (Value, error) {
	name := function(kind) + ".truncate"
	t, ok := from.(Instant)
	if !ok || kind == KindDuration {
		return nil, fmt.Errorf("%s(): a date or a time is wanted, not %v", name, from)
	}
	return wrap(name, func() (Instant, error) {
		if err := checkUnit(kind, unit); err != nil {
			return t, err
		}
		t, err := convert(kind, t)
		if err != nil {
			return t, err
		}
		return t.truncated(unit).with(m, unit)
	})
}

func checkUnit(kind, unit string) error {
	var units []string
	if hasDate(kind) {
		units = append(units, dateUnits...)
	}
	if hasTime(kind) {
		units = append(units, clockUnits...)
	}
	if !slices.Contains(units, unit) {
		return unknown("unit", unit, units)
	}
	return nil
}

// truncated returns the local time; that of a zone is made of it later.
func (t Instant) truncated(unit string) Instant {
	if slices.Contains(dateUnits, unit) {
		t.nano = 0
	}
	y, m, _ := civil(t.day)
	switch unit {
	case "millennium":
		t.day = epochDay(floorDiv(y, 1000)*1000, 1, 1)
	case "century":
		t.day = epochDay(floorDiv(y, 100)*100, 1, 1)
	case "decade":
		t.day = epochDay(floorDiv(y, 10)*10, 1, 1)
	case "year":
		t.day = epochDay(y, 1, 1)
	case "weekYear":
		y, _ := week(t.day)
		t.day = weekOne(y)
	case "quarter":
		t.day = epochDay(y, (m-1)/3*3+1, 1)
	case "month":
		t.day = epochDay(y, m, 1)
	case "week":
		t.day -= weekDay(t.day) - 1
	}
	if i := slices.Index(clockUnits, unit); i > 0 {
		t.nano -= t.nano % clockGrains[i]
	}
	return t
}

// with replaces components of t, which is truncated to the unit, by those of m. A zone keeps what
// clocks show.
func (t Instant) with(m map[string]any, unit string) (Instant, error) {
	f, s, err := readFields(t.kind, m)
	if err != nil {
		return t, err
	}
	if s.date != nil || s.time != nil || f.has("epochSeconds", "epochMillis") {
		return t, fmt.Errorf("components of truncate() are numbers and a timezone")
	}
	if hasDate(t.kind) {
		if t.day, err = f.date(t.day, true); err != nil {
			return t, err
		}
	}
	grain := second
	if i := slices.Index(clockUnits, unit); i > 0 {
		grain = min(grain, clockGrains[i])
	}
	if t.nano, err = f.clock(t.nano, true, grain); err != nil {
		return t, err
	}
	z := t.zoneOf()
	if s.zone != nil {
		if z, err = t.zoneFor(*s.zone); err != nil {
			return t, err
		}
	}
	if !hasZone(t.kind) {
		return t, nil
	}
	return t.local(z, t.offset).as(t.kind), nil
}
