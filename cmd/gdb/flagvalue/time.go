package flagvalue

import (
	"fmt"
	"strconv"
	"time"

	"gdb/layout/ingest/input"
)

// Time is a time of edges that may be left out, as ingest reads them.
type Time struct{ To **int64 }

// String is what was given.
func (t *Time) String() string {
	if t.To == nil || *t.To == nil {
		return ""
	}
	return strconv.FormatInt(**t.To, 10)
}

// Set takes an integer, or what ingest takes for a time.
func (t *Time) Set(s string) error {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		var ok bool
		if v, ok = input.ParseTime([]byte(s)); !ok {
			return fmt.Errorf("%q is no time: give an integer as it was ingested, or a date such "+
				"as 2024-05-31 or 2024-05-31T12:00:00Z", s)
		}
	}
	*t.To = &v
	return nil
}

// Type is shown in help.
func (t *Time) Type() string { return "time" }

// FormatTime shows a time of edges, and when that is if it is in seconds since 1970.
func FormatTime(t int64) string {
	at := time.Unix(t, 0).UTC()
	if y := at.Year(); y < 1 || y > 9999 {
		return strconv.FormatInt(t, 10)
	}
	return fmt.Sprintf("%d (%s)", t, at.Format(time.RFC3339))
}
