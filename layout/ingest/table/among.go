package table

import (
	"context"
	"errors"
	"math"

	"gdb/layout/ingest/input"
)

// errSeen ends the reading of a table whose rest is not needed.
var errSeen = errors.New("enough was seen")

// Among tells which of some words stand in a column, in so many rows from the first on or some
// more, and whether those are all rows. Bad lines are passed over: they are reported when the table
// is read.
func (s *Opener) Among(ctx context.Context, t *Table, col int, words []string, rows int) (
	known map[string]bool, all bool, err error) {
	wanted := map[string]bool{}
	for _, w := range words {
		wanted[w] = true
	}
	known, looked := map[string]bool{}, 0
	quiet := *s
	quiet.Bad = BadLines{Max: math.MaxInt64}
	spec := input.Spec{Columns: []input.Column{{Field: col, Kind: input.Text}}}
	err = quiet.Each(ctx, t, Skips, spec, func(b *input.Batch) error {
		for _, v := range b.Columns[0].Texts {
			if wanted[string(v)] {
				known[string(v)] = true
			}
		}
		if looked += b.Rows; looked >= rows {
			return errSeen
		}
		return nil
	})
	if errors.Is(err, errSeen) {
		return known, false, nil
	}
	return known, true, err
}
