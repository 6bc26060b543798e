package columnfile

import (
	"context"
	"slices"
	"sort"
)

// Find returns the row of a value, and whether there is one, in a column of integers that ascend
// and are never null. It takes O(log rows): a page of 4 KiB for each halving of the pages, and a
// block.
func (r *Reader) Find(ctx context.Context, value int64) (row uint64, found bool, err error) {
	key, pages := keyOfInt(value), pageReader{r: r, loaded: -1}
	at := sort.Search(int(r.blocks()), func(i int) bool {
		x, failed := pages.entry(ctx, uint64(i)+1)
		if failed != nil {
			err = failed
			return true
		}
		return x.greatest >= key
	})
	first := uint64(at) * uint64(r.BlockRows)
	if err != nil || first >= r.Rows {
		return 0, false, err
	}
	err = r.Scan(ctx, first, min(uint64(r.BlockRows), r.Rows-first), nil,
		func(from uint64, v *Values) error {
			if i, has := slices.BinarySearch(v.Ints, value); has {
				row, found = from+uint64(i), true
			}
			return nil
		})
	return row, found, err
}
