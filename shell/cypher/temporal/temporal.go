// Package temporal holds openCypher's values of time: dates, times, times of dates, with a zone or
// without, and durations, in the proleptic Gregorian calendar and with nanoseconds.
//
// Meaning and words follow openCypher's proposal CIP2015-08-06, "Date and Time". Nothing here reads
// a clock: who needs the current time passes it.
package temporal

import (
	"fmt"
	"strings"
	"time"

	"gdb/internal/message"
)

// The kinds of values.
const (
	KindDate          = "DATE"
	KindLocalTime     = "LOCAL TIME"
	KindTime          = "TIME"
	KindLocalDateTime = "LOCAL DATETIME"
	KindDateTime      = "DATETIME"
	KindDuration      = "DURATION"
)

// Value is an Instant or a Duration. Both compare by ==, which is equality in openCypher.
type Value interface {
	// Kind returns one of the kinds above.
	Kind() string
	// String returns the value in ISO 8601, so that New reads it.
	String() string
	// Component returns a part of the value by its name, such as "year": an int64 or a string. A
	// name that the kind does not have is an error.
	Component(name string) (any, error)
}

// KindOf returns the kind that a function of openCypher makes: "localdatetime" makes LOCAL
// DATETIME.
func KindOf(function string) (kind string, ok bool) {
	kind, ok = map[string]string{"date": KindDate, "localtime": KindLocalTime, "time": KindTime,
		"localdatetime": KindLocalDateTime, "datetime": KindDateTime,
		"duration": KindDuration}[strings.ToLower(function)]
	return kind, ok
}

// function returns the function that makes a kind.
func function(kind string) string { return strings.ToLower(strings.ReplaceAll(kind, " ", "")) }

// New makes a value of the kind from what a function of openCypher is called with: a string in
// ISO 8601, a value of another kind, or a map of components, in which numbers are int64 or float64.
// Components that only name a time zone give the current time, now, there.
func New(kind string, from any, now time.Time) (Value, error) {
	if kind == KindDuration {
		return newDuration(from)
	}
	switch from := from.(type) {
	case string:
		return wrap(function(kind), func() (Instant, error) { return parse(kind, from) })
	case Instant:
		return wrap(function(kind), func() (Instant, error) { return convert(kind, from) })
	case map[string]any:
		if zone, ok := from["timezone"].(string); ok && len(from) == 1 {
			return Now(kind, now, zone)
		}
		return wrap(function(kind), func() (Instant, error) { return fromFields(kind, from) })
	}
	return nil, fmt.Errorf("%s() takes a string, a map or a time, not %s", function(kind),
		quoted(from))
}

// wrap says of an error which function it is of.
func wrap(function string, f func() (Instant, error)) (Value, error) {
	t, err := f()
	if err == nil {
		err = t.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s(): %w", function, err)
	}
	return t, nil
}

// Now returns the instant now as the kind, in the zone: a name, an offset, or "" for UTC.
func Now(kind string, now time.Time, zone string) (Value, error) {
	return wrap(function(kind), func() (Instant, error) {
		z, err := parseZone(zone)
		if err != nil {
			return Instant{}, err
		}
		t, err := fromEpoch(now.Unix(), int64(now.Nanosecond()))
		if err != nil {
			return t, err
		}
		return convert(kind, t.in(z))
	})
}

// FromEpoch returns the DATETIME that many seconds and nanoseconds after 1970, in UTC.
func FromEpoch(seconds, nanos int64) (Value, error) {
	return wrap("datetime.fromEpoch", func() (Instant, error) { return fromEpoch(seconds, nanos) })
}

// FromEpochMillis returns the DATETIME that many milliseconds after 1970, in UTC.
func FromEpochMillis(millis int64) (Value, error) {
	return FromEpoch(floorDiv(millis, 1000), floorMod(millis, 1000)*1e6)
}

// FromEpochMicros returns the DATETIME that many microseconds after 1970, in UTC. None is out of
// range.
func FromEpochMicros(micros int64) Instant {
	return shown(floorDiv(micros, 1e6), floorMod(micros, 1e6)*1e3, zone{})
}

// fromEpoch checks that the year is in range before anything can overflow.
func fromEpoch(seconds, nanos int64) (Instant, error) {
	const most = (maxYear + 1) * 366 * daySeconds
	if seconds < -most || seconds > most {
		return Instant{}, fmt.Errorf("%d seconds after 1970 are past the year %d", seconds, maxYear)
	}
	seconds += floorDiv(nanos, second)
	day := floorDiv(seconds, daySeconds)
	return Instant{kind: KindDateTime, day: day,
		nano: (seconds-day*daySeconds)*second + floorMod(nanos, second)}, nil
}

// FromEpochDay returns the DATE that many days after 1970-01-01.
func FromEpochDay(day int64) Instant { return Instant{kind: KindDate, day: day} }

// quoted returns a value for an error.
func quoted(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("%q", v)
	case Instant, Duration, int64, float64, bool:
		return fmt.Sprint(v)
	}
	return "a list, a map or an entity"
}

// unknown says of a name that it is none of those there are.
func unknown(what, name string, have []string) error {
	if near := message.Nearest(name, have); near != "" {
		return fmt.Errorf("no %s %q, did you mean %q?", what, name, near)
	}
	return fmt.Errorf("no %s %q: it is %s", what, name, message.OneOf(have))
}
