package temporal

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// Component returns a part of the value. It takes time O(parts).
func (t Instant) Component(name string) (any, error) {
	parts := map[string]any{}
	if hasDate(t.kind) {
		t.dateParts(parts)
	}
	if hasTime(t.kind) {
		parts["hour"], parts["minute"] = t.nano/hour, t.nano%hour/minute
		parts["second"], parts["millisecond"] = t.nano%minute/second, t.nano%second/1e6
		parts["microsecond"], parts["nanosecond"] = t.nano%second/1e3, t.nano%second
	}
	if hasZone(t.kind) {
		parts["offset"], parts["timezone"] = offsetText(t.offset), offsetText(t.offset)
		if t.zone != "" {
			parts["timezone"] = t.zone
		}
		parts["offsetMinutes"], parts["offsetSeconds"] = t.offset/60, t.offset
	}
	if t.kind == KindDateTime {
		s, n := t.utc()
		parts["epochSeconds"], parts["epochMillis"] = s, s*1000+n/1e6
	}
	return component(t.kind, parts, name)
}

func (t Instant) dateParts(parts map[string]any) {
	y, m, d := civil(t.day)
	weekYear, w := week(t.day)
	parts["year"], parts["month"], parts["day"] = y, m, d
	parts["weekYear"], parts["week"] = weekYear, w
	parts["weekDay"], parts["dayOfWeek"] = weekDay(t.day), weekDay(t.day)
	parts["ordinalDay"] = t.day - epochDay(y, 1, 1) + 1
	parts["quarter"] = (m + 2) / 3
	ofQuarter := t.day - epochDay(y, (m-1)/3*3+1, 1) + 1
	parts["dayOfQuarter"], parts["quarterDay"] = ofQuarter, ofQuarter
}

func component(kind string, parts map[string]any, name string) (any, error) {
	if v, ok := parts[name]; ok {
		return v, nil
	}
	return nil, unknown("component of a "+strings.ToLower(kind), name,
		slices.Sorted(maps.Keys(parts)))
}

// Component returns a part of the duration, or the whole of it in a unit: months count in years,
// quarters and months, seconds in hours and what is below, days in weeks.
func (d Duration) Component(name string) (any, error) {
	s, n := d.seconds, d.nanos
	parts := map[string]any{
		"years": d.months / 12, "quarters": d.months / 3, "months": d.months,
		"quartersOfYear": d.months % 12 / 3, "monthsOfYear": d.months % 12,
		"monthsOfQuarter": d.months % 3,
		"weeks":           d.days / 7, "days": d.days, "daysOfWeek": d.days % 7,
		"hours": s / 3600, "minutes": s / 60, "minutesOfHour": s % 3600 / 60,
		"seconds": s, "secondsOfMinute": s % 60, "millisecondsOfSecond": n / 1e6,
		"microsecondsOfSecond": n / 1e3, "nanosecondsOfSecond": n,
		"milliseconds": int64(1e3), "microseconds": int64(1e6), "nanoseconds": second,
	}
	v, err := component(KindDuration, parts, name)
	if per, ok := v.(int64); ok && slices.Contains([]string{"milliseconds", "microseconds",
		"nanoseconds"}, name) {
		all := new(big.Int).Mul(big.NewInt(s), big.NewInt(per))
		if all.Add(all, big.NewInt(n/(second/per))); !all.IsInt64() {
			return nil, fmt.Errorf("%s of %s do not fit 64 bits: take seconds", name, d)
		}
		return all.Int64(), nil
	}
	return v, err
}
