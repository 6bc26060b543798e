package rowfile

import (
	"bytes"
	"encoding/binary"
	"testing"

	"gdb/internal/mem"
)

// FuzzRowsFields decodes header fields of rows; what it takes encodes to the same bytes.
func FuzzRowsFields(f *testing.F) {
	for _, dtype := range []string{F32, F16, BF16, I32, U8} {
		m, err := NewMeta("features", "features/features.rows", dtype, 602)
		if err != nil {
			f.Fatal(err)
		}
		s, err := NewShape(m, 1000)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(s.fields())
	}
	m, err := NewSectionsMeta("features", "features/features.rows", F32, []uint64{0, 5, 5, 900},
		[]int{3, 0, 7, 602})
	if err != nil {
		f.Fatal(err)
	}
	s, err := NewShape(m, 1000)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(s.fields())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeFields(b)
		if err != nil {
			return
		}
		if !bytes.Equal(s.fields(), b) {
			t.Fatalf("%x decodes to %+v, which encodes to %x", b, s, s.fields())
		}
		if last := s.Nodes; last > 0 {
			_, end := s.span(last - 1)
			if end > s.DataBytes() || s.DataBytes()%int64(s.SumBytes) != 0 {
				t.Fatalf("%+v: the last row ends at %d of %d", s, end, s.DataBytes())
			}
		}
	})
}

// FuzzConvert encodes floats and decodes them again: nothing moves twice.
func FuzzConvert(f *testing.F) {
	f.Add(uint32(0x477fefff))
	f.Add(uint32(0x33000001))
	f.Fuzz(func(t *testing.T, u uint32) {
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], u)
		in := mem.View[float32](b[:])
		for _, dtype := range []string{F32, F16, BF16} {
			row, err := encodeRow(nil, dtype, in)
			if err != nil {
				continue
			}
			out := make([]float32, 1)
			Decoder(dtype)(out, row)
			again, err := encodeRow(nil, dtype, out)
			if err != nil || !bytes.Equal(row, again) {
				t.Fatalf("%g as %s is %x, and then %x: %v", in[0], dtype, row, again, err)
			}
		}
	})
}
