package temporal

import (
	"testing"
	"time"
)

var kinds = []string{KindDate, KindLocalTime, KindTime, KindLocalDateTime, KindDateTime,
	KindDuration}

// FuzzParse reads strings as all kinds: what is read is written so that it is read the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"2015-W30-2", "-999999999-01-01", "2015-Q3-21T21:40:32.142",
		"214032,5-01:30", "2015202T21+18:00", "1818-07-21T21:40[Europe/Stockholm]",
		"P12Y5M-14DT16.5H-70S", "-P2012-02-02T14:37:21.545", "P99999999999999Y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, kind := range kinds {
			v, err := New(kind, s, time.Time{})
			if err != nil {
				continue
			}
			if again, err := New(kind, v.String(), time.Time{}); err != nil || again != v {
				t.Errorf("%q is %s, which is read as %v, %v", s, v, again, err)
			}
		}
	})
}

// FuzzArithmetic computes with all kinds of two strings: results are written so that they are read
// the same, and a value moved by the time between it and another is this other.
func FuzzArithmetic(f *testing.F) {
	for _, s := range [][2]string{{"2017-10-28T23:00[Europe/Stockholm]", "2017-10-29T04:00+05"},
		{"2015-01-31T10:00", "P1M1DT25H"}, {"P-1Y0.7DT0.000000001S", "PT4611686018427387903S"},
		{"+999999999-12-31T23:59:59Z", "-999999999-01-01T00:00[America/New_York]"},
		{"2017-03-26", "21:40:32+18:00"}, {"12:00", "2016-02-29"}} {
		f.Add(s[0], s[1], .3)
	}
	f.Fuzz(func(t *testing.T, s, s2 string, by float64) {
		for _, a := range all(s) {
			for _, b := range all(s2) {
				compute(t, a, b, by)
			}
		}
	})
}

// all returns a string as each kind that it may be.
func all(s string) (out []Value) {
	for _, kind := range kinds {
		if v, err := New(kind, s, time.Time{}); err == nil {
			out = append(out, v)
		}
	}
	return out
}

func compute(t *testing.T, a, b Value, by float64) {
	read := func(op string, v Value, err error) {
		if err != nil {
			return
		}
		if again, err := New(v.Kind(), v.String(), time.Time{}); err != nil || again != v {
			t.Errorf("%s of %s and %s, %v: %s is read as %v, %v", op, a, b, by, v, again, err)
		}
	}
	sum, err := Add(a, b)
	read("+", sum, err)
	diff, err := Sub(a, b)
	read("-", diff, err)
	if a.Kind() == b.Kind() && Order(a, b) != -Order(b, a) {
		t.Errorf("%s and %s are in no order", a, b)
	}
	if d, ok := a.(Duration); ok {
		v, err := Mul(d, by)
		read("*", v, err)
		v, err = Div(d, by)
		read("/", v, err)
		return
	}
	for _, kind := range kinds {
		for _, unit := range append(dateUnits, clockUnits...) {
			v, err := Truncate(kind, unit, a, nil)
			read(unit, v, err)
		}
	}
	for _, unit := range []string{"between", "inMonths", "inDays", "inSeconds"} {
		d, err := Between(unit, a, b)
		read(unit, d, err)
		if err != nil || unit != "between" && unit != "inSeconds" || a.Kind() != b.Kind() {
			continue
		}
		moved, err := Add(a, d)
		if k := a.Kind(); k == KindDate || k == KindLocalDateTime || k == KindDateTime {
			if err != nil || !sameInstant(moved.(Instant), b.(Instant)) {
				t.Errorf("%s + %s, the time until %s (%s), is %v, %v", a, d, b, unit, moved, err)
			}
		}
	}
}

func sameInstant(a, b Instant) bool {
	s, n := a.utc()
	s2, n2 := b.utc()
	return s == s2 && n == n2
}
