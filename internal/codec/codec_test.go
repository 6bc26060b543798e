package codec

import (
	"bytes"
	"errors"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestRoundTrip encodes drawn fields and decodes them in the same order.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e Enc
		var checks []func(d *Dec) bool
		for range rapid.IntRange(0, 20).Draw(t, "fields") {
			v := rapid.Uint64().Draw(t, "value")
			s := rapid.String().Draw(t, "text")
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				e.U8(uint8(v))
				checks = append(checks, func(d *Dec) bool { return d.U8() == uint8(v) })
			case 1:
				e.U16(uint16(v))
				checks = append(checks, func(d *Dec) bool { return d.U16() == uint16(v) })
			case 2:
				e.U32(uint32(v))
				checks = append(checks, func(d *Dec) bool { return d.U32() == uint32(v) })
			case 3:
				e.U64(v)
				checks = append(checks, func(d *Dec) bool { return d.U64() == v })
			case 4:
				e.String(s)
				checks = append(checks, func(d *Dec) bool { return d.String() == s })
			case 5:
				e.Bytes([]byte(s))
				checks = append(checks, func(d *Dec) bool { return string(d.Bytes(len(s))) == s })
			}
		}
		d := NewDec(e.B)
		for i, ok := range checks {
			if !ok(d) {
				t.Fatalf("field %d of %d came back changed", i, len(checks))
			}
		}
		if d.Remaining() != 0 || d.Err() != nil {
			t.Fatalf("%d of %d bytes are left, %v", d.Remaining(), len(e.B), d.Err())
		}
	})
}

// TestLayout pins the bytes: little-endian, strings with a uint32 length.
func TestLayout(t *testing.T) {
	var e Enc
	e.U8(1)
	e.U16(0x0302)
	e.U32(0x07060504)
	e.U64(0x0f0e0d0c0b0a0908)
	e.String("ab")
	e.Pad(5)
	want := "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f" +
		"\x02\x00\x00\x00ab\x00\x00\x00\x00"
	if string(e.B) != want {
		t.Errorf("%x, want %x", e.B, want)
	}
}

// TestDecIsSticky reads past the end: zeros from there on, and the first error stays.
func TestDecIsSticky(t *testing.T) {
	d := NewDec([]byte{1, 2, 3, 4, 5})
	if d.U32() != 0x04030201 || d.Err() != nil {
		t.Fatal("the first four bytes are wrong")
	}
	if d.U16() != 0 || !errors.Is(d.Err(), ErrShort) {
		t.Fatalf("a read past the end gave no error: %v", d.Err())
	}
	first := d.Err()
	if d.U8() != 0 || d.U64() != 0 || d.String() != "" || d.Bytes(0) != nil {
		t.Error("a read after an error gave a value")
	}
	if d.Err() != first || !strings.Contains(first.Error(), "2 bytes wanted at offset 4 of 5") {
		t.Errorf("the error is now %v, was %v", d.Err(), first)
	}
	for _, n := range []int{-1, math.MaxInt, math.MinInt} {
		if d := NewDec(make([]byte, 3)); d.Bytes(n) != nil || d.Err() == nil {
			t.Errorf("Bytes(%d) of three bytes was taken", n)
		}
	}
	if d := NewDec([]byte{255, 255, 255, 255, 1}); d.String() != "" || d.Err() == nil {
		t.Error("a string of 4 GiB was taken from five bytes")
	}
	if got := NewDec([]byte{1, 2}).Bytes(1); cap(got) != 1 {
		t.Error("appending to what Bytes returns would change the source")
	}
}

// TestChecksumInPieces: long bytes have the sum that the standard library gives them whole.
func TestChecksumInPieces(t *testing.T) {
	b := make([]byte, 3*sumLong)
	for i := range b {
		b[i] = byte(i*i>>3 + i)
	}
	for _, n := range []int{0, 1, sumLong - 1, sumLong, sumLong + 1, sumLong + sumPiece - 1,
		2*sumLong + 63, 3 * sumLong} {
		if got, want := ChecksumUpdate(7, b[:n]), crc32.Update(7, castagnoli, b[:n]); got != want {
			t.Errorf("%d bytes: %08x, want %08x", n, got, want)
		}
	}
}

// TestChecksum checks the polynomial with a published value (RFC 3720, B.4) and that parts and
// updates are one.
func TestChecksum(t *testing.T) {
	zeros := make([]byte, 32)
	if got := Checksum(zeros); got != 0x8a9136aa {
		t.Errorf("CRC32C of 32 zeros is %08x, want 8a9136aa", got)
	}
	b := []byte("the quick brown fox")
	for i := range b {
		if Checksum(b[:i], nil, b[i:]) != Checksum(b) ||
			ChecksumUpdate(ChecksumUpdate(0, b[:i]), b[i:]) != Checksum(b) {
			t.Fatalf("cut at %d the checksum differs", i)
		}
	}
}

func TestHeader(t *testing.T) {
	uuid := [16]byte{1, 2, 3}
	h := Header{Kind: "TEST", UUID: uuid, Fields: []byte("fields of the kind")}
	b := h.Encode()
	if len(b) != HeaderBytes {
		t.Fatalf("header of %d bytes", len(b))
	}
	for _, want := range [][16]byte{uuid, {}} {
		got, err := DecodeHeader(b, "TEST", want)
		if err != nil || got.UUID != uuid || !bytes.Equal(got.Fields, h.Fields) {
			t.Errorf("decoded %+v, %v", got, err)
		}
	}
	for i := range uuid {
		another := uuid
		another[i]++
		if _, err := DecodeHeader(b, "TEST", another); !errors.Is(err, ErrForeign) {
			t.Errorf("another byte %d of the UUID: %v, want ErrForeign", i, err)
		}
	}
	version := bytes.Clone(b)
	version[8]++
	reseal(version)
	long := bytes.Clone(b)
	copy(long[32:], "\xff\xff\xff\xff")
	reseal(long)
	for name, c := range map[string]struct {
		b    []byte
		kind string
		uuid [16]byte
		want error
	}{
		"another kind":    {b, "OTHR", uuid, ErrKind},
		"another store":   {b, "TEST", [16]byte{9}, ErrForeign},
		"another version": {version, "TEST", uuid, ErrVersion},
		"short":           {b[:HeaderBytes-1], "TEST", uuid, ErrShort},
		"zeros":           {make([]byte, HeaderBytes), "TEST", uuid, ErrChecksum},
		"long fields":     {long, "TEST", uuid, ErrShort},
	} {
		if _, err := DecodeHeader(c.b, c.kind, c.uuid); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for i := range b {
		b[i] ^= 0x10
		if _, err := DecodeHeader(b, "TEST", uuid); !errors.Is(err, ErrChecksum) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		b[i] ^= 0x10
	}
}

// reseal fixes the checksum of a header.
func reseal(b []byte) {
	var e Enc
	e.U32(Checksum(b[4:]))
	copy(b, e.B)
}

func TestHeaderBugs(t *testing.T) {
	for _, h := range []Header{{Kind: "LONGER"}, {}, {Kind: "TEST", Fields: make([]byte, 4061)}} {
		func() {
			defer func() {
				if r := recover(); r == nil {
					t.Errorf("header of kind %q with %d bytes was encoded", h.Kind, len(h.Fields))
				}
			}()
			h.Encode()
		}()
	}
	full := Header{Kind: "TEST", Fields: make([]byte, 4060)}
	if got, err := DecodeHeader(full.Encode(), "TEST", [16]byte{}); err != nil ||
		len(got.Fields) != 4060 {
		t.Errorf("a full header: %d bytes of fields, %v", len(got.Fields), err)
	}
}

// TestBlockSum: everything that tells a block from another is in the sum.
func TestBlockSum(t *testing.T) {
	b := []byte("contents")
	want := BlockSum("KIND", [16]byte{1}, 7, b)
	if got := BlockSum("KIND", [16]byte{1}, 7, b[:3], b[3:]); got != want {
		t.Errorf("in two parts %08x, in one %08x", got, want)
	}
	for name, got := range map[string]uint32{
		"kind":  BlockSum("KINE", [16]byte{1}, 7, b),
		"store": BlockSum("KIND", [16]byte{2}, 7, b),
		"block": BlockSum("KIND", [16]byte{1}, 8, b),
		"far":   BlockSum("KIND", [16]byte{1}, 7|1<<40, b),
		"bytes": BlockSum("KIND", [16]byte{1}, 7, []byte("Contents")),
	} {
		if got == want {
			t.Errorf("another %s has the same sum", name)
		}
	}
	if n := testing.AllocsPerRun(100, func() { BlockSum("KIND", [16]byte{1}, 7, b) }); n > 0 {
		t.Errorf("%v allocations, want none: it runs for every block read", n)
	}
}

func FuzzDecodeHeader(f *testing.F) {
	f.Add(Header{Kind: "TEST", Fields: []byte("fields")}.Encode())
	f.Add(make([]byte, HeaderBytes))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= HeaderBytes {
			b = bytes.Clone(b[:HeaderBytes])
			reseal(b)
		}
		h, err := DecodeHeader(b, "TEST", [16]byte{})
		if err == nil && len(h.Fields) > HeaderBytes-headerFixed {
			t.Fatalf("%d bytes of fields", len(h.Fields))
		}
	})
}
