package temporal

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // for machines without files of zones
)

// zone is a time zone: a place, or an offset where place is nil.
type zone struct {
	place  *time.Location
	offset int64 // seconds east of UTC
}

var offsetForm = regexp.MustCompile(`^([+-])(\d\d)(?::?(\d\d)(?::?(\d\d))?)?$`)

// places holds a *time.Location for each name that was met: at most the few hundred that there are.
var places sync.Map

// load returns a place by its name. time.LoadLocation reads a file each time.
func load(name string) (*time.Location, error) {
	if p, ok := places.Load(name); ok {
		return p.(*time.Location), nil
	}
	p, err := time.LoadLocation(name)
	if err == nil {
		places.Store(name, p)
	}
	return p, err
}

// parseZone reads "Europe/Stockholm", "+01:00", "+0100", "+01", "Z" or "", which is UTC.
func parseZone(s string) (zone, error) {
	if s == "" || strings.EqualFold(s, "z") {
		return zone{}, nil
	}
	if m := offsetForm.FindStringSubmatch(s); m != nil {
		h, mi, sec := number(m[2]), number(m[3]), number(m[4])
		at := h*3600 + mi*60 + sec
		if mi > 59 || sec > 59 || at > 18*3600 {
			return zone{}, fmt.Errorf("time zone %q: an offset is at most 18:00", s)
		}
		if m[1] == "-" {
			at = -at
		}
		return zone{offset: at}, nil
	}
	place, err := load(strings.ReplaceAll(s, " ", "_")) // many type a space
	if err != nil || strings.EqualFold(s, "local") {
		return zone{}, fmt.Errorf("no time zone %q: give a name such as 'Europe/Stockholm' or an "+
			"offset such as '+01:00'", s)
	}
	return zone{place: place}, nil
}

// number reads digits; "" is 0, and what does not fit the greatest number.
func number(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64) //nolint:errcheck // only digits come here
	return n
}

func offsetText(offset int64) string {
	if offset == 0 {
		return "Z"
	}
	sign := '+'
	if offset < 0 {
		sign, offset = '-', -offset
	}
	text := fmt.Sprintf("%c%02d:%02d", sign, offset/3600, offset%3600/60)
	if s := offset % 60; s != 0 {
		text += fmt.Sprintf(":%02d", s)
	}
	return text
}

// at returns the offset at an instant in seconds since 1970.
func (z zone) at(seconds int64) int64 {
	if z.place == nil {
		return z.offset
	}
	_, offset := time.Unix(seconds, 0).In(z.place).Zone()
	return int64(offset)
}

// zone returns the zone of a value with one.
func (t Instant) zoneOf() zone {
	if t.zone == "" {
		return zone{offset: t.offset}
	}
	place, err := load(t.zone)
	if err != nil { // it was there when t was made
		return zone{offset: t.offset}
	}
	return zone{place: place}
}

// noOffset is an offset that no zone has.
const noOffset int64 = 1 << 20

// in returns the same instant as a DATETIME of a zone.
func (t Instant) in(z zone) Instant {
	seconds, nanos := t.utc()
	return shown(seconds, nanos, z)
}

// shown returns an instant as clocks of a zone show it.
func shown(seconds, nanos int64, z zone) Instant {
	offset := z.at(seconds)
	day := floorDiv(seconds+offset, daySeconds)
	t := Instant{kind: KindDateTime, day: day, offset: offset,
		nano: (seconds+offset-day*daySeconds)*second + nanos}
	if z.place != nil {
		t.zone = z.place.String()
	}
	return t
}

// local returns the DATETIME at which clocks of a zone show the day and the time of t. Where they
// are set back and show it twice, it is the one with the offset prefer, else the first; where they
// are set forward and do not show it, it is as much later.
func (t Instant) local(z zone, prefer int64) Instant {
	t.offset = 0
	seconds, nanos := t.utc()
	before, after := z.at(seconds-daySeconds), z.at(seconds+daySeconds)
	for _, offset := range []int64{prefer, before, after} {
		if z.at(seconds-offset) == offset {
			before = offset
			break
		}
	}
	return shown(seconds-before, nanos, z)
}
