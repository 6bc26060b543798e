package codec

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawList draws a sorted list of n values below 2^width.
func drawList(r *rand.Rand, n, width int) []uint32 {
	l := make([]uint32, n)
	for i := range l {
		l[i] = r.Uint32() >> (32 - width)
	}
	slices.Sort(l)
	return l
}

// mustDecode decodes with every decoder, with the bytes after src that each way of keeping lists
// gives, and with a guard after dst.
func mustDecode(t *testing.T, src []byte, want []uint32) {
	t.Helper()
	for name, fast := range map[string]groupDecoder{"plain": nil, "fast": fastGroups} {
		for _, spare := range []int{0, 1, 7, 15, 16, 40} {
			b := append(slices.Clip(slices.Clone(src)), make([]byte, spare)...)
			b = b[: len(src) : len(src)+spare]
			const guard = 0xdeadbeef
			got := make([]uint32, len(want)+4)
			for i := range got {
				got[i] = guard
			}
			if err := decodeDeltas(got[:len(want)], b, fast); err != nil {
				t.Fatalf("%s, %d values, %d spare bytes: %v", name, len(want), spare, err)
			}
			if !slices.Equal(got[:len(want)], want) {
				t.Fatalf("%s, %d values, %d spare bytes: other values", name, len(want), spare)
			}
			for _, g := range got[len(want):] {
				if g != guard {
					t.Fatalf("%s, %d values: written past the end", name, len(want))
				}
			}
		}
	}
}

func TestDeltasRoundTrip(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, 1))
	check := func(l []uint32) {
		b, size := AppendDeltas([]byte("before"), l), (len(l)+3)/4+DeltasData(0, l)
		if !bytes.HasPrefix(b, []byte("before")) || len(b)-6 != size {
			t.Fatalf("seed %d: %d bytes for %d values, said %d", seed, len(b)-6, len(l), size)
		}
		mustDecode(t, b[6:], l)
	}
	for n := range 301 {
		for _, width := range []int{1, 8, 17, 25, 32} {
			check(drawList(r, n, width))
		}
	}
	for range 20 {
		check(drawList(r, 1000+r.IntN(60000), 1+r.IntN(32)))
	}
	check([]uint32{9, 3, 1<<32 - 1, 0}) // not sorted: the deltas wrap
}

func TestDeltasExample(t *testing.T) {
	want := []byte{0b010000, 0, 5, 4, 35, 1, 0, 1}
	if got := AppendDeltas(nil, []uint32{5, 9, 300, 300, 301}); !bytes.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Damaged bytes give an error, or other values of the same length; nothing outside is touched.
func TestDeltasDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	for range 300 {
		l := drawList(r, 1+r.IntN(200), 1+r.IntN(32))
		b := AppendDeltas(nil, l)
		out := make([]uint32, len(l)+9)
		for _, bad := range [][]byte{b[:len(b)-1], b[:len(b)/2], nil, append(slices.Clone(b), 0)} {
			if err := DecodeDeltas(out[:len(l)], bad); !errors.Is(err, ErrDeltas) {
				t.Fatalf("%d of %d bytes of %d values: %v", len(bad), len(b), len(l), err)
			}
		}
		for _, n := range []int{len(l) - 1, len(l) + 1, len(l) + 9} {
			if err := DecodeDeltas(out[:n], b); !errors.Is(err, ErrDeltas) {
				t.Fatalf("%d values as %d: %v", len(l), n, err)
			}
		}
	}
}

func FuzzDecodeDeltas(f *testing.F) {
	f.Add([]byte{0b010000, 0, 5, 4, 35, 1, 0, 1}, uint16(5), uint8(16))
	f.Add(bytes.Repeat([]byte{255}, 100), uint16(19), uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, n uint16, spare uint8) {
		src := append(slices.Clone(b), make([]byte, spare)...)[: len(b) : len(b)+int(spare)]
		plain, fast := make([]uint32, n), make([]uint32, n)
		errPlain, errFast := decodeDeltas(plain, src, nil), decodeDeltas(fast, src, fastGroups)
		if (errPlain == nil) != (errFast == nil) {
			t.Fatalf("plain: %v, fast: %v", errPlain, errFast)
		}
		if errPlain != nil {
			return
		}
		if !slices.Equal(plain, fast) {
			t.Fatal("the decoders give other values")
		}
		again := make([]uint32, n)
		if err := DecodeDeltas(again, AppendDeltas(nil, plain)); err != nil ||
			!slices.Equal(again, plain) {
			t.Fatalf("encoded again: %v", err)
		}
	})
}

func BenchmarkDecodeDeltas(b *testing.B) {
	r := rand.New(rand.NewPCG(9, 1))
	for _, n := range []int{4, 16, 64, 256, 1024, 16384} {
		// Lists of a graph of 2^22 nodes, one after the other as a cache keeps them.
		count := max(1, 1<<16/n)
		var src []byte
		ends := []int{0}
		for range count {
			src = AppendDeltas(src, drawList(r, n, 22))
			ends = append(ends, len(src))
		}
		src = append(src, make([]byte, 16)...)
		dst := make([]uint32, n)
		for name, fast := range map[string]groupDecoder{"plain": nil, "fast": fastGroups} {
			b.Run(fmt.Sprintf("n=%d/decoder=%s", n, name), func(b *testing.B) {
				i := 0
				for b.Loop() {
					if err := decodeDeltas(dst, src[ends[i]:ends[i+1]], fast); err != nil {
						b.Fatal(err)
					}
					if i++; i == count {
						i = 0
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n),
					"ns/neighbor")
				b.ReportMetric(float64(ends[count])/float64(count*n), "B/neighbor")
			})
		}
	}
}
