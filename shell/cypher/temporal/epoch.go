package temporal

import "math"

const micro int64 = 1e3 // nanoseconds

// Epoch returns a value as a number: the days since 1970 of a DATE; the microseconds since then of
// a LOCAL DATETIME, and of a DATETIME in UTC, with its zone; those since midnight of a LOCAL TIME.
// It is not ok where days do not fit in int32 or microseconds not in int64, for parts of a
// microsecond, for offsets with seconds, and for a TIME.
func (t Instant) Epoch() (n int64, zone string, ok bool) {
	seconds, nanos := t.utc()
	switch t.kind {
	case KindDate:
		return t.day, "", t.day >= math.MinInt32 && t.day <= math.MaxInt32
	case KindLocalTime:
		return t.nano / micro, "", t.nano%micro == 0
	case KindDateTime:
		if zone = t.zone; zone == "" && t.offset == 0 {
			zone = "UTC"
		} else if zone == "" {
			zone = offsetText(t.offset)
		}
		ok = t.zone != "" || t.offset%60 == 0
	case KindLocalDateTime:
		ok = true
	}
	const most = math.MaxInt64/1_000_000 - 1
	ok = ok && nanos%micro == 0 && seconds <= most && seconds >= -most
	return seconds*1_000_000 + nanos/micro, zone, ok
}

// AtEpoch returns the value of a kind that Epoch returned as n and name.
func AtEpoch(kind string, n int64, name string) Instant {
	switch kind {
	case KindDate:
		return FromEpochDay(n)
	case KindLocalTime:
		return Instant{kind: kind, nano: n * micro}
	case KindLocalDateTime:
		return FromEpochMicros(n).as(kind)
	}
	t := FromEpochMicros(n)
	if z, err := parseZone(name); err == nil && name != "UTC" { // it was there when Epoch ran
		t = t.in(z)
	}
	return t
}
