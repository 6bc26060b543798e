package superbatch

import (
	"math/bits"
	"slices"
	"testing"

	"gdb/internal/codec"

	"pgregory.net/rapid"
)

// packPlain packs bit by bit.
func packPlain(values []uint32, width int) []byte {
	out := make([]byte, (len(values)*width+7)/8)
	for i, v := range values {
		for b := range width {
			at := i*width + b
			out[at/8] |= byte(v>>b&1) << (at % 8)
		}
	}
	return out
}

func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(0, 32).Draw(t, "width")
		values := rapid.SliceOfN(rapid.Uint32Range(0, uint32(uint64(1)<<width-1)), 0, 70).
			Draw(t, "values")
		got := appendPacked(nil, values, width)
		if want := packPlain(values, width); !slices.Equal(got, want) {
			t.Fatalf("packed %x, want %x", got, want)
		}
		if len(got) != packedBytes(len(values), width) {
			t.Fatalf("%d bytes, said to be %d", len(got), packedBytes(len(values), width))
		}
		back := make([]uint32, len(values))
		unpack(back, got, width)
		if !slices.Equal(back, values) {
			t.Fatalf("unpacked %d, want %d", back, values)
		}
		var e codec.Enc
		putArray(&e, values)
		d := codec.NewDec(e.B)
		back, err := takeArray(d, nil, len(values))
		if err != nil || !slices.Equal(back, values) || d.Remaining() != 0 {
			t.Fatalf("array %d, %v, want %d", back, err, values)
		}
		if len(values) > 0 {
			most := max(1, bits.Len32(slices.Max(values)))
			if len(e.B) != 5+packedBytes(len(values), most) {
				t.Fatalf("an array of %d bytes", len(e.B))
			}
			if _, err := takeArray(codec.NewDec(e.B), nil, len(values)-1); err == nil {
				t.Fatal("an array that is too long was taken")
			}
		}
	})
}
