package source

import (
	"strings"

	"gdb/layout/ingest/table"
	"gdb/layout/ingest/text"
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
	switch x, ok := text.ParseFloat([]byte(odd)); {
	case integers > 0 && ok && !HasFraction(x):
		s.note("%s: ids are read as text: %q is not the same node as %q", t.Path, odd,
			strings.TrimSuffix(odd, ".0"))
	case integers > 0:
		s.note("%s: ids are read as text, since %q is not an integer", t.Path, odd)
	}
}

// idKind is what ids are read as.
func (s *parts) idKind() text.Kind {
	if s.info.TextIDs {
		return text.Key
	}
	return text.ID
}

// whereOf locates a batch.
func whereOf(b *text.Batch) Where {
	return Where{File: b.File, First: b.First, Lines: b.Lines, Unit: b.Unit}
}
