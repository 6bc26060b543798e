package temporal

import (
	"strings"
	"testing"
)

// guess makes a value of the kind that its text has.
func guess(t *testing.T, s string) Value {
	t.Helper()
	date, clock, both := strings.Cut(s, "T")
	switch {
	case strings.Contains(s, "P"):
		return mustNew(t, "duration", s)
	case both && strings.ContainsAny(clock, "Z+-["):
		return mustNew(t, "datetime", s)
	case both:
		return mustNew(t, "localdatetime", s)
	case !strings.Contains(date, ":"):
		return mustNew(t, "date", s)
	case strings.ContainsAny(date, "Z+-"):
		return mustNew(t, "time", s)
	}
	return mustNew(t, "localtime", s)
}

func TestAddAndSub(t *testing.T) {
	const d = "P1M-14DT15H49M10S"
	for _, c := range [][4]string{
		{"1984-10-11", d, "1984-10-28", "1984-09-25"},
		{"12:31:14.000000001", d, "04:20:24.000000001", "20:42:04.000000001"},
		{"12:31:14+01:00", d, "04:20:24+01:00", "20:42:04+01:00"},
		{"1984-10-11T12:31:14", d, "1984-10-29T04:20:24", "1984-09-24T20:42:04"},
		{"1984-10-11T12:31:14+01:00", d, "1984-10-29T04:20:24+01:00", "1984-09-24T20:42:04+01:00"},
		{"2015-01-02", "PT23H59M59.5S", "2015-01-02", "2015-01-02"}, // no whole day
		{"P1D", "PT0.3S", "P1DT0.3S", "P1DT-0.3S"},
		{"2015-01-31", "P1M", "2015-02-28", "2014-12-31"},
		// A day is of the calendar there, 24 hours are not.
		{"2017-10-28T12:00+02:00[Europe/Stockholm]", "P1D",
			"2017-10-29T12:00+01:00[Europe/Stockholm]", "2017-10-27T12:00+02:00[Europe/Stockholm]"},
		{"2017-10-28T12:00+02:00[Europe/Stockholm]", "PT24H",
			"2017-10-29T11:00+01:00[Europe/Stockholm]", "2017-10-27T12:00+02:00[Europe/Stockholm]"},
		{"P12Y5M14DT16H13M10.000000001S", d, "P12Y6MT32H2M20.000000001S",
			"P12Y4M28DT24M0.000000001S"},
	} {
		a, b := guess(t, c[0]), guess(t, c[1])
		sum, err := Add(a, b)
		if err != nil || sum.String() != c[2] {
			t.Errorf("%s + %s is %v, %v, want %s", a, b, sum, err, c[2])
		}
		if turned, err := Add(b, a); err != nil || turned != sum {
			t.Errorf("%s + %s is %v, %v, want %s", b, a, turned, err, c[2])
		}
		if diff, err := Sub(a, b); err != nil || diff.String() != c[3] {
			t.Errorf("%s - %s is %v, %v, want %s", a, b, diff, err, c[3])
		}
	}
	for _, c := range [][3]string{
		{"2015-01-01", "2014-01-01", "duration.between"},
		{"+999999999-12-31", "P-1D", "not in -999999999..999999999"},
		{"2015-01-01T00:00", "PT-4611686018427387000S", "past the year"},
		{"P-53375995583650D", "P53375995583650D", "2^62 seconds"},
	} {
		v, err := Sub(guess(t, c[0]), guess(t, c[1]))
		if err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s - %s is %v, %v, want %q", c[0], c[1], v, err, c[2])
		}
	}
}

func TestMulAndDiv(t *testing.T) {
	d := guess(t, "P12Y5M14DT16H13M10.000000001S").(Duration)
	for _, c := range []struct {
		f    func(Duration, any) (Value, error)
		by   any
		want string
	}{
		{Mul, int64(2), "P24Y10M28DT32H26M20.000000002S"},
		{Mul, .5, "P6Y2M22DT13H21M8S"},
		{Div, int64(2), "P6Y2M22DT13H21M8S"},
		{Div, -.5, "P-24Y-10M-28DT-32H-26M-20.000000002S"},
	} {
		if v, err := c.f(d, c.by); err != nil || v.String() != c.want {
			t.Errorf("%s by %v is %v, %v, want %s", d, c.by, v, err, c.want)
		}
	}
	for _, by := range []any{int64(0), 0., 1e-300, "2"} {
		if v, err := Div(d, by); err == nil {
			t.Errorf("%s / %v is %v", d, by, v)
		}
	}
}

func TestBetween(t *testing.T) {
	for _, c := range [][4]string{
		{"between", "1984-10-11", "2016-07-21T21:45:22.142", "P31Y9M10DT21H45M22.142S"},
		{"between", "14:30", "2015-06-24", "PT-14H-30M"},
		{"between", "2015-07-21T21:40:32.142", "2015-06-24", "P-27DT-21H-40M-32.142S"},
		{"between", "2014-07-21T21:40:36.143+0200", "2015-07-21T21:40:32.142+0100",
			"P1YT59M55.999S"},
		{"between", "2015-01-31", "2015-03-01", "P1M1D"},
		{"between", "-999999999-01-01", "+999999999-12-31", "P1999999998Y11M30D"},
		{"between", "2017-10-28T23:00+02:00[Europe/Stockholm]",
			"2017-10-29T04:00+01:00[Europe/Stockholm]", "PT6H"},
		{"inMonths", "2018-07-21", "2016-07-21T21:40:32.142+0100", "P-1Y-11M"},
		{"inMonths", "14:30", "2015-06-24", "PT0S"},
		{"inDays", "1984-10-11", "2015-07-21T21:40:32.142+0100", "P11240D"},
		{"inSeconds", "14:30Z", "16:30+01:00", "PT1H"},
		{"inSeconds", "12:44:56", "12:34:55.7", "PT-10M-0.3S"},
		{"inSeconds", "2017-10-29T00:00[Europe/Stockholm]", "04:00", "PT5H"},
		{"inSeconds", "-999999999-01-01T00:00", "+999999999-12-31T23:59:59",
			"PT17531639991215H59M59S"},
	} {
		v, err := Between(c[0], guess(t, c[1]), guess(t, c[2]))
		if err != nil || v.String() != c[3] {
			t.Errorf("%s(%s, %s) is %v, %v, want %s", c[0], c[1], c[2], v, err, c[3])
		}
	}
	if _, err := Between("inYears", guess(t, "2015"), guess(t, "2015")); err == nil {
		t.Error("duration.inYears is not refused")
	}
}

// TestOrder has values of a kind in ascending order, of which none is equal to another.
func TestOrder(t *testing.T) {
	for _, values := range [][]string{
		{"-0001-01-01", "0001-01-01", "2015-01-01", "+12015-01-01"},
		{"10:35", "12:31:14.645876123", "12:31:14.645876124"},
		{"12:35:15+05:00", "09:35-01:00", "10:35Z", "11:35+01:00", "10:35-08:00"},
		{"2015-01-01T11:00-01:00", "2015-01-01T12:00Z", "2015-01-01T13:00+01:00",
			"2015-01-01T13:00[Europe/Berlin]", "2015-01-01T13:00[Europe/Stockholm]",
			"2015-01-01T12:00-01:00"},
		{"P-1D", "PT23H", "P1D", "P30D", "P1M", "P31D", "P1Y"},
	} {
		for i := range values {
			for j := range values {
				a, b := guess(t, values[i]), guess(t, values[j])
				want := min(1, max(-1, i-j))
				if got := Order(a, b); got != want || (a == b) != (i == j) {
					t.Errorf("Order(%s, %s) is %d, want %d; equal %v", a, b, got, want, a == b)
				}
				if c, ok := Compare(a, b); ok != (a.Kind() != KindDuration) || ok && c != want {
					t.Errorf("Compare(%s, %s) is %d, %v", a, b, c, ok)
				}
			}
		}
	}
	if _, ok := Compare(guess(t, "2015"), guess(t, "10:35")); ok {
		t.Error("a date compares with a time")
	}
}

func TestComponent(t *testing.T) {
	for value, parts := range map[string]map[string]any{
		"1984-11-11T12:31:14.645876123+01:00[Europe/Stockholm]": {"year": int64(1984),
			"quarter": int64(4), "month": int64(11), "week": int64(45), "weekYear": int64(1984),
			"day": int64(11), "ordinalDay": int64(316), "weekDay": int64(7),
			"dayOfQuarter": int64(42),
			"hour":         int64(12), "minute": int64(31), "second": int64(14),
			"millisecond": int64(645),
			"microsecond": int64(645876), "nanosecond": int64(645876123), "offset": "+01:00",
			"timezone": "Europe/Stockholm", "offsetMinutes": int64(60),
			"offsetSeconds": int64(3600),
			"epochSeconds":  int64(469020674), "epochMillis": int64(469020674645)},
		"P1Y4M10DT1H1M1.111111111S": {"years": int64(1), "quarters": int64(5), "months": int64(16),
			"weeks": int64(1), "days": int64(10), "hours": int64(1), "minutes": int64(61),
			"seconds": int64(3661), "milliseconds": int64(3661111),
			"microseconds": int64(3661111111),
			"nanoseconds":  int64(3661111111111), "quartersOfYear": int64(1),
			"monthsOfQuarter": int64(1),
			"monthsOfYear":    int64(4), "daysOfWeek": int64(3), "minutesOfHour": int64(1),
			"secondsOfMinute": int64(1), "millisecondsOfSecond": int64(111),
			"microsecondsOfSecond": int64(111111), "nanosecondsOfSecond": int64(111111111)},
		"PT-23H-59M-59.9S": {"seconds": int64(-86400), "nanosecondsOfSecond": int64(1e8)},
	} {
		v := guess(t, value)
		for name, want := range parts {
			if got, err := v.Component(name); err != nil || got != want {
				t.Errorf("%s of %s is %v, %v, want %v", name, v, got, err, want)
			}
		}
	}
	for value, name := range map[string]string{"2015": "hour", "P1D": "day",
		"PT10000000000S": "nanoseconds"} {
		if v, err := guess(t, value).Component(name); err == nil {
			t.Errorf("%s of %s is %v", name, value, v)
		}
	}
}
