package rowcache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"gdb/internal/mem"
)

// TestTwins: all ways to copy write what plain does and nothing else, whatever the width of rows,
// where they lie, and in which order.
func TestTwins(t *testing.T) {
	const tableRows, most = 300, 200
	random := rand.New(rand.NewPCG(1, 2))
	for dim := 1; dim <= 270; dim += 1 + dim/24 {
		table := aligned(tableRows*dim+3, 0)[3:] // rows begin within lines
		for i := range table {
			table[i] = random.Float32()
		}
		for _, offset := range []int{0, 8, 1} {
			for _, n := range []int{0, 1, 2, 63, most} {
				rows := make([]uint32, n)
				for i := range rows {
					rows[i] = uint32(random.IntN(tableRows))
				}
				apart := []uint32{}
				for _, to := range random.Perm(most)[:n] {
					apart = append(apart, uint32(to))
				}
				for _, to := range [][]uint32{nil, apart, slices.Sorted(slices.Values(apart))} {
					checkTwins(t, table, rows, to, dim, offset, most)
				}
			}
		}
	}
}

// checkTwins compares results of the ways for a small and for a large one.
func checkTwins(t *testing.T, table []float32, rows, to []uint32, dim, offset, most int) {
	t.Helper()
	want := make([]float32, most*dim)
	plain(want, table, dim, rows, to)
	for _, bytes := range []int{0, streamBytes} {
		got := aligned(most*dim, offset)
		CopyRows(got, table, dim, rows, to, bytes)
		if !slices.Equal(got, want) {
			t.Fatalf("dim %d, %d rows, some to %v, offset %d, of %d bytes: wrong", dim, len(rows),
				to[:min(len(to), 4)], offset, bytes)
		}
	}
}

// TestPieces: a result of several pieces is whole.
func TestPieces(t *testing.T) {
	const dim, n = 2048, 130
	table := aligned(n*dim, 0)
	for i := range table {
		table[i] = float32(i)
	}
	rows := make([]uint32, n)
	for i := range rows {
		rows[i] = uint32(n - 1 - i)
	}
	for _, to := range [][]uint32{nil, slices.Clone(rows)} {
		checkTwins(t, table, rows, to, dim, 0, n)
	}
}

func TestOutside(t *testing.T) {
	for _, c := range []struct{ row, to uint32 }{{4, 0}, {1 << 31, 0}, {0, 3}, {0, 1 << 31}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("row %d to %d: copied", c.row, c.to)
				}
			}()
			CopyRows(make([]float32, 3*8), make([]float32, 4*8), 8, []uint32{c.row}, []uint32{c.to},
				0)
		}()
	}
}

// aligned returns n zeros that begin offset floats behind the beginning of a cache line.
func aligned(n, offset int) []float32 {
	b := make([]float32, n+32)
	at := int(-uintptr(unsafe.Pointer(&b[0])) & 63 / 4)
	return b[at+offset:][:n]
}

// BenchmarkRows copies random rows of a table in huge pages, with several numbers of goroutines. It
// then adds up the whole result; sum-ns shows what that costs if the result is not in the caches.
//
//	go test ./sample/rowcache -run '^$' -bench . -count 5
func BenchmarkRows(b *testing.B) {
	for _, dim := range []int{100, 128, 256} {
		for _, n := range []int{10_000, 90_000} {
			for _, threads := range []int{1, 2} {
				benchmarkRows(b, dim, n, threads)
			}
		}
	}
}

func benchmarkRows(b *testing.B, dim, n, threads int) {
	const tableRows = 1 << 20
	var arenas [2]*mem.Arena
	for i, rows := range []int{tableRows, n} {
		var err error
		if arenas[i], err = mem.NewArena(nil, "rows", int64(4*dim*rows)); err != nil {
			b.Fatal(err)
		}
		defer func() { _ = arenas[i].Free() }()
	}
	table, out := mem.View[float32](arenas[0].Bytes()), mem.View[float32](arenas[1].Bytes())
	for i := range table {
		table[i] = 1
	}
	rows := make([]uint32, n)
	for i := range rows {
		rows[i] = rand.Uint32N(tableRows)
	}
	ways := map[string]func(out []float32, rows []uint32){
		"plain":  func(out []float32, rows []uint32) { plain(out, table, dim, rows, nil) },
		"cached": func(out []float32, rows []uint32) { CopyRows(out, table, dim, rows, nil, 0) },
		"streamed": func(out []float32, rows []uint32) {
			CopyRows(out, table, dim, rows, nil, streamBytes)
		},
	}
	for _, way := range []string{"plain", "cached", "streamed"} {
		b.Run(fmt.Sprintf("dim=%d/rows=%d/threads=%d/way=%s", dim, n, threads, way),
			func(b *testing.B) {
				b.SetBytes(int64(len(out) * 4))
				var summing time.Duration
				for b.Loop() {
					var all sync.WaitGroup
					for t := range threads {
						first, end := n*t/threads, n*(t+1)/threads
						all.Go(func() { ways[way](out[first*dim:], rows[first:end]) })
					}
					all.Wait()
					b.StopTimer()
					begun := time.Now()
					if s := sum(out); s != float32(len(out)/8) {
						b.Fatalf("the sum is %g", s)
					}
					summing += time.Since(begun)
					b.StartTimer()
				}
				b.ReportMetric(float64(summing)/float64(b.N), "sum-ns")
			})
	}
}

// sum adds up numbers in eight parts, and returns one of them.
func sum(x []float32) float32 {
	var s [8]float32
	for ; len(x) >= 8; x = x[8:] {
		for i, v := range x[:8] {
			s[i] += v
		}
	}
	return s[0]
}
