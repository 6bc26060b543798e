package listfile

import (
	"context"
	"runtime"
	"sync"

	"gdb/internal/bug"
)

// Placed is a block, and how its lists follow those before it in the file.
type Placed struct {
	Block
	Gap  uint64 // number of nodes without neighbors before it
	Cont bool   // its first list goes on with the last list before it
}

// loadersMost bounds the goroutines that verify and decode blocks: a few keep up with a disk.
const loadersMost = 8

// Loaders returns how many goroutines verify and decode blocks that were read.
func Loaders() int { return min(runtime.NumCPU(), loadersMost) }

// Parts calls work with consecutive parts of [0, n), numbered from 0, on Loaders goroutines, and
// returns when all are done. It returns the error of the first part that has one.
func Parts(n int, work func(part, first, end int) error) error {
	parts := max(1, min(Loaders(), n))
	errs := make([]error, parts)
	var wg sync.WaitGroup
	for p := range parts {
		wg.Go(func() {
			defer bug.Catch()
			errs[p] = work(p, n*p/parts, n*(p+1)/parts)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// EachRun calls fn with all blocks, verified and in order, as many at a time as are read together.
// Loaders goroutines verify them. A run is valid during the call. It takes two read buffers of 4
// MiB, and 300 bytes for each block of one.
func (l *File) EachRun(ctx context.Context, fn func(run []Placed) error) error {
	from, unit := BlockOffset(1, l.BlockBytes), int64(l.BlockBytes)
	var order Order
	var all []Placed
	return l.Stream(ctx, from, BlockOffset(l.Blocks+1, l.BlockBytes), l.BlockBytes,
		func(off int64, data []byte) error {
			first, n := 1+(off-from)/unit, len(data)/int(unit)
			if len(all) < n {
				all = make([]Placed, n)
			}
			run := all[:n]
			err := Parts(n, func(_, begin, end int) error {
				for i := begin; i < end; i++ {
					at := int64(i) * unit
					k, err := l.verified(first+int64(i), data[at:at+unit:at+unit])
					if err != nil {
						return l.Damage(first+int64(i), off+at, "%v", err)
					}
					run[i].Block = k
				}
				return nil
			})
			if err != nil {
				return err
			}
			for i := range run {
				k := &run[i]
				if k.Gap, k.Cont, err = l.place(&k.Block, &order); err != nil {
					return l.Damage(first+int64(i), off+int64(i)*unit, "%v", err)
				}
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			return fn(run)
		})
}
