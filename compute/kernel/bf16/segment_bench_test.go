package bf16

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gdb/compute/kernel"
	"gdb/internal/mem"
)

// BenchmarkSegments measures sums of rows and their gradients beside those of float32 in turn, by
// the thread's time: 340,000 entries in lists of 10, of 150,000 rows in huge pages.
func BenchmarkSegments(b *testing.B) {
	const lists, entries, rows = 34_000, 340_000, 150_000
	rng := rand.New(rand.NewPCG(1, 2))
	var off, idx []uint32
	for i := range lists + 1 {
		off = append(off, uint32(i*entries/lists))
	}
	for range entries {
		idx = append(idx, uint32(rng.IntN(rows)))
	}
	var back kernel.Transposed
	back.BuildEntries(off, idx, rows)
	p := kernel.NewPool(1)
	for _, d := range []int{128, 256} {
		arena, err := mem.NewArena(nil, "rows", rows*int64(d)*12)
		if err != nil {
			b.Fatal(err)
		}
		bytes, n := arena.Bytes(), rows*d
		xf, out := mem.View[float32](bytes[:4*n]), mem.View[float32](bytes[4*n:8*n])
		x, half := mem.View[Number](bytes[8*n:10*n]), mem.View[Number](bytes[10*n:])
		for i := range xf {
			xf[i] = rng.Float32() - 0.5
		}
		Narrow(nil, x, xf)
		weight := xf[:entries]
		inTurn(b, fmt.Sprintf("kernel=SegmentMean/d=%d", d),
			func() { kernel.SegmentMean(p, out, xf, off, idx, d) },
			func() { SegmentReduce(p, half, x, kernel.Lists{Off: off, Idx: idx, Cols: d}, true) })
		inTurn(b, fmt.Sprintf("kernel=SegmentMeanGrad/d=%d", d),
			func() { back.MeanGrad(p, out, xf, d, rows) },
			func() { SegmentMeanGrad(p, half, x, &back, d, rows) })
		inTurn(b, fmt.Sprintf("kernel=EdgeSum/d=%d", d),
			func() {
				kernel.EdgeSum(p, out, xf, weight, kernel.Lists{Off: off, Idx: idx, Heads: 1,
					Cols: d}, false)
			},
			func() {
				WeightedHeads(p, half, x, weight, kernel.Lists{Off: off, Idx: idx, Heads: 1,
					Cols: d}, false)
			})
		dw := make([]float32, 4*entries)
		for _, shared := range []bool{false, true} {
			at := 64
			heads := d / at
			if shared {
				heads, at = 4, d
				if d > 128 {
					break // rows of sums do not fit beside
				}
			}
			name := fmt.Sprintf("d=%dx%d/shared=%v", heads, at, shared)
			w := xf[:heads*entries]
			inTurn(b, "kernel=EdgeDot/"+name,
				func() {
					kernel.EdgeDot(p, dw, out, xf, kernel.Lists{Off: off, Idx: idx, Heads: heads,
						Cols: at, Shared: shared})
				},
				func() {
					EdgeDot(p, dw, half[:lists*heads*at], x, kernel.Lists{Off: off, Idx: idx,
						Heads: heads, Cols: at, Shared: shared})
				})
			inTurn(b, "kernel=WeightedHeads/"+name,
				func() {
					kernel.EdgeSum(p, out, xf, w, kernel.Lists{Off: off, Idx: idx, Heads: heads,
						Cols: at, Shared: shared}, false)
				},
				func() {
					WeightedHeads(p, half, x, w, kernel.Lists{Off: off, Idx: idx, Heads: heads,
						Cols: at, Shared: shared}, false)
				})
			inTurn(b, "kernel=WeightedHeadsGrad/"+name, func() {
				if shared {
					back.EdgeSumSharedGrad(p, out, xf, w, kernel.RowGrad{Heads: heads, Cols: at,
						Fresh: rows})
				} else {
					back.EdgeSumGrad(p, out, xf, w, kernel.RowGrad{Heads: heads, Cols: at,
						Fresh: rows})
				}
			}, func() {
				WeightedHeadsGrad(p, out, x, w, &back, kernel.RowGrad{Heads: heads, Cols: at,
					Shared: shared, Fresh: rows})
			})
		}
		inTurn(b, fmt.Sprintf("kernel=SegmentMax/d=%d", d),
			func() {
				kernel.SegmentMax(p, out, xf, nil, kernel.Lists{Off: off, Idx: idx,
					Cols: d})
			},
			func() { SegmentMax(p, half, x, nil, kernel.Lists{Off: off, Idx: idx, Cols: d}) })
		if err := arena.Free(); err != nil {
			b.Fatal(err)
		}
	}
}

// inTurn reports the medians of what two take of the thread's time.
func inTurn(b *testing.B, name string, floats, numbers func()) {
	b.Run(name, func(b *testing.B) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var times [2][]time.Duration
		for b.Loop() {
			for i, fn := range []func(){floats, numbers} {
				begin := threadTime(b)
				fn()
				times[i] = append(times[i], threadTime(b)-begin)
			}
		}
		var middle [2]float64
		for i, all := range times {
			slices.Sort(all)
			middle[i] = all[len(all)/2].Seconds() * 1e3
		}
		b.ReportMetric(middle[0], "f32-ms")
		b.ReportMetric(middle[1], "bf16-ms")
		b.ReportMetric(middle[0]/middle[1], "ratio")
	})
}

func threadTime(b *testing.B) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ts.Nano())
}
