package temporal

import (
	"fmt"
	"math/big"
	"strings"
)

// Add returns a + b: an instant and a duration, in either order, or two durations. Of a duration
// months come first, and the day stays or is the month's last; then days, then seconds. What an
// instant has no place for, such as hours of a date, counts in whole days or not at all.
func Add(a, b Value) (Value, error) {
	if _, ok := b.(Instant); ok {
		a, b = b, a
	}
	d, ok := b.(Duration)
	if !ok {
		return nil, fmt.Errorf("a %s and a %s do not add up: one has to be a duration",
			strings.ToLower(a.Kind()), strings.ToLower(b.Kind()))
	}
	switch a := a.(type) {
	case Instant:
		return a.plus(d)
	case Duration:
		return a.plus(d)
	}
	return nil, fmt.Errorf("%v is no value of time", a)
}

// Sub returns a - b, where b is a duration.
func Sub(a, b Value) (Value, error) {
	d, ok := b.(Duration)
	if !ok {
		return nil, fmt.Errorf("a %s is not subtracted: write duration.between(from, to)",
			strings.ToLower(b.Kind()))
	}
	return Add(a, d.negative())
}

func (d Duration) negative() Duration {
	n := Duration{months: -d.months, days: -d.days, seconds: -d.seconds}
	if d.nanos > 0 {
		n.seconds, n.nanos = n.seconds-1, second-d.nanos
	}
	return n
}

func (d Duration) plus(e Duration) (Value, error) {
	nanos := d.nanos + e.nanos
	return result(Duration{d.months + e.months, d.days + e.days,
		d.seconds + e.seconds + nanos/second, nanos % second}.checked())
}

// result keeps a value that is none out of an interface.
func result[V Value](v V, err error) (Value, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (t Instant) plus(d Duration) (Value, error) {
	out, err := t.moved(d)
	if err == nil {
		err = out.check()
	}
	return result(out, err)
}

// moved adds a duration. In a zone months and days are of its calendar, and seconds are as they
// pass.
func (t Instant) moved(d Duration) (Instant, error) {
	if hasDate(t.kind) {
		t.day = plusMonths(t.day, d.months) + d.days
		if err := t.check(); err != nil {
			return t, err
		}
	}
	switch t.kind {
	case KindDate:
		s := d.seconds
		if s < 0 && d.nanos > 0 {
			s++
		}
		t.day += s / daySeconds
		return t, nil
	case KindDateTime:
		z := t.zoneOf()
		if d.months != 0 || d.days != 0 {
			t = t.local(z, t.offset)
		}
		s, n := t.utc()
		out, err := fromEpoch(s+d.seconds, n+d.nanos)
		return out.in(z), err
	}
	seconds, nanos := t.day*daySeconds+t.nano/second+d.seconds, t.nano%second+d.nanos
	if !hasDate(t.kind) {
		seconds = floorMod(seconds, daySeconds)
	}
	out, err := fromEpoch(seconds, nanos)
	out.kind, out.offset = t.kind, t.offset
	if !hasDate(t.kind) {
		out.day = 0
	}
	return out, err
}

// Mul returns d · by, for an int64 or a float64. Fractions of a month go on into days, of 30.436875
// each, and those of a day into seconds.
func Mul(d Duration, by any) (Value, error) {
	r, err := rational(by)
	if err != nil {
		return nil, err
	}
	return result(d.scaled(r))
}

// Div returns d ÷ by, with fractions as Mul.
func Div(d Duration, by any) (Value, error) {
	r, err := rational(by)
	if err != nil {
		return nil, err
	}
	if r.Sign() == 0 {
		return nil, fmt.Errorf("division of the duration %s by zero", d)
	}
	return result(d.scaled(r.Inv(r)))
}

func (d Duration) scaled(r *big.Rat) (Duration, error) {
	var a amount
	for i, v := range [][2]int64{{d.months, 1}, {d.days, 1}, {d.seconds, second}} {
		a.add(i, v[1], new(big.Rat).SetInt64(v[0]))
	}
	a.add(2, 1, new(big.Rat).SetInt64(d.nanos))
	for i := range a {
		a[i].Mul(&a[i], r)
	}
	return a.duration()
}
