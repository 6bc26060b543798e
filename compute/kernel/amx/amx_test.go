//go:build amd64

package amx

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sys/cpu"
	"pgregory.net/rapid"
)

// number draws a bfloat16: some are zeros, and some near the least ones or denormal.
func number(draw *rand.Rand) uint16 {
	v := draw.NormFloat64()
	switch draw.IntN(12) {
	case 0:
		v = 0
	case 1:
		v = math.Ldexp(v, -draw.IntN(130))
	case 2:
		return uint16(draw.IntN(0x80)) | uint16(draw.IntN(2))<<15
	}
	return uint16(math.Float32bits(float32(v)) >> 16)
}

// aligned returns n zeros at a multiple of 64 bytes.
func aligned(n int) []float32 {
	x := make([]float32, n+15)
	return x[-uintptr(unsafe.Pointer(&x[0]))/4%16:][:n:n]
}

// drawn returns a product whose A has tiles side by side in rows, or one by one.
func drawn(t *rapid.T) *Blocks {
	side := rapid.IntRange(1, 3)
	b := &Blocks{Rows: side.Draw(t, "rows"), Cols: side.Draw(t, "cols"),
		Steps: side.Draw(t, "steps"), Accumulate: rapid.Bool().Draw(t, "accumulate")}
	b.Stream = !b.Accumulate && rapid.Bool().Draw(t, "stream")
	b.NextStep = rapid.IntRange(0, 256).Draw(t, "next step")
	if rapid.Bool().Draw(t, "tiles of A one by one") {
		b.ARow, b.AStep, b.ATile = Side, TileValues, b.Steps*TileValues
	} else {
		b.ARow = b.Steps*Side + rapid.IntRange(0, 5).Draw(t, "more columns of A")
		b.AStep, b.ATile = Side, 16*b.ARow
	}
	b.CRow = b.Cols*Side + 16*rapid.IntRange(0, 2).Draw(t, "more columns of C")
	draw := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "values"), 1))
	b.A = make([]uint16, (b.Steps-1)*b.AStep+(2*b.Rows-1)*b.ATile+15*b.ARow+Side)
	for i := range b.A {
		b.A[i] = number(draw)
	}
	b.B = make([]uint32, b.Cols*b.Steps*StepWords)
	for i := range b.B {
		b.B[i] = uint32(number(draw)) | uint32(number(draw))<<16
	}
	b.C = aligned((Side*b.Rows-1)*b.CRow + Side*b.Cols)
	for i := range b.C {
		b.C[i] = float32(draw.NormFloat64())
		if draw.IntN(10) == 0 {
			b.C[i] = math.Float32frombits(uint32(draw.IntN(1 << 24))) // around the least normal one
		}
	}
	return b
}

// TestEmulated runs the bytes of the assembly on an emulated processor, beside plain Go: products
// have the same bits, memory outside of the operands is not touched, and tiles are released.
func TestEmulated(t *testing.T) {
	ran := map[string]int{}
	multiply := emulated(t, ran)
	rapid.Check(t, func(rt *rapid.T) { sameAsReference(rt, drawn(rt), multiply) })
	for _, name := range []string{"LDTILECFG", "TILERELEASE", "TILEZERO", "TILELOADD", "TILESTORED",
		"TDPBF16PS", "VMOVNTPS", "SFENCE", "PREFETCH", "VZEROUPPER"} {
		if ran[name] == 0 {
			t.Errorf("%s did not run", name)
		}
	}
	if err := Check(multiply); err != nil {
		t.Error(err)
	}
}

// TestOnProcessor is TestEmulated on a processor that has AMX.
func TestOnProcessor(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip("not run here: ", err)
	}
	rapid.Check(t, func(rt *rapid.T) { sameAsReference(rt, drawn(rt), Multiply) })
}

func sameAsReference(t *rapid.T, b *Blocks, multiply func(*Blocks)) {
	want := *b
	want.C = append([]float32(nil), b.C...)
	multiply(b)
	Reference(&want)
	for i, c := range b.C {
		if math.Float32bits(c) != math.Float32bits(want.C[i]) {
			t.Fatalf("value %d of C is %v, want %v", i, c, want.C[i])
		}
	}
}

// TestCheck: products that are wrong in one value, or of other signs, are found.
func TestCheck(t *testing.T) {
	for name, wrong := range map[string]func(*Blocks){
		"a value":   func(b *Blocks) { b.C[1234] += 0.5 },
		"no number": func(b *Blocks) { b.C[0] = float32(math.NaN()) },
		"nothing added": func(b *Blocks) {
			b.Accumulate = false
			Reference(b)
		},
		"no steps": func(b *Blocks) { clear(b.C) },
	} {
		if Check(func(b *Blocks) { Reference(b); wrong(b) }) == nil {
			t.Errorf("%s: a wrong product passed", name)
		}
	}
	if err := Check(Reference); err != nil {
		t.Error(err)
	}
}

// TestTranspose compares the assembly with plain Go.
func TestTranspose(t *testing.T) {
	if !cpu.X86.HasAVX512BW {
		t.Skip("not run here: the processor has no AVX-512BW")
	}
	rapid.Check(t, func(rt *rapid.T) {
		columns := rapid.IntRange(1, 70).Draw(rt, "columns")
		fromRow := columns + rapid.IntRange(0, 3).Draw(rt, "more columns")
		tiles := (columns + 15) / 16
		toTile := TileValues * rapid.IntRange(1, 2).Draw(rt, "tiles apart")
		from := make([]uint16, (Side-1)*fromRow+columns)
		draw := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "values"), 1))
		for i := range from {
			from[i] = uint16(draw.Uint32())
		}
		got, want := make([]uint16, tiles*toTile), make([]uint16, tiles*toTile)
		for i := range got {
			got[i], want[i] = 0xabcd, 0xabcd
		}
		Transpose(got, from, columns, fromRow, toTile)
		refTranspose(want, from, columns, fromRow, toTile)
		for i, g := range got {
			if g != want[i] {
				rt.Fatalf("value %d is %x, want %x", i, g, want[i])
			}
		}
	})
}
