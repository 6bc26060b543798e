package bench

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"gdb/compute/kernel"
	"gdb/internal/mem"
)

// GatherOptions configure the benchmark of aggregation: means of random rows.
type GatherOptions struct {
	// Dims lists the widths of rows. Default 128 and 256.
	Dims []int
	// Threads lists the numbers of workers. Default 1, and 2 if there are two cores.
	Threads []int
	// TableBytes is the size of the table that rows are taken from. Default 2 GiB.
	TableBytes int64
	// Rows is how many random rows each mean is of. Default 10.
	Rows int
	// Rounds is how many times each is measured; the best counts. Default 7.
	Rounds int
	// Budget counts the memory; nil for none.
	Budget *mem.Budget
}

func (o *GatherOptions) setDefaults() {
	if len(o.Dims) == 0 {
		o.Dims = []int{128, 256}
	}
	if len(o.Threads) == 0 {
		o.Threads = []int{1, 2}[:min(2, runtime.NumCPU())]
	}
	o.TableBytes = cmp.Or(o.TableBytes, 2<<30)
	o.Rows = cmp.Or(o.Rows, 10)
	o.Rounds = cmp.Or(o.Rounds, 7)
}

// gatherSegments is how many means one measurement makes: some tenths of a second.
const gatherSegments = 40_000

// Gather measures the means of random rows of a table far larger than the caches, in huge pages:
// bytes of rows read and of means written, by second and core.
// One thread is timed by its CPU time, more by the clock.
func Gather(ctx context.Context, opt GatherOptions) (*Report, error) {
	opt.setDefaults()
	if least := int64(4 * slices.Max(opt.Dims)); opt.TableBytes < least {
		return nil, optionErrorf("bench: gather: --table %d B: want at least a row of %d",
			opt.TableBytes,
			least)
	}
	level, err := kernel.Chosen()
	if err != nil {
		return nil, err
	}
	arena, err := mem.NewArena(opt.Budget, "table of bench gather", opt.TableBytes)
	if err != nil {
		return nil, err
	}
	defer func() { _ = arena.Free() }()
	table := mem.View[float32](arena.Bytes())
	for i := range table {
		table[i] = float32(i & 1023)
	}
	r := newReport("gather", "dim", "threads", "bytes_per_s_per_core", "rows_per_s_per_core",
		"level")
	for _, dim := range opt.Dims {
		for _, threads := range opt.Threads {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			row := gatherRow(table, dim, threads, opt)
			row["level"] = level.String()
			r.Rows = append(r.Rows, row)
		}
	}
	return r, nil
}

// gatherRow measures one width.
func gatherRow(table []float32, dim, threads int, opt GatherOptions) Row {
	rows, rng := len(table)/dim, rand.New(rand.NewPCG(uint64(dim), uint64(threads)))
	off, idx := make([]uint32, gatherSegments+1), make([]uint32, gatherSegments*opt.Rows)
	for i := range off {
		off[i] = uint32(i * opt.Rows)
	}
	for i := range idx {
		idx[i] = uint32(rng.IntN(max(rows, 1)))
	}
	out := make([]float32, gatherSegments*dim)
	pool := kernel.NewPool(threads)
	defer pool.Close()
	clock, done := clockOf(threads)
	defer done()
	best := math.Inf(1)
	for range opt.Rounds {
		begin := clock()
		kernel.SegmentMean(pool, out, table, off, idx, dim)
		best = min(best, (clock() - begin).Seconds())
	}
	perCore := 1 / (best * float64(threads))
	return Row{"dim": dim, "threads": threads,
		"bytes_per_s_per_core": perCore * float64(4*dim*(len(idx)+gatherSegments)),
		"rows_per_s_per_core":  perCore * float64(len(idx))}
}
