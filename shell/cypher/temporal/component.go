package temporal

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// instantParts are the components of instants: which kinds have each, and what it is.
var instantParts = map[string]struct {
	has func(kind string) bool
	of  func(t Instant) any
}{
	"year":          {hasDate, func(t Instant) any { y, _, _ := civil(t.day); return y }},
	"quarter":       {hasDate, func(t Instant) any { _, m, _ := civil(t.day); return (m + 2) / 3 }},
	"month":         {hasDate, func(t Instant) any { _, m, _ := civil(t.day); return m }},
	"day":           {hasDate, func(t Instant) any { _, _, d := civil(t.day); return d }},
	"weekYear":      {hasDate, func(t Instant) any { y, _ := week(t.day); return y }},
	"week":          {hasDate, func(t Instant) any { _, w := week(t.day); return w }},
	"weekDay":       {hasDate, func(t Instant) any { return weekDay(t.day) }},
	"dayOfWeek":     {hasDate, func(t Instant) any { return weekDay(t.day) }},
	"ordinalDay":    {hasDate, func(t Instant) any { return t.day - t.truncated("year").day + 1 }},
	"dayOfQuarter":  {hasDate, Instant.dayOfQuarter},
	"quarterDay":    {hasDate, Instant.dayOfQuarter},
	"hour":          {hasTime, func(t Instant) any { return t.nano / hour }},
	"minute":        {hasTime, func(t Instant) any { return t.nano % hour / minute }},
	"second":        {hasTime, func(t Instant) any { return t.nano % minute / second }},
	"millisecond":   {hasTime, func(t Instant) any { return t.nano % second / 1e6 }},
	"microsecond":   {hasTime, func(t Instant) any { return t.nano % second / 1e3 }},
	"nanosecond":    {hasTime, func(t Instant) any { return t.nano % second }},
	"offset":        {hasZone, func(t Instant) any { return offsetText(t.offset) }},
	"offsetMinutes": {hasZone, func(t Instant) any { return t.offset / 60 }},
	"offsetSeconds": {hasZone, func(t Instant) any { return t.offset }},
	"timezone":      {hasZone, func(t Instant) any { return t.timezone() }},
	"epochSeconds":  {isDateTime, func(t Instant) any { s, _ := t.utc(); return s }},
	"epochMillis":   {isDateTime, func(t Instant) any { s, n := t.utc(); return s*1000 + n/1e6 }},
}

func isDateTime(kind string) bool { return kind == KindDateTime }

func (t Instant) dayOfQuarter() any { return t.day - t.truncated("quarter").day + 1 }

// timezone returns the name, or else the offset.
func (t Instant) timezone() string {
	if t.zone != "" {
		return t.zone
	}
	return offsetText(t.offset)
}

// Component returns a part of the value.
func (t Instant) Component(name string) (any, error) {
	p, ok := instantParts[name]
	if ok && p.has(t.kind) {
		return p.of(t), nil
	}
	var names []string
	for n, p := range instantParts {
		if p.has(t.kind) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return nil, unknown("component of a "+strings.ToLower(t.kind), name, names)
}

// durationParts are the components of durations: months count in years, quarters and months, days
// in weeks, and seconds in what is below a day.
var durationParts = map[string]func(d Duration) int64{
	"years":                func(d Duration) int64 { return d.months / 12 },
	"quarters":             func(d Duration) int64 { return d.months / 3 },
	"months":               func(d Duration) int64 { return d.months },
	"quartersOfYear":       func(d Duration) int64 { return d.months % 12 / 3 },
	"monthsOfYear":         func(d Duration) int64 { return d.months % 12 },
	"monthsOfQuarter":      func(d Duration) int64 { return d.months % 3 },
	"weeks":                func(d Duration) int64 { return d.days / 7 },
	"days":                 func(d Duration) int64 { return d.days },
	"daysOfWeek":           func(d Duration) int64 { return d.days % 7 },
	"hours":                func(d Duration) int64 { return d.seconds / 3600 },
	"minutes":              func(d Duration) int64 { return d.seconds / 60 },
	"minutesOfHour":        func(d Duration) int64 { return d.seconds % 3600 / 60 },
	"seconds":              func(d Duration) int64 { return d.seconds },
	"secondsOfMinute":      func(d Duration) int64 { return d.seconds % 60 },
	"millisecondsOfSecond": func(d Duration) int64 { return d.nanos / 1e6 },
	"microsecondsOfSecond": func(d Duration) int64 { return d.nanos / 1e3 },
	"nanosecondsOfSecond":  func(d Duration) int64 { return d.nanos },
}

// fineUnits are whole durations in units of which one may have more than fit 64 bits: how many are
// in a second.
var fineUnits = map[string]int64{"milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}

// Component returns a part of the duration, or the whole of it in a unit.
func (d Duration) Component(name string) (any, error) {
	if of, ok := durationParts[name]; ok {
		return of(d), nil
	}
	if per, ok := fineUnits[name]; ok {
		all := new(big.Int).Mul(big.NewInt(d.seconds), big.NewInt(per))
		if all.Add(all, big.NewInt(d.nanos/(second/per))); !all.IsInt64() {
			return nil, fmt.Errorf("%s of %s do not fit 64 bits: take seconds", name, d)
		}
		return all.Int64(), nil
	}
	var names []string
	for n := range durationParts {
		names = append(names, n)
	}
	for n := range fineUnits {
		names = append(names, n)
	}
	slices.Sort(names)
	return nil, unknown("component of a duration", name, names)
}
