package columnfile

import (
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"testing"

	"gdb/kv"
)

// types are one of each class, and one with a bound.
var types = []string{Int64, Float64, String, Sparse, Bool}

// mustColumn returns a column of one block.
func mustColumn(t testing.TB, typ string, rows int) *column {
	m := kv.TableColumn{Name: "x", Path: "x.col", Type: typ}
	if typ == Sparse {
		m.Dim = 100
	}
	c, err := newColumn(m, kv.UUID{1})
	if err != nil {
		t.Fatal(err)
	}
	c.Rows, c.BlockRows = uint64(rows), rowsMost
	return &c
}

// FuzzDecodeBlock decodes any bytes, with a checksum that fits: rows that come back when they are
// coded again, or an error.
func FuzzDecodeBlock(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for i, typ := range types {
		v := Values{}
		for range 40 {
			switch c, _ := classOf(typ); c {
			case ints:
				v.Ints = append(v.Ints, r.Int64N(2))
			case floats:
				v.Floats = append(v.Floats, r.Float64())
			case texts:
				v.Strings.Add([]byte("some text that is long"))
			case lists:
				v.Sparse.Add([]uint32{2, uint32(3 + r.IntN(90))}, []float32{1, 2})
			}
			v.AddRow(typ == Sparse || r.IntN(5) > 0 || typ == String)
		}
		e, err := newEncoder(mustColumn(f, typ, v.Rows))
		if err != nil {
			f.Fatal(err)
		}
		b, _, err := e.encode(1, &v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint8(i), uint16(v.Rows))
		f.Add(b[:len(b)-3], uint8(i), uint16(v.Rows))
	}
	f.Fuzz(func(t *testing.T, b []byte, typ uint8, rows uint16) {
		if len(b) < blockHead {
			return
		}
		c := mustColumn(t, types[int(typ)%len(types)], 1+int(rows)%rowsMost)
		dict := Strings{Off: []uint32{0, 1, 3}, Bytes: []byte("abc")}
		b = append([]byte{}, b...)
		c.seal(1, b)
		d := decoder{column: c, rawMost: 1 << 20, strings: &dict}
		var got, again Values
		if d.open(1, b) != nil || d.appendTo(&got, 0, int(c.Rows)) != nil || got.check(c) != nil {
			return
		}
		e, err := newEncoder(c)
		if err != nil {
			t.Fatal(err)
		}
		b, raw, err := e.encode(1, &got)
		if err != nil {
			t.Fatal(err)
		}
		d = decoder{column: c, rawMost: uint32(raw), strings: &dict}
		if err := d.open(1, b); err != nil {
			t.Fatal(err)
		}
		if err := d.appendTo(&again, 0, int(c.Rows)); err != nil || !same(&got, &again) {
			t.Fatalf("not the same after coding it again: %v", err)
		}
	})
}

// same reports whether rows are the same, bit by bit.
func same(a, b *Values) bool {
	for i := range a.Rows {
		if a.Null(i) != b.Null(i) || !a.Null(i) && a.text(i) != b.text(i) {
			return false
		}
	}
	return a.Rows == b.Rows
}

// FuzzPage decodes any page and end with checksums that fit.
func FuzzPage(f *testing.F) {
	c := mustColumn(f, Int64, 9)
	p := page{place: 4096, entries: []entry{{bytes: 77, least: 1, greatest: 2}}}
	b := make([]byte, 4096)
	p.encode(b)
	f.Add(b)
	f.Add(c.encodeEnd(end{pages: 1, directory: 8192, largest: 77, raw: 70}))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := make([]byte, 4096)
		copy(b, data)
		var p, again page
		if p.decode(b) == nil {
			p.encode(b)
			if err := again.decode(b); err != nil || !reflect.DeepEqual(p, again) {
				t.Fatal(err)
			}
		}
		copy(b, data)
		c := mustColumn(t, Int64, 9)
		c.seal(endNumber, b)
		x, err := c.decodeEnd(b, 4096*5)
		if err != nil {
			return
		}
		if y, err := c.decodeEnd(c.encodeEnd(x), 4096*5); err != nil || x != y {
			t.Fatal(err)
		}
	})
}

// TestPacked packs numbers of every width; any range of them comes back.
func TestPacked(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for width := range 65 {
		for _, n := range []int{0, 1, 2, 7, 8, 9, 100} {
			v := make([]int64, n)
			for i := range v {
				if width > 0 {
					v[i] = int64(r.Uint64()>>(64-width)) - 7
				}
			}
			b := append(appendPacked(nil, v), "rest"...)
			p, rest, err := parsePacked(b, n)
			if err != nil || string(rest) != "rest" {
				t.Fatal(width, n, err)
			}
			from := r.IntN(n + 1)
			if got := p.appendTo(nil, from, n); len(got) > 0 && !reflect.DeepEqual(got, v[from:]) {
				t.Fatalf("%d bits: %v, want %v", width, got, v[from:])
			}
			for i := range v {
				if p.at(i) != v[i] {
					t.Fatalf("%d bits: number %d is %d, want %d", width, i, p.at(i), v[i])
				}
			}
			if _, _, err := parsePacked(b[:max(0, packedHead+len(p.data)-1)], n); err == nil {
				t.Fatalf("%d bits: a byte less is enough for %d", width, n)
			}
		}
	}
}

// TestKeys holds that keys sort as their values.
func TestKeys(t *testing.T) {
	floats := []float64{-1e300, -2, -1e-300, 0, 1e-300, 1, 1e300}
	texts := []string{"", "a", "aa", "ab", "b\x00", "b\x01", "zzzzzzzz", "zzzzzzzzz"}
	numbers := []int64{-1 << 63, -1, 0, 5, 1<<63 - 1}
	for i := range numbers[1:] {
		if keyOfInt(numbers[i]) >= keyOfInt(numbers[i+1]) {
			t.Error(numbers[i])
		}
	}
	for i := range floats[1:] {
		if keyOfFloat(floats[i]) >= keyOfFloat(floats[i+1]) {
			t.Error(floats[i])
		}
	}
	for i := range texts[1:] {
		if keyOfString([]byte(texts[i])) > keyOfString([]byte(texts[i+1])) {
			t.Error(texts[i])
		}
	}
	if binary.BigEndian.Uint64([]byte("abcdefgh")) != keyOfString([]byte("abcdefghi")) {
		t.Error("not the first 8 bytes")
	}
}
