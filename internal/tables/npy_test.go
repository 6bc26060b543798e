package tables

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// readAll streams an array from element first on, n elements at a time.
func readAll(a *Array, first int64, n int) (out []byte, err error) {
	s, err := a.Stream(first)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for s.Left() > 0 {
		b, err := s.Next(context.Background(), int(min(int64(n), s.Left())))
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	return out, nil
}

func TestHeaders(t *testing.T) {
	// The first is what numpy.save writes for an array of float32 of shape (3, 4).
	for _, c := range []struct {
		text  string
		want  string // of Header, or a part of the error
		wrong bool
	}{
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }        \n",
			"f32 false (3, 4)",
			false},
		{"{'descr': '>i8', 'fortran_order': True, 'shape': (5,), }\n", "i64 true (5,)", false},
		{"{'shape': (), 'descr': '|b1', 'fortran_order': False}", "bool false ()", false},
		{`{"descr": "<u2", "fortran_order": False, "shape": (2L, 0L)}`, "u16 false (2, 0)", false},
		{"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", "pickled", true},
		{"{'descr': '<U5', 'fortran_order': False, 'shape': (3,), }", "neither bool", true},
		{"{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }", "neither bool", true},
		{"{'descr': '|i8', 'fortran_order': False, 'shape': (3,), }", "neither bool", true},
		{"{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (3,), }", "records", true},
		{"{'descr': '<f4', 'fortran_order': False, }", "missing", true},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }", "shape", true},
		{"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (3,), }", "no False", true},
		{"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
			"too large", true},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), } x", "text after", true},
		{"{'descr': '<f4", "without end", true},
		{"", "no {", true},
	} {
		h, err := parseHeader(c.text)
		switch {
		case c.wrong && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		case !c.wrong && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case !c.wrong:
			if got := fmt.Sprint(h.DType, h.Fortran, " ", h.ShapeString()); got != c.want {
				t.Errorf("%s: %s, want %s", c.text, got, c.want)
			}
		}
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := vfs.NewMem()
		descr := rapid.SampledFrom([]string{"<i8", ">i8", "<i4", "<u4", ">i2", "|u1", "|i1", "|b1",
			"<f2", "<f4", ">f4", "<f8"}).Draw(t, "descr")
		shape := rapid.SliceOfN(rapid.Uint64Range(0, 9), 0, 3).Draw(t, "shape")
		w, err := CreateArray(fs, "a.npy", descr, shape...)
		if err != nil {
			t.Fatal(err)
		}
		size := int(w.left)
		data := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "data")
		for rest := data; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if _, err := w.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		a, err := OpenArray(fs, "a.npy")
		if err != nil {
			t.Fatal(err)
		}
		if (a.StoredBytes-int64(size))%align != 0 || a.Stem != "a" || a.DType.descr() != descr {
			t.Fatalf("elements begin at %d; stem %s; %s", a.StoredBytes-int64(size), a.Stem,
				a.DType.descr())
		}
		first := rapid.Int64Range(0, a.Elements()).Draw(t, "first")
		got, err := readAll(a, first, rapid.IntRange(1, 50).Draw(t, "run"))
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(data[int(first)*a.DType.Size:])
		a.DType.toLittle(want)
		if !bytes.Equal(got, want) {
			t.Fatalf("got %x, want %x", got, want)
		}
	})
}

func TestWriterCounts(t *testing.T) {
	fs := vfs.NewMem()
	w, err := CreateArray(fs, "a.npy", "<i4", 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 9)); err == nil {
		t.Error("too many bytes are taken")
	}
	if w, err = CreateArray(fs, "b.npy", "<i4", 2); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err == nil {
		t.Error("missing bytes are not noticed")
	}
	if _, err := CreateArray(fs, "c.npy", "<i3", 2); err == nil {
		t.Error("<i3 is a dtype")
	}
}

func file(h *Header, data []byte) []byte { return append(appendHeader(nil, h), data...) }

func TestWrongFiles(t *testing.T) {
	whole := file(&Header{DType: DType{Kind: 'i', Size: 8}, Shape: []int64{2}}, make([]byte, 16))
	raw := make([]byte, 64)
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "empty"}, {"raw", raw, "no npy header; save"},
		{"truncated", whole[:len(whole)-1], "truncated"},
		{"trailing", append(slices.Clone(whole), 0), "trailing"},
		{"half header", whole[:40], "cut off"}, {"no size", whole[:8], "cut off"},
		{"version", append([]byte("\x93NUMPY\x09\x00"), whole[8:]...), "version 9"},
	} {
		fs := vfs.NewMem()
		layouttest.WriteFile(t, fs, "a.npy", c.data)
		var e *FormatError
		if _, err := OpenArray(fs, "a.npy"); !errors.As(err, &e) || e.File != "a.npy" ||
			!strings.Contains(e.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if _, err := OpenArray(vfs.NewMem(), "none.npy"); err == nil {
		t.Error("no error for a missing file")
	}
}

func TestVersion2(t *testing.T) {
	one := file(&Header{DType: DType{Kind: 'u', Size: 1}, Shape: []int64{2}}, []byte{7, 8})
	size := binary.LittleEndian.Uint16(one[8:])
	two := append([]byte("\x93NUMPY\x02\x00"), binary.LittleEndian.AppendUint32(nil,
		uint32(size))...)
	fs := vfs.NewMem()
	layouttest.WriteFile(t, fs, "a.npy", append(two, one[10:]...))
	a, err := OpenArray(fs, "a.npy")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(a, 0, 1); err != nil || !bytes.Equal(got, []byte{7, 8}) {
		t.Error(got, err)
	}
}

func TestConversions(t *testing.T) {
	for _, c := range []struct {
		dtype  string
		bytes  []byte
		id     uint64
		neg    bool
		double float64
	}{
		{"<i8", []byte{0xfe, 255, 255, 255, 255, 255, 255, 255}, ^uint64(1), true, -2},
		{"<i4", []byte{0xfe, 255, 255, 255}, ^uint64(1), true, -2},
		{"<i2", []byte{0xfe, 255}, ^uint64(1), true, -2},
		{"|i1", []byte{0xfe}, ^uint64(1), true, -2},
		{"<u8", []byte{0xff, 255, 255, 255, 255, 255, 255, 255}, math.MaxUint64, false, 1 << 64},
		{"<u4", []byte{0xfe, 255, 255, 255}, math.MaxUint32 - 1, false, math.MaxUint32 - 1},
		{"<u2", []byte{1, 2}, 513, false, 513}, {"|u1", []byte{0xfe}, 254, false, 254},
		{"|b1", []byte{1}, 1, false, 1},
		{"<f2", []byte{0x00, 0x3e}, 0, false, 1.5},
		{"<f2", []byte{0x01, 0x80}, 0, false, -0x1p-24},
		{"<f2", []byte{0xff, 0x7b}, 0, false, 65504},
		{"<f2", []byte{0x00, 0xfc}, 0, false, math.Inf(-1)},
		{"<f4", []byte{0, 0, 0xc0, 0x3f}, 0, false, 1.5},
		{"<f8", []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x3f}, 0, false, 1.5},
	} {
		d, err := parseDType(c.dtype)
		if err != nil {
			t.Fatal(err)
		}
		b := alignedBytes(3 * d.Size)
		copy(b[2*d.Size:], c.bytes)
		if d.Kind != 'f' {
			ids := make([]uint64, 3)
			if i := d.IDs(ids, b, 0, 1); ids[2] != c.id || (i == 2) != c.neg || !c.neg && i != -1 {
				t.Errorf("%s: id %d, first negative %d", c.dtype, ids[2], i)
			}
		}
		doubles, floats := make([]float64, 3), make([]float32, 3)
		d.Doubles(doubles, b)
		d.Floats(floats, b)
		if doubles[2] != c.double || floats[2] != float32(c.double) || doubles[0] != 0 {
			t.Errorf("%s: %v, %v, want %v", c.dtype, doubles[2], floats[2], c.double)
		}
	}
	nan := float16(0x7e00)
	if nan == nan {
		t.Error("a float16 NaN is", nan)
	}
}

// archive makes a zip of the members, in turn deflated and stored.
func archive(t testing.TB, members map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, 6)
	})
	for name, data := range members {
		method := zip.Store
		if strings.HasPrefix(name, "z") {
			method = zip.Deflate
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func testArchive(t testing.TB, n int) (zipped, data []byte) {
	data = make([]byte, 8*n)
	for i := range n {
		binary.LittleEndian.PutUint64(data[8*i:], uint64(i*i))
	}
	npy := file(&Header{DType: DType{Kind: 'i', Size: 8}, Shape: []int64{int64(n)}}, data)
	return archive(t, map[string][]byte{"stored.npy": npy, "zipped.npy": npy, "readme": {1}}), data
}

func TestArchive(t *testing.T) {
	z, data := testArchive(t, 5000)
	fs := vfs.NewMem()
	layouttest.WriteFile(t, fs, "a.npz", z)
	a, err := OpenArchive(fs, "a.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if len(a.Arrays) != 2 {
		t.Fatalf("%d members", len(a.Arrays))
	}
	for _, m := range a.Arrays {
		for _, first := range []int64{0, 1, 2500, 5000} {
			got, err := readAll(m, first, 700)
			if err != nil || !bytes.Equal(got, data[8*first:]) {
				t.Errorf("%s from %d: %d bytes, error %v", m.Name, first, len(got), err)
			}
		}
		if m.Name != "a.npz:"+m.Stem {
			t.Error(m.Name, m.Stem)
		}
	}
}

// TestDamagedArchive cuts an archive off and flips bytes: nothing but the right elements is read.
func TestDamagedArchive(t *testing.T) {
	z, data := testArchive(t, 300)
	try := func(name string, z []byte) error {
		fs := vfs.NewMem()
		layouttest.WriteFile(t, fs, "a.npz", z)
		a, err := OpenArchive(fs, "a.npz")
		if err != nil {
			return err
		}
		defer a.Close()
		if len(a.Arrays) < 2 { // the directory's names are under no checksum
			return &FormatError{What: "a member is gone"}
		}
		for _, m := range a.Arrays {
			got, err := readAll(m, 0, 100)
			if err != nil {
				return err
			}
			if !bytes.Equal(got, data) {
				t.Errorf("%s: other elements are read of %s", name, m.Name)
			}
		}
		return nil
	}
	var e *FormatError
	for n := range len(z) {
		if err := try(fmt.Sprintf("cut to %d", n), z[:n]); !errors.As(err, &e) {
			t.Fatalf("cut to %d of %d bytes: %v", n, len(z), err)
		}
	}
	for i := range z {
		x := slices.Clone(z)
		x[i] ^= 0x04
		if err := try(fmt.Sprintf("byte %d", i), x); err != nil && !errors.As(err, &e) {
			t.Fatalf("byte %d flipped: %v", i, err)
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(appendHeader(nil, &Header{DType: DType{Kind: 'f', Size: 4}, Shape: []int64{3, 4}}))
	f.Add([]byte("\x93NUMPY\x02\x00\x02\x00\x00\x00{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, _, err := readHeader(bytes.NewReader(data))
		if err != nil {
			return
		}
		again, start, err := readHeader(bytes.NewReader(appendHeader(nil, h)))
		if err != nil || start%align != 0 || again.DType != h.DType ||
			again.Fortran != h.Fortran || !slices.Equal(again.Shape, h.Shape) || h.Bytes() < 0 {
			t.Fatalf("%+v became %+v at %d: %v", h, again, start, err)
		}
	})
}

func FuzzArchive(f *testing.F) {
	z, _ := testArchive(f, 20)
	f.Add(z)
	f.Fuzz(func(t *testing.T, data []byte) {
		fs := vfs.NewMem()
		layouttest.WriteFile(t, fs, "a.npz", data)
		a, err := OpenArchive(fs, "a.npz")
		if err != nil {
			return
		}
		defer a.Close()
		for _, m := range a.Arrays {
			if m.Bytes() < 1<<20 {
				_, _ = readAll(m, 0, 1000)
				_, _ = readAll(m, m.Elements()/2, 1000)
			}
		}
	})
}

func BenchmarkIDs(b *testing.B) {
	d := DType{Kind: 'i', Size: 8}
	src := alignedBytes(1 << 20)
	dst := make([]uint64, 1<<16)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		d.IDs(dst, src, 0, 2)
		d.IDs(dst, src, 1, 2)
	}
}
