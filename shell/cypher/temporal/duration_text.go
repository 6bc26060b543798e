package temporal

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

var (
	durationForm = regexp.MustCompile(strings.ReplaceAll(
		`^([+-]?)P(?:#Y)?(?:#M)?(?:#W)?(?:#D)?(T(?:#H)?(?:#M)?(?:#S)?)?$`, "#",
		`([+-]?\d{1,20}(?:[.,]\d{1,20})?)`))
	durationNames = []string{"", "", "years", "months", "weeks", "days", "", "hours", "minutes",
		"seconds"}
	// A duration may be written as the date and the time that it is after year 0.
	dateDurationForm = regexp.MustCompile(
		`^([+-]?)P(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d):?(\d\d(?:[.,]\d{1,9})?))?$`)
	dateDurationNames = []string{"", "", "years", "months", "days", "hours", "minutes", "seconds"}
)

func parseDuration(s string) (Duration, error) {
	m, names := durationForm.FindStringSubmatch(s), durationNames
	if m == nil {
		m, names = dateDurationForm.FindStringSubmatch(s), dateDurationNames
	}
	if m == nil || strings.HasSuffix(s, "P") || strings.HasSuffix(s, "T") {
		return Duration{}, fmt.Errorf("%q is no duration: give 'P1Y2M10DT2H30M5.5S' or less of it",
			s)
	}
	var a amount
	for _, u := range durationUnits {
		for i, name := range names {
			if name != u.name || m[i] == "" {
				continue
			}
			v, ok := new(big.Rat).SetString(m[1] + "1")
			n, ok2 := new(big.Rat).SetString(strings.Replace(m[i], ",", ".", 1))
			if !ok || !ok2 {
				return Duration{}, fmt.Errorf("%q is no number", m[i])
			}
			a.add(u.part, u.times, v.Mul(v, n))
		}
	}
	return a.duration()
}

// String returns the duration in ISO 8601, each part with its sign: "P1Y-14DT16H".
func (d Duration) String() string {
	b := []byte("P")
	part := func(n int64, letter byte) {
		if n != 0 {
			b = append(strconv.AppendInt(b, n, 10), letter)
		}
	}
	part(d.months/12, 'Y')
	part(d.months%12, 'M')
	part(d.days, 'D')
	s, nanos := d.seconds, d.nanos
	if s < 0 && nanos > 0 { // towards zero, so that both have a sign
		s, nanos = s+1, nanos-second
	}
	if s != 0 || nanos != 0 {
		b = append(b, 'T')
	}
	part(s/3600, 'H')
	part(s%3600/60, 'M')
	if s %= 60; s != 0 || nanos != 0 {
		if s < 0 || nanos < 0 {
			b, s, nanos = append(b, '-'), -s, -nanos
		}
		b = append(strconv.AppendInt(b, s, 10), fraction(nanos)...)
		b = append(b, 'S')
	}
	if len(b) == 1 {
		return "PT0S"
	}
	return string(b)
}
