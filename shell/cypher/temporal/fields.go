package temporal

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fields are the numbers of a map of components, by name.
type fields map[string]int64

var (
	dateFields = []string{"year", "month", "day", "week", "dayOfWeek", "quarter", "dayOfQuarter",
		"ordinalDay"}
	clockFields = []string{"hour", "minute", "second", "millisecond", "microsecond", "nanosecond"}
	dateGroups  = [][]string{{"month", "day"}, {"week", "dayOfWeek"}, {"quarter", "dayOfQuarter"},
		{"ordinalDay"}}
)

// selection is what a map of components has beside numbers.
type selection struct {
	date, time *Instant
	zone       *string
}

// readFields sorts a map of components for a kind. Names that it does not have are errors.
func readFields(kind string, m map[string]any) (fields, selection, error) {
	f, s := fields{}, selection{}
	var names []string
	if hasDate(kind) {
		names = append(names, append(dateFields, "date")...)
	}
	if hasTime(kind) {
		names = append(names, append(clockFields, "time")...)
	}
	if hasDate(kind) && hasTime(kind) {
		names = append(names, "datetime")
	}
	if hasZone(kind) {
		names = append(names, "timezone")
	}
	if kind == KindDateTime {
		names = append(names, "epochSeconds", "epochMillis")
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(names, name) {
			return nil, s, unknown("component of a "+strings.ToLower(kind), name, names)
		}
		if err := s.take(f, name, m[name]); err != nil {
			return nil, s, err
		}
	}
	return f, s, nil
}

func (s *selection) take(f fields, name string, v any) error {
	switch v := v.(type) {
	case int64:
		if !slices.Contains([]string{"date", "time", "datetime", "timezone"}, name) {
			f[name] = v
			return nil
		}
	case string:
		if name == "timezone" {
			s.zone = &v
			return nil
		}
	case Instant:
		isDate, isTime := name != "time", name != "date"
		if (name == "date" || name == "time" || name == "datetime") &&
			(!isDate || hasDate(v.kind)) && (!isTime || hasTime(v.kind)) {
			if isDate {
				s.date = &v
			}
			if isTime {
				s.time = &v
			}
			return nil
		}
	}
	want := "an integer"
	switch name {
	case "timezone":
		want = "a string such as 'Europe/Stockholm' or '+01:00'"
	case "date", "time", "datetime":
		want = "a value with a " + name + ", as " + name + "('…') gives"
	}
	return fmt.Errorf("%s is %s, not %s", name, want, quoted(v))
}

// fromFields makes an instant of a map of components. What is selected from other values comes
// first, then numbers replace parts of it; a zone moves a selected time that had one, so that it is
// the same instant, and is the zone of what had none.
func fromFields(kind string, m map[string]any) (Instant, error) {
	t := Instant{kind: kind}
	f, s, err := readFields(kind, m)
	if err != nil {
		return t, err
	}
	z := zone{}
	if s.zone != nil {
		if z, err = t.zoneFor(*s.zone); err != nil {
			return t, err
		}
	}
	if f.has("epochSeconds", "epochMillis") {
		return f.epoch(s, z)
	}
	if s.date != nil {
		t.day = s.date.day
	}
	if hasDate(kind) {
		if t.day, err = f.date(t.day, s.date != nil); err != nil {
			return t, err
		}
	}
	if s.time != nil {
		t.nano = s.time.nano
	} else if !hasDate(kind) && !f.has("hour") {
		return t, fmt.Errorf("give hour, or a time")
	}
	if t.nano, err = f.clock(t.nano, s.time != nil, 0); err != nil {
		return t, err
	}
	return t.inZone(s, z), nil
}

// inZone puts a local time into the zone that a map of components has, or else its time.
func (t Instant) inZone(s selection, z zone) Instant {
	if !hasZone(t.kind) {
		return t
	}
	if s.time == nil || !hasZone(s.time.kind) {
		return t.local(z, noOffset).as(t.kind)
	}
	own := s.time.zoneOf()
	if t.kind == KindTime {
		own = zone{offset: s.time.offset}
	}
	out := t.local(own, s.time.offset)
	if s.zone != nil {
		out = out.in(z)
	}
	return out.as(t.kind)
}

func (t Instant) zoneFor(text string) (zone, error) {
	z, err := parseZone(text)
	if err == nil && z.place != nil && t.kind == KindTime {
		err = fmt.Errorf("a time has no date by which %s has an offset: give an offset such as "+
			"'+01:00', or write datetime()", text)
	}
	return z, err
}

func (f fields) has(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { _, ok := f[n]; return ok })
}

// or returns a component, or what it is by default.
func (f fields) or(name string, def int64) int64 {
	if v, ok := f[name]; ok {
		return v
	}
	return def
}

func (f fields) epoch(s selection, z zone) (Instant, error) {
	least, nanos := int64(1), f["nanosecond"]
	seconds := f["epochSeconds"]
	if f.has("epochMillis") {
		seconds, least = floorDiv(f["epochMillis"], 1000), 1000
	}
	if len(f) > 2 || len(f) == 2 && !f.has("nanosecond") || s.date != nil || s.time != nil {
		return Instant{}, fmt.Errorf("beside epochSeconds or epochMillis stand nanosecond and " +
			"timezone alone")
	}
	if err := within("nanosecond", nanos, 0, second/least-1); err != nil {
		return Instant{}, err
	}
	t, err := fromEpoch(seconds, nanos+floorMod(f["epochMillis"], 1000)*1e6)
	if err != nil {
		return t, err
	}
	return t.in(z), nil
}

// date returns the day that components name, beside what is known of it before, if anything is.
func (f fields) date(base int64, known bool) (int64, error) {
	var groups []string
	for _, g := range dateGroups {
		if f.has(g...) {
			groups = append(groups, g...)
		}
	}
	if err := f.checkDate(groups, known); err != nil {
		return 0, err
	}
	year, month, dom := civil(base)
	if !known {
		month, dom = 1, 1
	}
	year = f.or("year", year)
	switch {
	case f.has("week", "dayOfWeek"):
		return f.weekDate(base, known)
	case f.has("quarter", "dayOfQuarter"):
		return f.quarterDate(base, year, known)
	case f.has("ordinalDay"):
		v := f["ordinalDay"]
		return epochDay(year, 1, v), within("ordinalDay", v, 1, yearDays(year))
	}
	month = f.or("month", month)
	if err := within("month", month, 1, 12); err != nil {
		return 0, err
	}
	d := f.or("day", min(dom, monthDays(year, month)))
	return epochDay(year, month, d), within("day", d, 1, monthDays(year, month))
}

func (f fields) checkDate(groups []string, known bool) error {
	if len(groups) > 2 {
		return fmt.Errorf("components of %s contradict each other: give those of one",
			strings.Join(groups, ", "))
	}
	if !known {
		for _, need := range [][2]string{{"day", "month"}, {"dayOfWeek", "week"},
			{"dayOfQuarter", "quarter"}, {"", "year"}} {
			if (need[0] == "" || f.has(need[0])) && !f.has(need[1]) {
				return fmt.Errorf("%s is missing", need[1])
			}
		}
	}
	return within("year", f["year"], -maxYear, maxYear)
}

func (f fields) weekDate(base int64, known bool) (int64, error) {
	year, w := week(base)
	weekday := weekDay(base)
	if !known {
		weekday = 1
	}
	year, w, weekday = f.or("year", year), f.or("week", w), f.or("dayOfWeek", weekday)
	if err := within("week", w, 1, weeks(year)); err != nil {
		return 0, err
	}
	return weekOne(year) + (w-1)*7 + weekday - 1, within("dayOfWeek", weekday, 1, 7)
}

// quarterDate keeps the month of the quarter and its day, unless dayOfQuarter is given.
func (f fields) quarterDate(base, year int64, known bool) (int64, error) {
	_, month, dom := civil(base)
	if !known {
		month, dom = 1, 1
	}
	q := f.or("quarter", (month+2)/3)
	if err := within("quarter", q, 1, 4); err != nil {
		return 0, err
	}
	first := epochDay(year, q*3-2, 1)
	if v, ok := f["dayOfQuarter"]; ok {
		return first + v - 1, within("dayOfQuarter", v, 1, plusMonths(first, 3)-first)
	}
	month = q*3 - 2 + (month-1)%3
	return epochDay(year, month, min(dom, monthDays(year, month))), nil
}

// clock returns the nanoseconds since midnight that components name, beside what is known before. A
// part of a second replaces all of it; or, where base is a multiple of grain nanoseconds and grain
// is not 0, is less than grain and is added.
func (f fields) clock(base int64, known bool, grain int64) (int64, error) {
	for i, name := range clockFields[1:] {
		if !known && f.has(name) && !f.has(clockFields[min(i, 2)]) {
			return 0, fmt.Errorf("%s is missing", clockFields[min(i, 2)])
		}
	}
	h, m, s := f.or("hour", base/hour), f.or("minute", base%hour/minute),
		f.or("second", base%minute/second)
	part := base % second
	if f.has(clockFields[3:]...) {
		sub, err := f.subsecond()
		if err != nil {
			return 0, err
		}
		if grain == 0 {
			part = 0
		} else if err := within("nanoseconds below the unit", sub, 0, grain-1); err != nil {
			return 0, err
		}
		part += sub
	}
	for _, err := range []error{within("hour", h, 0, 23), within("minute", m, 0, 59),
		within("second", s, 0, 59)} {
		if err != nil {
			return 0, err
		}
	}
	return h*hour + m*minute + s*second + part, nil
}

// subsecond adds milliseconds, microseconds and nanoseconds, of which each ends where the next
// begins.
func (f fields) subsecond() (int64, error) {
	total, limit := int64(0), second
	for i, name := range clockFields[3:] {
		unit := []int64{1e6, 1e3, 1}[i]
		v, ok := f[name]
		if !ok {
			continue
		}
		if err := within(name, v, 0, limit/unit-1); err != nil {
			return 0, err
		}
		total, limit = total+v*unit, unit
	}
	return total, nil
}
