package temporal

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
)

// Duration is an amount of time: months, days and seconds, none of which has a length in the one
// before. All of it is less than 2^62 seconds, so two add up without overflow.
type Duration struct {
	months, days, seconds int64
	nanos                 int64 // 0..999,999,999, after seconds
}

const (
	monthSeconds = 2_629_746 // a twelfth of 365.2425 days
	maxSeconds   = 1 << 62
)

// Kind returns DURATION.
func (d Duration) Kind() string { return KindDuration }

func (d Duration) checked() (Duration, error) {
	if math.Abs(float64(d.months))*monthSeconds+math.Abs(float64(d.days))*float64(daySeconds)+
		math.Abs(float64(d.seconds)) >= maxSeconds {
		return d, fmt.Errorf("a duration of 2^62 seconds or more does not fit")
	}
	return d, nil
}

// order compares the mean lengths.
func (d Duration) order(e Duration) int {
	length := func(d Duration) int64 {
		return d.months*monthSeconds + d.days*daySeconds + d.seconds
	}
	return cmp.Or(cmp.Compare(length(d), length(e)), cmp.Compare(d.nanos, e.nanos),
		cmp.Compare(d.months, e.months), cmp.Compare(d.days, e.days))
}

// durationUnits are components of durations: how many months, days or nanoseconds each has.
var durationUnits = []struct {
	name, letter string
	part         int // of amount
	times        int64
}{
	{"years", "Y", 0, 12}, {"quarters", "", 0, 3}, {"months", "M", 0, 1}, {"weeks", "W", 1, 7},
	{"days", "D", 1, 1}, {"hours", "H", 2, hour}, {"minutes", "M", 2, minute},
	{"seconds", "S", 2, second}, {"milliseconds", "", 2, 1e6}, {"microseconds", "", 2, 1e3},
	{"nanoseconds", "", 2, 1},
}

// amount is a sum of months, days and nanoseconds with fractions, which are exact.
type amount [3]big.Rat

func (a *amount) add(part int, times int64, v *big.Rat) {
	a[part].Add(&a[part], new(big.Rat).Mul(v, new(big.Rat).SetInt64(times)))
}

// duration carries the fraction of a month into days, of 30.436875 each, and that of a day into
// nanoseconds, and drops that of a nanosecond.
func (a *amount) duration() (Duration, error) {
	months := a.take(0)
	a[1].Add(&a[1], a[0].Mul(&a[0], big.NewRat(monthSeconds, daySeconds)))
	days := a.take(1)
	a[2].Add(&a[2], a[1].Mul(&a[1], new(big.Rat).SetInt64(dayNanos)))
	seconds, nanos := a.take(2), new(big.Int)
	seconds.DivMod(seconds, big.NewInt(second), nanos)
	for _, n := range []*big.Int{months, days, seconds} {
		if !n.IsInt64() {
			return Duration{}, fmt.Errorf("a duration of 2^62 seconds or more does not fit")
		}
	}
	return Duration{months.Int64(), days.Int64(), seconds.Int64(), nanos.Int64()}.checked()
}

// take removes the whole number from a part, and leaves the fraction.
func (a *amount) take(part int) *big.Int {
	whole := new(big.Int).Quo(a[part].Num(), a[part].Denom())
	a[part].Sub(&a[part], new(big.Rat).SetInt(whole))
	return whole
}

// rational returns a number as it is written in decimal.
func rational(v any) (*big.Rat, error) {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v), nil
	case float64:
		if r, ok := new(big.Rat).SetString(strconv.FormatFloat(v, 'g', -1, 64)); ok {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%s is no finite number", quoted(v))
}

func newDuration(from any) (Value, error) {
	var d Duration
	var err error
	switch from := from.(type) {
	case string:
		d, err = parseDuration(from)
	case Duration:
		return from, nil
	case map[string]any:
		d, err = durationOf(from)
	default:
		err = fmt.Errorf("a string or a map is wanted, not %s", quoted(from))
	}
	if err != nil {
		return nil, fmt.Errorf("duration(): %w", err)
	}
	return d, nil
}

func durationOf(m map[string]any) (Duration, error) {
	var a amount
	if len(m) == 0 {
		return Duration{}, fmt.Errorf("give a component, such as {days: 1}")
	}
	var names []string
	for _, u := range durationUnits {
		names = append(names, u.name)
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		i := slices.Index(names, name)
		if i < 0 {
			return Duration{}, unknown("component of a duration", name, names)
		}
		v, err := rational(m[name])
		if err != nil {
			return Duration{}, fmt.Errorf("%s: %w", name, err)
		}
		a.add(durationUnits[i].part, durationUnits[i].times, v)
	}
	return a.duration()
}
