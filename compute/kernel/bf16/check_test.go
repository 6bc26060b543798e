package bf16

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"gdb/internal/mem"
)

// eachLevel runs a test at every level that this processor has.
func eachLevel(t *testing.T, test func(t *testing.T)) {
	defer active.Store(active.Load())
	for _, o := range levels() {
		active.Store(o)
		t.Run("level="+o.name, test)
	}
}

// memory hands out arrays that end where a page does, before a page that may not be touched: a
// kernel that reads or writes one value too many ends the test.
type memory struct {
	maps [][]byte
	rng  *rand.Rand
}

func newMemory(seed uint64) *memory { return &memory{rng: rand.New(rand.NewPCG(seed, 1))} }

// seed draws what values follow from.
func seed(t *rapid.T) uint64 { return rapid.Uint64().Draw(t, "values") }

func (m *memory) free() {
	for _, b := range m.maps {
		if err := unix.Munmap(b); err != nil {
			panic(err)
		}
	}
}

// of returns n zeros at the end of a page.
func of[T mem.Scalar](m *memory, n int) []T {
	const page = 4096
	bytes := n * int(unsafe.Sizeof(*new(T)))
	size := (bytes+page-1)/page*page + page
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	m.maps = append(m.maps, b)
	if err := unix.Mprotect(b[size-page:], unix.PROT_NONE); err != nil {
		panic(err)
	}
	return mem.View[T](b[size-page-bytes : size-page])
}

// numbers returns n values around zero: some are zeros, and with tiny some near the least ones.
func (m *memory) numbers(n int, tiny bool) []Number {
	x := of[Number](m, n)
	for i := range x {
		v := m.rng.NormFloat64()
		switch {
		case m.rng.IntN(20) == 0:
			v = 0
		case tiny:
			v = math.Ldexp(v, -m.rng.IntN(130))
		}
		x[i] = Of(float32(v))
		if tiny && m.rng.IntN(20) == 0 {
			x[i] = Number(m.rng.IntN(0x80)) // which is denormal
		}
	}
	return x
}

func (m *memory) floats(n int) []float32 {
	x := of[float32](m, n)
	for i := range x {
		x[i] = float32(m.rng.NormFloat64())
	}
	return x
}

func copyOf[T mem.Scalar](m *memory, x []T) []T {
	c := of[T](m, len(x))
	copy(c, x)
	return c
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

// failer is a test, of this package or of rapid.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// equal fails unless two arrays have the same bits, but for those of a NaN.
func equal[T Value](t failer, what string, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i, g := range got {
		if word(g) != word(want[i]) && (g == g || want[i] == want[i]) {
			t.Fatalf("%s: value %d is %v (%x), want %v (%x)", what, i, g, word(g), want[i],
				word(want[i]))
		}
	}
}

// word returns the bits of a value.
func word[T Value](v T) uint32 {
	switch v := any(v).(type) {
	case float32:
		return math.Float32bits(v)
	case Number:
		return uint32(v)
	}
	return 0
}
