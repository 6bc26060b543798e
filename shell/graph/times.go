package graph

import (
	"math"
	"time"

	"gdb/kv"
	"gdb/layout/ingest/input"
)

// ParseTime reads a date, and a time of day if there is one, as ingest does: seconds since 1970.
func ParseTime(s string) (seconds int64, ok bool) { return input.ParseTime([]byte(s)) }

// Time is the time of an edge as the source wrote it: a number, or a date. It may be a mean of
// times.
func (g *Graph) Time(t float64) any { return timeOf(g.Meta().Times, t) }

// TimeOf is the time of one edge.
func (g *Graph) TimeOf(t int64) any {
	if g.Meta().Times == kv.TimeNumber {
		return t
	}
	return timeOf(g.Meta().Times, float64(t))
}

// The years that a date is written for.
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
