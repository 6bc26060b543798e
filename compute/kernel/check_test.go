package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// roundOff is half the distance from 1 to the next float32: the largest relative error of one
// operation.
const roundOff = 1.0 / (1 << 24)

// eachLevel runs a test at every level that this CPU has.
func eachLevel(t *testing.T, test func(t *testing.T)) {
	defer active.Store(active.Load())
	for _, l := range supported() {
		active.Store(opsOf(l))
		t.Run("level="+l.String(), test)
	}
}

// memory hands out float arrays that end where a page does, before a page that may not be
// touched: a kernel that reads or writes one value too many ends the test.
type memory struct {
	maps [][]byte
	rng  *rand.Rand
}

func newMemory(t *rapid.T) *memory {
	return &memory{rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "values"), 1))}
}

func (m *memory) free() {
	for _, b := range m.maps {
		if err := unix.Munmap(b); err != nil {
			panic(err)
		}
	}
}

// zeros returns n zeros at the end of a page.
func (m *memory) zeros(n int) []float32 {
	const page = 4096
	size := (4*n+page-1)/page*page + page
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	m.maps = append(m.maps, b)
	if err := unix.Mprotect(b[size-page:], unix.PROT_NONE); err != nil {
		panic(err)
	}
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[size-page-4*n])), n)
}

// values returns n values around zero.
func (m *memory) values(n int) []float32 {
	x := m.zeros(n)
	for i := range x {
		x[i] = float32(m.rng.NormFloat64())
	}
	return x
}

// copyOf returns a copy that ends at a page too.
func (m *memory) copyOf(x []float32) []float32 {
	c := m.zeros(len(x))
	copy(c, x)
	return c
}

// segments draws segments over rows rows; some are empty.
func (m *memory) segments(count, longest, rows int) (off, idx []uint32) {
	off = []uint32{0}
	for range count {
		n := m.rng.IntN(longest + 1)
		if rows == 0 {
			n = 0
		}
		for range n {
			idx = append(idx, uint32(m.rng.IntN(rows)))
		}
		off = append(off, uint32(len(idx)))
	}
	return off, idx
}

// size draws a number of rows or columns: often around the widths of vectors and tiles.
func size(most int) *rapid.Generator[int] {
	edges := []int{0, 1, 2, 7, 8, 9, 11, 12, 13, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 96, 97}
	var fit []int
	for _, e := range edges {
		if e <= most {
			fit = append(fit, e)
		}
	}
	return rapid.OneOf(rapid.SampledFrom(fit), rapid.IntRange(0, most))
}

func absolute(x []float32) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = max(v, -v)
	}
	return y
}

// within fails unless got and want differ by at most factor·roundOff·bound, value by value. bound
// is the sum of the absolute values of all terms: n rounded operations on them cannot be further
// from the exact sum than n·roundOff·bound, in any order, so two of them not further apart than
// twice that.
func within(t *rapid.T, what string, got, want, bound []float32, factor float64) {
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i, g := range got {
		limit := factor*roundOff*float64(bound[i]) + 1e-37
		if d := math.Abs(float64(g) - float64(want[i])); !(d <= limit) {
			t.Fatalf("%s: value %d is %v, want %v: %g apart, bound %g", what, i, g, want[i], d,
				limit)
		}
	}
}

// equal fails unless two arrays have the same bits.
func equal(t *rapid.T, what string, got, want []float32) {
	for i, g := range got {
		if math.Float32bits(g) != math.Float32bits(want[i]) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, g, want[i])
		}
	}
}
