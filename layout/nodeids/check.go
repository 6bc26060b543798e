package nodeids

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/rng"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
)

// Check returns what is wrong with the ids in the column at a path, or "" if nothing is or if it
// has no ids of nodes in their order: ids that are negative or do not ascend where they must, and
// ids that do not lead back to their rows. Two sums of hashes of ids and rows are compared, so that
// it takes one pass. The blocks of each column are checked as those of others are.
func Check(ctx context.Context, s *layout.Store, dev blockdev.Device, path string) (string,
	error) {
	for _, t := range s.Meta().NodeTypes {
		k := t.Keys
		if k == nil || k.Rows == nil || k.Rows.Path != path {
			continue
		}
		sum, what, err := sumOf(ctx, s, dev, k.Rows, nil, k.Sorted == nil)
		if err != nil || what != "" || k.Sorted == nil {
			return what, err
		}
		back, what, err := sumOf(ctx, s, dev, k.Sorted, k.Places, true)
		if err == nil && what == "" && back != sum {
			what = fmt.Sprintf("its ids are not those that %s and %s lead back from",
				k.Sorted.Path, k.Places.Path)
		}
		return what, err
	}
	return "", nil
}

// checkRows is how many ids are looked at together.
const checkRows = 1 << 16

// sumOf returns the sum of a hash of (id, row) over a column of ids, where the rows are in another
// column, or, if places is nil, those of the column itself; and what is wrong with the ids.
func sumOf(ctx context.Context, s *layout.Store, dev blockdev.Device, of, places *kv.TableColumn,
	ascend bool) (sum uint64, what string, err error) {
	ids, err := columnfile.Open(ctx, s, dev, *of, nil)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, ids.Close()) }()
	var rows *columnfile.Reader
	if places != nil {
		if rows, err = columnfile.Open(ctx, s, dev, *places, nil); err != nil {
			return 0, "", err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
	}
	least := int64(0) // that the next id may be
	var at []int64
	for first := uint64(0); first < of.Rows && err == nil && what == ""; first += checkRows {
		n := min(checkRows, of.Rows-first)
		if at = at[:0]; rows != nil {
			err = rows.Scan(ctx, first, n, nil, func(_ uint64, v *columnfile.Values) error {
				at = append(at, v.Ints...)
				return nil
			})
			if err != nil {
				return 0, "", err
			}
		}
		err = ids.Scan(ctx, first, n, nil, func(from uint64, v *columnfile.Values) error {
			for i, id := range v.Ints {
				row := from + uint64(i)
				if id < least {
					what = fmt.Sprintf("the id %d of row %d does not come after those before it",
						id, row)
				}
				if ascend {
					least = id + 1
				}
				if rows != nil {
					row = uint64(at[row-first])
				}
				sum += rng.Sub(uint64(id), row)
			}
			return nil
		})
	}
	return sum, what, err
}
