package bf16

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestConversions compares conversions with the specification, at each upper half of a float32 with
// lower halves that round in every way, and the specification with exact arithmetic.
func TestConversions(t *testing.T) {
	var x []float32
	for high := range uint32(1 << 16) {
		for _, low := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
			x = append(x, math.Float32frombits(high<<16|low))
		}
	}
	want := make([]Number, len(x))
	refNarrow(want, x)
	for i, v := range x {
		if got := want[i].Float32(); !nearest(got, v) {
			t.Fatalf("%v (%08x) rounds to %v", v, math.Float32bits(v), got)
		}
	}
	eachLevel(t, func(t *testing.T) {
		got := make([]Number, len(x))
		Narrow(nil, got, x)
		for i, g := range got { // NaN too
			if g != want[i] {
				t.Fatalf("%08x is %04x, want %04x", math.Float32bits(x[i]), g, want[i])
			}
		}
		all := make([]Number, 1<<16)
		for i := range all {
			all[i] = Number(i)
		}
		wide := make([]float32, len(all))
		Widen(nil, wide, all)
		for i, v := range wide {
			if math.Float32bits(v) != uint32(i)<<16 {
				t.Fatalf("%04x is %08x", i, math.Float32bits(v))
			}
		}
	})
}

// nearest reports whether got is a bfloat16 as near to v as its neighbors, and even if one is as
// near.
func nearest(got, v float32) bool {
	switch {
	case v != v:
		return got != got && math.Signbit(float64(got)) == math.Signbit(float64(v))
	case math.IsInf(float64(v), 0) || v == 0:
		return math.Float32bits(got) == math.Float32bits(v)
	case math.Abs(float64(v)) < 0x1p-126:
		return math.Float32bits(got) == math.Float32bits(v)&(1<<31)
	}
	// off is how far a bfloat16 is, which float64 has exactly. Beyond the largest one, the next
	// power of two stands for infinity.
	off := func(u uint32) float64 {
		f := float64(math.Float32frombits(u))
		if u&^(1<<31) >= exponentBits {
			f = math.Copysign(0x1p128, float64(v))
		}
		return math.Abs(f - float64(v))
	}
	u := math.Float32bits(got)
	here, below, above := off(u), off(u-1<<16), off(u+1<<16)
	odd := u>>16&1 != 0
	return here < below && here < above || !odd && here <= below && here <= above
}

// TestConversionsEnd has arrays of every length around a vector, before memory that is not there.
func TestConversionsEnd(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			m := newMemory(seed(t))
			defer m.free()
			x := m.floats(size(130).Draw(t, "n"))
			got, want, back := of[Number](m, len(x)), of[Number](m, len(x)), of[float32](m, len(x))
			Narrow(nil, got, x)
			refNarrow(want, x)
			equal(t, "Narrow", got, want)
			Widen(nil, back, got)
			for i, n := range want {
				if back[i] != n.Float32() {
					t.Fatalf("Widen: value %d is %v, want %v", i, back[i], n.Float32())
				}
			}
		})
	})
}
