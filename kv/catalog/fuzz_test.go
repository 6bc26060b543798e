package catalog

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"unicode/utf8"

	"gdb/internal/codec"
	"gdb/kv"
)

// FuzzDecodeSeal also fixes the checksum, so that what stands behind it is reached.
func FuzzDecodeSeal(f *testing.F) {
	s := seal{kv.UUID{1}, 5, []sealedFile{{"000004.sst", 9, 8}, {"MANIFEST-000001", 7, 6}}}
	f.Add(s.encode())
	f.Add((&seal{}).encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= 4 {
			b = bytes.Clone(b)
			binary.LittleEndian.PutUint32(b, codec.Checksum(b[4:]))
		}
		got, err := decodeSeal(b)
		if err != nil {
			return
		}
		for _, file := range got.files {
			if found, ok := got.find(file.name); !ok || found != file {
				t.Fatalf("find(%q) = %v, %v", file.name, found, ok)
			}
		}
		if again := got.encode(); !bytes.Equal(again, b) {
			t.Fatalf("encoded again: %x, was %x", again, b)
		}
	})
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte("key"), encodeRecord([]byte("key"), []byte("payload")))
	f.Add([]byte{}, []byte{1, 2})
	f.Fuzz(func(t *testing.T, key, b []byte) {
		if payload, err := decodeRecord(key, b); err == nil &&
			!bytes.Equal(encodeRecord(key, payload), b) {
			t.Fatalf("record %x of %q is %x when encoded again", b, key, payload)
		}
		got, err := decodeRecord(key, encodeRecord(key, b))
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%x came back as %x, %v", b, got, err)
		}
		if _, err := decodeRecord(append(bytes.Clone(key), 1), encodeRecord(key, b)); err == nil {
			t.Fatal("the record of another key was taken")
		}
	})
}

// FuzzMeta decodes any bytes as metadata, and what comes out survives a round trip.
func FuzzMeta(f *testing.F) {
	b, err := marshal(*testMeta())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"Labels": null, "Files": []}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m, again kv.Meta
		if unmarshal(b, &m) != nil {
			return
		}
		b, err := marshal(m)
		if err != nil {
			return // a time that JSON cannot say
		}
		if err := unmarshal(b, &again); err != nil || !reflect.DeepEqual(m, again) &&
			m.Created.Equal(again.Created) && m.Created.Location() == again.Created.Location() {
			t.Fatalf("%+v came back as %+v, %v", m, again, err)
		}
	})
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "plain", "\xff", "\U0010FF42x\xed\xa0\x80", "caf\xe9 é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := escape(s)
		if !utf8.ValidString(e) || unescape(e) != s {
			t.Fatalf("%q became %q, and then %q", s, e, unescape(e))
		}
	})
}

func TestNumber(t *testing.T) {
	for _, v := range []float64{0, 1.5, -1e300, math.Inf(1), math.Inf(-1), math.NaN(),
		math.SmallestNonzeroFloat64} {
		b, err := json.Marshal(number(v))
		if err != nil {
			t.Fatal(err)
		}
		var got number
		if err := json.Unmarshal(b, &got); err != nil ||
			math.Float64bits(float64(got)) != math.Float64bits(v) {
			t.Errorf("%v became %s, and then %v, %v", v, b, got, err)
		}
	}
	if err := json.Unmarshal([]byte(`"x"`), new(number)); err == nil {
		t.Error("\"x\" was taken as a number")
	}
}
