package rng

import (
	"fmt"
	"math"
	"math/bits"
	"testing"
)

// chiSquareLimit returns the value that a chi-square statistic of df degrees of freedom exceeds
// with a probability of about 1e-6 (Wilson and Hilferty's approximation). The draws are fixed, so a
// test that passes once passes always.
func chiSquareLimit(df float64) float64 {
	const z = 4.75
	a := 2 / (9 * df)
	return df * math.Pow(1-a+z*math.Sqrt(a), 3)
}

// chiSquare compares counts with an equal share each.
func chiSquare(t *testing.T, what string, counts []int) {
	t.Helper()
	total := 0
	for _, n := range counts {
		total += n
	}
	want := float64(total) / float64(len(counts))
	sum := 0.0
	for _, n := range counts {
		sum += (float64(n) - want) * (float64(n) - want) / want
	}
	if limit := chiSquareLimit(float64(len(counts) - 1)); sum > limit {
		t.Errorf("%s: chi-square is %.1f, more than %.1f, over %d counts", what, sum, limit,
			len(counts))
	}
}

// sources are the ways gdb gets 64 random bits: i is the number of the draw.
var sources = map[string]func(i uint64) uint64{
	"Stream of one key": func() func(uint64) uint64 {
		s := NewStream(Key(1))
		return func(uint64) uint64 { return s.Uint64() }
	}(),
	"first draw of counted keys": func(i uint64) uint64 {
		s := NewStream(Key(1, i))
		return s.Uint64()
	},
	"third draw of counted subkeys": func(i uint64) uint64 {
		s := NewStream(Sub(Key(2), i))
		s.Uint64()
		s.Uint64()
		return s.Uint64()
	},
	"Key, one part":      func(i uint64) uint64 { return Key(i) },
	"Key, first of two":  func(i uint64) uint64 { return Key(i, 7) },
	"Key, high bits":     func(i uint64) uint64 { return Key(3, i<<40) },
	"Sub":                func(i uint64) uint64 { return Sub(Key(3), i) },
	"Sub of key 0":       func(i uint64) uint64 { return Sub(0, i) },
	"Sub, the key":       func(i uint64) uint64 { return Sub(i, 5) },
	"Hash of counters":   func(i uint64) uint64 { return Hash(1, fmt.Append(nil, i)) },
	"Hash, counted seed": func(i uint64) uint64 { return Hash(i, []byte("id")) },
}

// TestUniform counts each byte of the draws, the pairs of two successive draws' low and high four
// bits, and each bit.
func TestUniform(t *testing.T) {
	const draws = 1 << 17
	for name, draw := range sources {
		t.Run(name, func(t *testing.T) {
			var bytes [8][256]int
			var low, high [256]int
			var ones [64]int
			last := draw(1 << 30)
			for i := range uint64(draws) {
				v := draw(i)
				for b := range bytes {
					bytes[b][byte(v>>(8*b))]++
				}
				for b := range ones {
					ones[b] += int(v >> b & 1)
				}
				low[last&15<<4|v&15]++
				high[last>>60<<4|v>>60]++
				last = v
			}
			for b := range bytes {
				chiSquare(t, fmt.Sprintf("byte %d", b), bytes[b][:])
			}
			chiSquare(t, "pairs of low bits", low[:])
			chiSquare(t, "pairs of high bits", high[:])
			for b, n := range ones {
				chiSquare(t, fmt.Sprintf("bit %d", b), []int{n, draws - n})
			}
		})
	}
}

// TestAvalanche flips each bit of the counter: half of the result's bits change, each as often.
func TestAvalanche(t *testing.T) {
	const rounds = 2000
	for name, of := range map[string]func(v uint64) uint64{
		"Key, one part":  func(v uint64) uint64 { return Key(v) },
		"Key, first":     func(v uint64) uint64 { return Key(v, 1, 2) },
		"Key, last":      func(v uint64) uint64 { return Key(1, 2, v) },
		"Sub, the part":  func(v uint64) uint64 { return Sub(Key(9), v) },
		"Sub, the key":   func(v uint64) uint64 { return Sub(v, 3) },
		"Hash, the seed": func(v uint64) uint64 { return Hash(v, []byte("some id")) },
		"Hash, the data": func(v uint64) uint64 { return Hash(1, fmt.Appendf(nil, "%016x", v)) },
	} {
		t.Run(name, func(t *testing.T) {
			for bit := range 64 {
				var changed [64]int
				for i := range uint64(rounds) {
					v := Key(77, i)
					d := of(v) ^ of(v^1<<bit)
					for ; d != 0; d &= d - 1 {
						changed[bits.TrailingZeros64(d)]++
					}
				}
				for b, n := range changed {
					if n < rounds*2/5 || n > rounds*3/5 {
						t.Fatalf("bit %d changes bit %d in %d of %d cases", bit, b, n, rounds)
					}
				}
			}
		})
	}
}

// TestBelow draws from small and large ranges: uniform, and never out of range.
func TestBelow(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 5, 7, 10, 25, 100, 255, 256, 257, 1000} {
		s, counts := NewStream(Key(4, n)), make([]int, n)
		for range 200 * (n + 50) {
			counts[s.Below(n)]++
		}
		if n > 1 {
			chiSquare(t, fmt.Sprintf("Below(%d)", n), counts)
		}
	}
	for _, n := range []uint64{1<<32 + 1, 3 << 61, 1<<63 + 1, math.MaxUint64} {
		const parts = 64
		s, counts := NewStream(Key(5, n)), make([]int, parts)
		for range 50_000 {
			v := s.Below(n)
			if v >= n {
				t.Fatalf("Below(%d) = %d", n, v)
			}
			hi, lo := bits.Mul64(v, parts)
			part, _ := bits.Div64(hi, lo, n)
			counts[part]++
		}
		chiSquare(t, fmt.Sprintf("Below(%d)", n), counts)
	}
}

// TestBelowRejects shows the bias that rejection takes away: for three quarters of 2^64, taking
// the high word alone gives every third value twice as often.
func TestBelowRejects(t *testing.T) {
	const n = 3 << 62
	s, counts, biased := NewStream(Key(6)), make([]int, 3), make([]int, 3)
	for range 30_000 {
		counts[s.Below(n)%3]++
		hi, _ := bits.Mul64(s.Uint64(), n)
		biased[hi%3]++
	}
	chiSquare(t, "remainders", counts)
	if biased[0] < biased[1]*3/2 && biased[1] < biased[0]*3/2 && biased[2] < biased[0]*3/2 {
		t.Errorf("without rejection the remainders %v are even, too: the test shows nothing",
			biased)
	}
}

func TestFloat64(t *testing.T) {
	s, counts := NewStream(Key(8)), make([]int, 100)
	for range 100_000 {
		v := s.Float64()
		if v < 0 || v >= 1 {
			t.Fatalf("%v is not in [0, 1)", v)
		}
		counts[int(v*100)]++
	}
	chiSquare(t, "hundredths", counts)
}

// TestIndependence compares keys that differ in one place, or in order and length only: the top
// bits of both are as pairs of independent draws.
func TestIndependence(t *testing.T) {
	for name, pair := range map[string]func(i uint64) (a, b uint64){
		"next counter":    func(i uint64) (a, b uint64) { return Key(1, i), Key(1, i+1) },
		"order":           func(i uint64) (a, b uint64) { return Key(1, i+2), Key(i+2, 1) },
		"length":          func(i uint64) (a, b uint64) { return Key(i), Key(i, 0) },
		"sub and key":     func(i uint64) (a, b uint64) { return Sub(Key(2), i), Key(2, i) },
		"sub of parts":    func(i uint64) (a, b uint64) { return Sub(Key(2), i), Sub(Key(2), i+1) },
		"sub of keys":     func(i uint64) (a, b uint64) { return Sub(Key(2), i), Sub(Key(3), i) },
		"key and its sub": func(i uint64) (a, b uint64) { return Key(i), Sub(Key(i), 1) },
	} {
		var counts [256]int
		seen := map[uint64]bool{}
		for i := range uint64(1 << 16) {
			a, b := pair(i)
			sa, sb := NewStream(a), NewStream(b)
			counts[sa.Uint64()>>60<<4|sb.Uint64()>>60]++
			seen[a], seen[b] = true, true
			if a == b {
				t.Fatalf("%s: the keys of %d are equal", name, i)
			}
		}
		chiSquare(t, name, counts[:])
	}
}

// TestStreamIsPure: equal keys give equal draws, and a copy goes its own way.
func TestStreamIsPure(t *testing.T) {
	a, b := NewStream(Key(1, 2)), NewStream(Key(1, 2))
	for range 10 {
		if a.Uint64() != b.Uint64() {
			t.Fatal("streams of one key differ")
		}
	}
	c := a
	for range 2 {
		if a.Uint64() != c.Uint64() {
			t.Error("a copied stream does not go on as the original")
		}
	}
}

// TestValues pins some values: files and resumed runs depend on them.
func TestValues(t *testing.T) {
	s := NewStream(Key(1, 2, 3))
	got := []uint64{Key(), Key(0), Key(1, 2, 3), Sub(Key(1), 2), s.Uint64(), s.Below(1000),
		Hash(0, nil), Hash(1, []byte("a")), Hash(1, []byte("abcd")),
		Hash(1, []byte("abcdefghijklmnop")), Hash(1, []byte("abcdefghijklmnopq")),
		Hash(2, []byte("The quick brown fox jumps over the lazy dog"))}
	want := []uint64{0x0, 0x1ff5c2923a788d2c, 0x86661daad33fcd5c, 0x23b6716a59b4d434,
		0x82d894921fa3a3f2, 0xa4, 0x58f95bfc73b43d3e, 0x46050515ca3982ca, 0xec8ae24fa9b37f11,
		0x158860823d14709c, 0x5854a2bd24b8ce72, 0x4f858d0d4e56a7cd}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("value %d is %#x, want %#x", i, got[i], want[i])
		}
	}
}

// TestHashKeepsApart: no two of many similar strings share a hash, and each byte and the length
// count.
func TestHashKeepsApart(t *testing.T) {
	seen := map[uint64]string{}
	add := func(s string) {
		h := Hash(5, []byte(s))
		if other, ok := seen[h]; ok && other != s {
			t.Fatalf("%q and %q have one hash", s, other)
		}
		seen[h] = s
	}
	for i := range 200_000 {
		add(fmt.Sprint(i))
		add(fmt.Sprintf("http://example.org/resource/%d", i))
	}
	zeros := make([]byte, 300)
	for n := range zeros {
		add(string(zeros[:n]))
		for i := range n {
			zeros[i] = 1
			add(string(zeros[:n]))
			zeros[i] = 0
		}
	}
}

func BenchmarkHash(b *testing.B) {
	for _, n := range []int{8, 16, 40, 1000} {
		b.Run(fmt.Sprintf("bytes=%d", n), func(b *testing.B) {
			p, sum := make([]byte, n), uint64(0)
			b.SetBytes(int64(n))
			for i := uint64(0); b.Loop(); i++ {
				sum += Hash(i, p)
			}
			if sum == 1 {
				b.Log(sum) // so that the hashes are needed
			}
		})
	}
}
