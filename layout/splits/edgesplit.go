package splits

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gdb/layout/edgefile"
	"gdb/layout/ingest/input"
)

// EdgeTimes decides by its time which split an edge is in: train has the edges before the first of
// these times and those without one, val has others before the second, and test the rest. So what
// is tested came after all that is learned.
type EdgeTimes [2]int64

// timesPrefix begins the text of EdgeTimes.
const timesPrefix = "time="

// EdgeSplit is how edges are put in splits: by a draw, by their times or, if both are nil, as the
// source has it.
type EdgeSplit struct {
	Draw  *EdgeDraw
	Times *EdgeTimes
}

// ParseEdgeSplit reads what EdgeTimes or EdgeDraw are of. timed says that edges have times.
func ParseEdgeSplit(text string, seed uint64, timed bool) (s EdgeSplit, err error) {
	if !AreEdgeTimes(text) {
		shares, err := ParseEdgeShares(text)
		if err != nil {
			return s, fmt.Errorf("%w; or time=VAL,TEST", err)
		}
		return EdgeSplit{Draw: NewEdgeDraw(shares, seed)}, nil
	}
	times, err := ParseEdgeTimes(text)
	if err == nil && !timed {
		err = errors.New("the edges have no times: name their column with --time-col")
	}
	return EdgeSplit{Times: &times}, err
}

// Names returns the splits that edges are put in; nil if the source says it.
func (s *EdgeSplit) Names() []string {
	switch {
	case s.Draw != nil:
		return s.Draw.Names()
	case s.Times != nil:
		return edgefile.Splits
	}
	return nil
}

// AreEdgeTimes reports whether a text says that edges are in splits by their times.
func AreEdgeTimes(text string) bool { return strings.HasPrefix(text, timesPrefix) }

// ParseEdgeTimes reads "time=2024-01-01,2024-06-01". A time is an integer as edges have them, or a
// date, with a time of day or without.
func ParseEdgeTimes(text string) (t EdgeTimes, err error) {
	list, _ := strings.CutPrefix(text, timesPrefix)
	words := strings.Split(list, ",")
	if len(words) != len(t) {
		return t, fmt.Errorf("split %q: want time=VAL,TEST, the times at which val and test "+
			"begin, such as time=2024-01-01,2024-06-01", text)
	}
	for i, word := range words {
		if t[i], err = strconv.ParseInt(word, 10, 64); err == nil {
			continue
		}
		var ok bool
		if t[i], ok = input.ParseTime([]byte(word)); !ok {
			return t, fmt.Errorf("split %q: %q is no time: give an integer as it is in the edges, "+
				"or a date such as 2024-05-31 or 2024-05-31T12:00:00Z", text, word)
		}
	}
	if t[0] >= t[1] {
		return t, fmt.Errorf("split %q: test begins at %s, which is not after val: give the "+
			"earlier time first", text, words[1])
	}
	return t, nil
}

// Split returns the place in edgefile.Splits of the split of an edge of a time.
func (t *EdgeTimes) Split(time int64) int {
	for i, end := range t {
		if time < end { // as is kv.NoTime
			return i
		}
	}
	return len(edgefile.Splits) - 1
}
