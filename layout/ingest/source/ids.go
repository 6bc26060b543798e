package source

import (
	"math"
	"strconv"
	"strings"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"
)

// guessIDs takes the ids of some columns for text if one of them is no integer, and tells which if
// others are. A few among many integers are bad lines where those may be skipped.
func (s *parts) guessIDs(t *table.Table, columns ...int) {
	integers, others, odd := 0, 0, ""
	for _, r := range t.Sample {
		for _, col := range columns {
			switch {
			case r[col] == "": // an error when it is read, whatever the others are
			case table.IsInteger(r[col]):
				integers++
			case odd == "":
				odd = r[col]
				fallthrough
			default:
				others++
			}
		}
	}
	if others == 0 || int64(others) <= s.opt.SkipBad && others < integers/2 {
		return
	}
	s.info.TextIDs = true
	switch same := sameNumber(odd); {
	case integers > 0 && same != "":
		s.note("%s: ids are read as text: %q is not the same node as %q", t.Path, odd, same)
	case integers > 0:
		s.note("%s: ids are read as text, since %q is not an integer of 64 bits", t.Path, odd)
	}
}

// sameNumber is an integer as it is written where something else is the same number: 7 for 007 and
// 7.0; "" if there is none.
func sameNumber(id string) string {
	digits := strings.TrimLeft(id, "0")
	if digits == "" && id != "" {
		digits = "0"
	}
	if x, err := strconv.ParseFloat(id, 64); !table.IsInteger(digits) && err == nil &&
		x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		digits = strconv.FormatInt(int64(x), 10)
	}
	if digits == id || !table.IsInteger(digits) {
		return ""
	}
	return digits
}

// idKind is what ids are read as.
func (s *parts) idKind() input.Kind {
	if s.info.TextIDs {
		return input.Key
	}
	return input.ID
}
