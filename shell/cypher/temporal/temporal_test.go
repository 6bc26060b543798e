package temporal

import (
	"math"
	"strings"
	"testing"
	"time"
)

type fieldMap = map[string]any

// mustNew makes a value by the name of its function.
func mustNew(t *testing.T, function string, from any) Value {
	t.Helper()
	kind, ok := KindOf(function)
	if !ok {
		t.Fatalf("no kind of %s", function)
	}
	v, err := New(kind, from, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestNew makes values, and reads what they are written as again.
func TestNew(t *testing.T) {
	date := mustNew(t, "date", "1984-11-11")
	clock := mustNew(t, "time", "12:31:14.645876+01:00")
	stockholm := mustNew(t, "datetime", "1984-10-11T12:00[Europe/Stockholm]")
	for _, c := range []struct {
		function string
		from     any
		want     string
	}{
		{"date", "2015", "2015-01-01"},
		{"date", "201507", "2015-07-01"},
		{"date", "20150721", "2015-07-21"},
		{"date", "2015-W30-2", "2015-07-21"},
		{"date", "2015W30", "2015-07-20"},
		{"date", "2015-202", "2015-07-21"},
		{"date", "2015-Q3-21", "2015-07-21"},
		{"date", "-0001-03-01", "-0001-03-01"},
		{"date", "+12015-07-21", "+12015-07-21"},
		{"localtime", "214032.142", "21:40:32.142"},
		{"time", "2140-00:00", "21:40Z"},
		{"time", "22+18:00", "22:00+18:00"},
		{"localdatetime", "2015T2140", "2015-01-01T21:40"},
		{"datetime", "2015-07-21", "2015-07-21T00:00Z"},
		{"datetime", "2015-07-21T21:40-04[America/New_York]",
			"2015-07-21T21:40-04:00[America/New_York]"},
		// Clocks are set forward at 2, and back at 3: 02:30 is not there, and there twice.
		{"datetime", "2017-03-26T02:30[Europe/Stockholm]",
			"2017-03-26T03:30+02:00[Europe/Stockholm]"},
		{"datetime", "2017-10-29T02:30[Europe/Stockholm]",
			"2017-10-29T02:30+02:00[Europe/Stockholm]"},
		{"datetime", "2017-10-29T02:30+01:00[Europe/Stockholm]",
			"2017-10-29T02:30+01:00[Europe/Stockholm]"},
		{"date", fieldMap{"year": int64(1817), "week": int64(1), "dayOfWeek": int64(2)},
			"1816-12-31"},
		{"date", fieldMap{"date": date, "quarter": int64(3)}, "1984-08-11"},
		{"date", fieldMap{"date": date, "month": int64(2)}, "1984-02-11"},
		{"date", fieldMap{"date": date, "week": int64(1)}, "1984-01-08"},
		{"date", fieldMap{"year": int64(1984), "quarter": int64(3), "dayOfQuarter": int64(45)},
			"1984-08-14"},
		{"localtime", fieldMap{"hour": int64(12), "minute": int64(31), "second": int64(14),
			"millisecond": int64(123), "microsecond": int64(456), "nanosecond": int64(789)},
			"12:31:14.123456789"},
		{"time", fieldMap{"time": clock, "second": int64(42), "timezone": "+05:00"},
			"16:31:42.645876+05:00"},
		{"localtime", clock, "12:31:14.645876"},
		{"time", stockholm, "12:00+01:00"},
		// On the 28th of March clocks are an hour further.
		{"datetime", fieldMap{"date": mustNew(t, "date", "1984-03-07"), "time": stockholm,
			"day": int64(28), "timezone": "Pacific/Honolulu"},
			"1984-03-28T00:00-10:00[Pacific/Honolulu]"},
		{"datetime", fieldMap{"epochSeconds": int64(-1), "nanosecond": int64(5), "timezone": "+01"},
			"1970-01-01T00:59:59.000000005+01:00"},
		{"datetime", fieldMap{"epochMillis": int64(-1), "nanosecond": int64(5)},
			"1969-12-31T23:59:59.999000005Z"},
		{"date", fieldMap{"timezone": "-01:00"}, "1969-12-31"},
		{"duration", "P0.75M", "P22DT19H51M49.5S"},
		{"duration", "P2012-02-02T14:37:21.545", "P2012Y2M2DT14H37M21.545S"},
		{"duration", "-P1DT0.5S", "P-1DT-0.5S"},
		{"duration", fieldMap{"seconds": int64(-60), "milliseconds": int64(-1)}, "PT-1M-0.001S"},
		{"duration", fieldMap{"seconds": int64(-60), "milliseconds": int64(1)}, "PT-59.999S"},
		{"duration", fieldMap{"weeks": 2.5, "seconds": .1}, "P17DT12H0.1S"},
	} {
		v := mustNew(t, c.function, c.from)
		if v.String() != c.want {
			t.Errorf("%s(%v) is %s, want %s", c.function, c.from, v, c.want)
		}
		if again := mustNew(t, c.function, v.String()); again != v {
			t.Errorf("%s is read as %s", v, again)
		}
	}
}

func TestNewErrors(t *testing.T) {
	for _, c := range []struct {
		function string
		from     any
		want     string
	}{
		{"date", "2015-13-01", "month 13 is not in 1..12"},
		{"date", "2015-02-29", "day 29 is not in 1..28"},
		{"date", "2015-W54", "week 54 is not in 1..53"},
		{"date", "2015-07-21T21:40", "write datetime()"},
		{"date", "yesterday", "is no date: give '2015-07-21'"},
		{"localdatetime", "2015-07-21T21:40Z", "write datetime()"},
		{"time", "25:00", "hour 25 is not in 0..23"},
		{"time", "12:00[Europe/Stockholm]", "behind a date"},
		{"time", fieldMap{"hour": int64(1), "timezone": "Europe/Stockholm"}, "give an offset"},
		{"datetime", "2015-07-21T21:40[Europe/Stokholm]", `no time zone "Europe/Stokholm"`},
		{"datetime", "2015-07-21T21:40+09:00[Europe/Stockholm]", "at +02:00 then, not +09:00"},
		{"date", fieldMap{"year": int64(1984), "day": int64(2)}, "month is missing"},
		{"date", fieldMap{"month": int64(2)}, "year is missing"},
		{"date", fieldMap{"yaer": int64(2)}, `did you mean "year"`},
		{"date", fieldMap{"year": 1984.}, "year is an integer, not 1984"},
		{"date", fieldMap{"year": int64(1984), "month": int64(2), "week": int64(2)}, "contradict"},
		{"date", fieldMap{"year": int64(1e9)}, "not in -999999999..999999999"},
		{"localtime", fieldMap{"minute": int64(2)}, "give hour"},
		{"localtime", fieldMap{"hour": int64(1), "second": int64(2)}, "minute is missing"},
		{"localtime", mustNew(t, "date", "2015"), "a date has no time"},
		{"datetime", fieldMap{"epochSeconds": int64(1 << 62)}, "past the year"},
		{"datetime", fieldMap{"epochMillis": int64(1), "year": int64(5)}, "stand nanosecond and"},
		{"duration", "P", "is no duration: give 'P1Y2M"},
		{"duration", "P1DT", "is no duration"},
		{"duration", "PT99999999999999999999S", "2^62 seconds"},
		{"duration", fieldMap{"day": int64(2)}, `did you mean "days"`},
	} {
		kind, _ := KindOf(c.function)
		v, err := New(kind, c.from, time.Unix(0, 0))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s(%v) is %v, %v, want an error with %q", c.function, c.from, v, err, c.want)
		}
	}
}

func TestFromEpoch(t *testing.T) {
	for _, c := range [][2]string{
		{FromEpochMicros(-1).String(), "1969-12-31T23:59:59.999999Z"},
		{FromEpochMicros(1700000000123456).String(), "2023-11-14T22:13:20.123456Z"},
		{FromEpochMicros(math.MinInt64).String(), "-290308-12-21T19:59:05.224192Z"},
		{FromEpochDay(-1).String(), "1969-12-31"},
		{FromEpochDay(math.MaxInt32).String(), "+5881580-07-11"},
	} {
		if c[0] != c[1] {
			t.Errorf("got %s, want %s", c[0], c[1])
		}
	}
	if v, err := FromEpoch(math.MaxInt64, math.MaxInt64); err == nil {
		t.Errorf("2^63 seconds after 1970 are %s", v)
	}
}

func TestTruncate(t *testing.T) {
	from := mustNew(t, "datetime", "2017-11-11T12:31:14.645876123-01:00")
	nano := fieldMap{"nanosecond": int64(2)}
	for _, c := range []struct {
		function, unit string
		with           fieldMap
		want           string
	}{
		{"date", "millennium", fieldMap{"day": int64(2)}, "2000-01-02"},
		{"date", "decade", nil, "2010-01-01"},
		{"date", "weekYear", nil, "2017-01-02"},
		{"datetime", "quarter", fieldMap{"timezone": "Europe/Stockholm"},
			"2017-10-01T00:00+02:00[Europe/Stockholm]"},
		{"localdatetime", "week", fieldMap{"dayOfWeek": int64(2)}, "2017-11-07T00:00"},
		{"time", "hour", fieldMap{"timezone": "+01:00"}, "12:00+01:00"},
		{"localtime", "day", nano, "00:00:00.000000002"},
		{"localtime", "millisecond", nano, "12:31:14.645000002"},
		{"time", "microsecond", nano, "12:31:14.645876002-01:00"},
	} {
		kind, _ := KindOf(c.function)
		v, err := Truncate(kind, c.unit, from, c.with)
		if err != nil || v.String() != c.want {
			t.Errorf("%s.truncate(%s, %v) is %v, %v, want %s", c.function, c.unit, c.with, v, err,
				c.want)
		}
	}
	for unit, want := range map[string]string{"hour": `no unit "hour"`, "monht": `"month"`} {
		if _, err := Truncate(KindDate, unit, from, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("date.truncate(%s): %v, want %s", unit, err, want)
		}
	}
	_, err := Truncate(KindTime, "millisecond", from, fieldMap{"nanosecond": int64(1e6)})
	if err == nil || !strings.Contains(err.Error(), "not in 0..999999") {
		t.Errorf("a part longer than the unit: %v", err)
	}
}
