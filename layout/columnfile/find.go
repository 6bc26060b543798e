package columnfile

import (
	"context"
	"sort"
)

// Find returns the row of a value, and whether there is one, in a column of integers that ascend
// and are never null. It takes O(log rows): a page of 4 KiB for each halving of the pages, and a
// block.
func (r *Reader) Find(ctx context.Context, value int64) (row uint64, found bool, err error) {
	rows := [1]int64{}
	err = r.FindMany(ctx, []int64{value}, rows[:])
	return uint64(rows[0]), err == nil && rows[0] >= 0, err
}

// FindMany sets rows[i] to the row of values[i], or to -1 if there is none, in a column of integers
// that ascend and are never null. The values ascend too, and may repeat: each block is read once.
func (r *Reader) FindMany(ctx context.Context, values, rows []int64) error {
	pages, block := pageReader{r: r, loaded: -1}, 0
	for at := 0; at < len(values); {
		var err error
		if block, err = pages.reaching(ctx, block, keyOfInt(values[at])); err != nil {
			return err
		}
		first := uint64(block) * uint64(r.BlockRows)
		if first >= r.Rows {
			for ; at < len(values); at++ {
				rows[at] = -1
			}
			break
		}
		err = r.Scan(ctx, first, min(uint64(r.BlockRows), r.Rows-first), nil,
			func(from uint64, v *Values) error {
				at += findIn(int64(from), v.Ints, values[at:], rows[at:])
				return nil
			})
		if err != nil {
			return err
		}
		block++
	}
	return nil
}

// reaching returns the first block, from one on, whose greatest value has a key of at least key;
// the number of blocks if there is none. Blocks that are near are found by few steps.
func (p *pageReader) reaching(ctx context.Context, from int, key uint64) (block int, err error) {
	reaches := func(block int) bool {
		x, failed := p.entry(ctx, uint64(block)+1)
		if failed != nil {
			err = failed
			return true
		}
		return x.greatest >= key
	}
	blocks, end := int(p.r.blocks()), from
	for step := 1; end < blocks && !reaches(end); step *= 2 {
		from, end = end+1, end+step
	}
	end = min(end, blocks)
	return from + sort.Search(end-from, func(i int) bool { return reaches(from + i) }), err
}

// findIn finds values that are at most the last of some that follow each other from a row on, and
// returns how many these are.
func findIn(row int64, of, values, rows []int64) (n int) {
	for n = 0; n < len(values) && len(of) > 0 && values[n] <= of[len(of)-1]; n++ {
		i := sort.Search(len(of), func(i int) bool { return of[i] >= values[n] })
		row, of, rows[n] = row+int64(i), of[i:], -1
		if of[0] == values[n] {
			rows[n] = row
		}
	}
	return n
}
