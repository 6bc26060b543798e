package graph

import (
	"math"
	"time"

	"gdb/kv"
	"gdb/layout/ingest/input"
)

// ParseTime reads a date, with or without a time of day, as ingest does. It returns seconds since
// 1970.
func ParseTime(s string) (seconds int64, ok bool) { return input.ParseTime([]byte(s)) }

// Time returns the time of an edge as the source wrote it: a number, or a date. The time may also
// be a mean of times.
func (g *Graph) Time(t float64) any { return timeOf(g.Meta().Times, t) }

// TimeOf returns the time of one edge as the source wrote it.
func (g *Graph) TimeOf(t int64) any {
	if g.Meta().Times == kv.TimeNumber {
		return t
	}
	return timeOf(g.Meta().Times, float64(t))
}

// The years for which times are written as dates.
const (
	yearFirst = 0
	yearLast  = 9999
)

func timeOf(form kv.TimeForm, t float64) any {
	at := time.Unix(int64(math.Floor(t)), 0).UTC()
	switch y := at.Year(); {
	case form == kv.TimeNumber || y < yearFirst || y > yearLast:
		return t
	case form == kv.TimeDate && at.Equal(at.Truncate(24*time.Hour)):
		return at.Format(time.DateOnly)
	}
	return at.Format(time.RFC3339)
}
