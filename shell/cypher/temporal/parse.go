package temporal

import (
	"fmt"
	"regexp"
	"strings"
)

const dateHelp = "give '2015-07-21', '2015-W30-2', '2015-Q3-21', '2015-202' or less of them"

var (
	dateForm = regexp.MustCompile(`^([+-]\d{1,9}|\d{4})(?:` +
		`-?W(\d\d)(?:-?(\d))?|` + // 2, 3
		`-?Q(\d)(?:-?(\d\d))?|` + // 4, 5
		`-?(\d{3})|` + // 6
		`-(\d\d)(?:-(\d\d))?|` + // 7, 8
		`(\d\d)(\d\d)?)?$`) // 9, 10
	dateNames = []string{"", "year", "week", "dayOfWeek", "quarter", "dayOfQuarter", "ordinalDay",
		"month", "day", "month", "day"}

	timeForm  = regexp.MustCompile(`^(\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d{1,9}))?)?)?$`)
	timeNames = []string{"", "hour", "minute", "second"}
)

// parse reads an instant: a date, T, a time, an offset and a zone in brackets, of which the kind
// says what there may be. Time and zone of a date may be missing: midnight, and UTC.
func parse(kind, text string) (Instant, error) {
	t := Instant{kind: kind}
	date, clock, hasClock := "", text, true
	if hasDate(kind) {
		date, clock, hasClock = strings.Cut(text, "T")
		day, err := parseDate(date)
		if err != nil {
			return t, err
		}
		t.day = day
	}
	if !hasClock {
		return t.local(zone{}, 0).as(kind), nil
	}
	if !hasTime(kind) {
		return t, fmt.Errorf("%q has a time: write datetime(), or the part before the T", text)
	}
	clock, zoneText := cutZone(clock)
	if zoneText != "" && !hasZone(kind) {
		return t, fmt.Errorf("%q has a time zone: write %s()", text,
			strings.TrimPrefix(function(kind), "local"))
	}
	nano, err := parseTime(clock)
	if err != nil {
		return t, err
	}
	t.nano = nano
	return t.withZone(zoneText)
}

func cutZone(s string) (clock, zone string) {
	if i := strings.IndexAny(s, "Z+-["); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// fieldsOf returns the components that a form has matched.
func fieldsOf(match, names []string) fields {
	f := fields{}
	for i, name := range names {
		if name != "" && match[i] != "" {
			f[name] = number(strings.TrimPrefix(match[i], "+"))
		}
	}
	return f
}

func parseDate(s string) (int64, error) {
	m := dateForm.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is no date: %s", s, dateHelp)
	}
	return fieldsOf(m, dateNames).date(0, false)
}

func parseTime(s string) (int64, error) {
	m := timeForm.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is no time: give '21:40:32.142', '21:40' or '21'", s)
	}
	f := fieldsOf(m, timeNames)
	if m[4] != "" {
		f["nanosecond"] = number((m[4] + "000000000")[:9])
	}
	return f.clock(0, false, 0)
}

// withZone gives a time without a zone the one that stands behind it: an offset, a name in
// brackets, or both, which have to agree.
func (t Instant) withZone(text string) (Instant, error) {
	offsetPart, name, named := strings.Cut(text, "[")
	z, err := parseZone(offsetPart)
	if err != nil {
		return t, err
	}
	if !named {
		if z.place != nil {
			return t, fmt.Errorf("%q is no offset: give '+01:00'", offsetPart)
		}
		return t.local(z, z.offset).as(t.kind), nil
	}
	name, closed := strings.CutSuffix(name, "]")
	if !closed || t.kind == KindTime {
		return t, fmt.Errorf("%q: a name of a zone stands in brackets, and behind a date", text)
	}
	place, err := parseZone(name)
	if err != nil {
		return t, err
	}
	prefer := noOffset
	if offsetPart != "" {
		prefer = z.offset
	}
	out := t.local(place, prefer)
	if offsetPart != "" && out.offset != prefer {
		return t, fmt.Errorf("%s: clocks in %s are at %s then, not %s: leave one of them out", text,
			name, offsetText(out.offset), offsetPart)
	}
	return out, nil
}
