package rowfile

import (
	"math"
	"testing"

	"gdb/layout"

	"pgregory.net/rapid"
)

// plainF16 is the value of a half by the definition of the format.
func plainF16(h uint16) float64 {
	sign := 1.0
	if h>>15 == 1 {
		sign = -1
	}
	exp, frac := int(h>>10&31), float64(h&1023)
	switch {
	case exp == 31 && frac == 0:
		return sign * math.Inf(1)
	case exp == 31:
		return math.NaN()
	case exp == 0:
		return sign * math.Ldexp(frac, -24)
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

func TestF16AllValues(t *testing.T) {
	row, out := make([]byte, 2<<16), make([]float32, 1<<16)
	for h := range 1 << 16 {
		row[2*h], row[2*h+1] = byte(h), byte(h>>8)
	}
	decodeF16(out, row)
	for h := range 1 << 16 {
		want, got := plainF16(uint16(h)), float64(out[h])
		if math.IsNaN(want) {
			if !math.IsNaN(got) || !math.IsNaN(float64(float32(got))) {
				t.Fatalf("half %04x is %g, want NaN", h, got)
			}
			if back := encodeF16(out[h]); back&0x7c00 != 0x7c00 || back&0x3ff == 0 {
				t.Fatalf("NaN %04x comes back as %04x", h, back)
			}
			continue
		}
		if got != want || math.Signbit(got) != math.Signbit(want) {
			t.Fatalf("half %04x is %g, want %g", h, got, want)
		}
		if back := encodeF16(out[h]); int(back) != h {
			t.Fatalf("half %04x comes back as %04x", h, back)
		}
	}
}

// TestF16Rounds compares with the nearest half found by looking at all of them: around each
// midpoint of two neighbors.
func TestF16Rounds(t *testing.T) {
	for h := range uint16(0x7bff) {
		low, high := plainF16(h), plainF16(h+1)
		mid := float32((low + high) / 2) // exact: one more bit than a half
		even := h + h&1
		for _, c := range []struct {
			f    float32
			want uint16
		}{{mid, even}, {math.Nextafter32(mid, 0), h}, {math.Nextafter32(mid, 1e9), h + 1}} {
			if got := encodeF16(c.f); got != c.want {
				t.Fatalf("%g rounds to %04x, want %04x", c.f, got, c.want)
			}
			if got := encodeF16(-c.f); got != c.want|0x8000 {
				t.Fatalf("%g rounds to %04x, want %04x", -c.f, got, c.want|0x8000)
			}
		}
	}
	for _, c := range []struct {
		f    float32
		want uint16
	}{{65504, 0x7bff}, {65519.996, 0x7bff}, {65520, 0x7c00}, {1e30, 0x7c00},
		{float32(math.Inf(-1)), 0xfc00}, {1e-30, 0}, {0x1p-25, 0}, {0x1.002p-25, 1}} {
		if got := encodeF16(c.f); got != c.want {
			t.Errorf("%g rounds to %04x, want %04x", c.f, got, c.want)
		}
	}
}

func TestBF16AllValues(t *testing.T) {
	row, out := make([]byte, 2<<16), make([]float32, 1<<16)
	for h := range 1 << 16 {
		row[2*h], row[2*h+1] = byte(h), byte(h>>8)
	}
	decodeBF16(out, row)
	for h := range 1 << 16 {
		if math.Float32bits(out[h]) != uint32(h)<<16 {
			t.Fatalf("bf16 %04x has the bits %08x", h, math.Float32bits(out[h]))
		}
		back := encodeBF16(out[h])
		if nan := h&0x7fff > 0x7f80; nan && back&0x7fff <= 0x7f80 || !nan && int(back) != h {
			t.Fatalf("bf16 %04x comes back as %04x", h, back)
		}
	}
}

func TestBF16Rounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float32().Draw(t, "f")
		if math.IsNaN(float64(f)) || math.Abs(float64(f)) > 3e38 {
			return
		}
		low := math.Float32bits(f) &^ 0xffff
		down, up := math.Float32frombits(low), math.Float32frombits(low+1<<16)
		dd := math.Abs(float64(f) - float64(down))
		du := math.Abs(float64(up) - float64(f))
		want := uint16(low >> 16)
		if du < dd || du == dd && want&1 == 1 {
			want++
		}
		if got := encodeBF16(f); got != want {
			t.Fatalf("%g rounds to %04x, want %04x", f, got, want)
		}
	})
}

func TestEncodeRowRefuses(t *testing.T) {
	for _, c := range []struct {
		dtype string
		v     float32
	}{{F16, 65520}, {BF16, math.MaxFloat32}, {I32, 1}, {U8, 1}} {
		if _, err := encodeRow(nil, c.dtype, []float32{0, c.v}); err == nil {
			t.Errorf("%g as %s: no error", c.v, c.dtype)
		}
	}
	inf := float32(math.Inf(1))
	if _, err := encodeRow(nil, F16, []float32{inf}); err != nil {
		t.Errorf("infinity is a value of f16: %v", err)
	}
}

func TestPageFor(t *testing.T) {
	for _, c := range []struct{ row, page, sum int }{
		{4, 4096, 512}, {400, 4096, 512}, {512, 4096, 512}, {1024, 4096, 1024},
		{2048, 4096, 2048}, {2100, 24576, 512}, {2408, 12288, 512}, {4096, 4096, 4096},
		{5000, 20480, 512}, {8192, 8192, 4096}, {3072, 12288, 512}, {1 << 20, 1 << 20, 4096},
	} {
		if p, s := pageFor(c.row), sumFor(c.row); p != c.page || s != c.sum {
			t.Errorf("rows of %d: page %d, sum %d; want %d, %d", c.row, p, s, c.page, c.sum)
		}
	}
	for row := 1; row < 20000; row += 7 {
		page := pageFor(row)
		if page%layout.PageBytes != 0 || page < row || page%row*wasteShare >= page ||
			page%sumFor(row) != 0 {
			t.Fatalf("page %d for rows of %d", page, row)
		}
	}
}
