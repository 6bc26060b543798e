package input

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"
)

func memFile(t testing.TB, name string, data []byte) vfs.FS {
	fs := vfs.NewMem()
	layouttest.WriteFile(t, fs, name, data)
	return fs
}

// readTexts reads all columns as text, with the line of each row, by way of a small buffer.
func readTexts(t testing.TB, data []byte, spec Spec, buffer int) (rows [][]string, lines []int64,
	bad []Bad, err error) {
	for i := range spec.Width {
		spec.Columns = append(spec.Columns, Column{Field: i, Kind: Text})
	}
	r, err := openText(memFile(t, "f", data), "f", spec, buffer)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if cerr := r.Close(); cerr != nil {
			t.Fatal(cerr)
		}
	}()
	for {
		b, err := r.Next(context.Background())
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return rows, lines, bad, err
		}
		bad = append(bad, b.Bad...)
		for i := range b.Rows {
			var row []string
			for c := range b.Columns {
				row = append(row, string(b.Columns[c].Texts[i]))
			}
			rows = append(rows, row)
			if b.Lines != nil {
				lines = append(lines, b.Lines[i])
			} else {
				lines = append(lines, b.First+int64(i))
			}
		}
	}
}

func TestRows(t *testing.T) {
	comma := Format{Delim: ',', Quotes: true}
	header := comma
	header.Header = true
	snap := Format{Comment: '#'}
	for _, c := range []struct {
		name, data string
		format     Format
		want       string // rows separated by /, fields by |, each with its line
	}{
		{"plain", "1,2\n3,4\n", comma, "1:1|2 / 2:3|4"},
		{"no line end", "1,2\n3,4", comma, "1:1|2 / 2:3|4"},
		{"crlf", "1,2\r\n3,4\r\n", comma, "1:1|2 / 2:3|4"},
		{"blank lines", "\n1,2\n\n \r\n3,4\n\n", comma, "2:1|2 / 5:3|4"},
		{"mark of UTF-8", "\ufeff1,2\n", comma, "1:1|2"},
		{"header", "a,b\n1,2\n", header, "2:1|2"},
		{"header after a mark", "\ufeffa,b\n1,2\n", header, "2:1|2"},
		{"blanks around", " 1 ,\t2 \n", comma, "1:1|2"},
		{"empty fields", ",\n1,\n", comma, "1:| / 2:1|"},
		{"quotes", `"a,b","say ""hi"""` + "\n" + `c,"d"` + "\n", comma,
			`1:a,b|say "hi" / 2:c|d`},
		{"line end in quotes", "\"a\nb\",c\n1,2\n", comma, "1:a\nb|c / 3:1|2"},
		{"blanks outside quotes", ` "a" , " b" ` + "\n", comma, "1:a| b"},
		{"quote inside a field", "5\" disk,2\n", comma, `1:5" disk|2`},
		{"quotes are off", "\"a,b\"\n", Format{Delim: ','}, `1:"a|b"`},
		{"snap", "# c\n1\t2\n  3   4  \r\n# c\n5 6", snap, "2:1|2 / 3:3|4 / 5:5|6"},
		{"tabs", "a b\tc\n", Format{Delim: '\t'}, "1:a b|c"},
		{"only comments", "# c\n# d\n", snap, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, buffer := range []int{1, 2, 7, 16, 1 << 16} {
				rows, lines, bad, err := readTexts(t, []byte(c.data),
					Spec{Format: c.format, Width: 2}, buffer)
				if err != nil || len(bad) > 0 {
					t.Fatal(err, bad)
				}
				var got []string
				for i, r := range rows {
					got = append(got, fmt.Sprintf("%d:%s", lines[i], strings.Join(r, "|")))
				}
				if s := strings.Join(got, " / "); s != c.want {
					t.Errorf("buffer %d: %q, want %q", buffer, s, c.want)
				}
			}
		})
	}
}

func TestBadRows(t *testing.T) {
	for _, c := range []struct {
		field, what string
		kind        Kind
		notInteger  bool
	}{
		{"-3", `id "-3" is negative`, ID, false},
		{"x", `id "x" is not an integer`, ID, true},
		{"007", `id "007" is not an integer`, ID, true},
		{"+7", `id "+7" is not an integer`, ID, true},
		{"18446744073709551616", "is not an integer", ID, true},
		{"", "an id, is empty", ID, false},
		{"", "an id, is empty", Key, false},
		{"x", "is not a number", Float, false},
		{"", "is empty", Float, false},
		{"nan", "not a finite number", Float, false},
		{"inf", "not a finite number", Float, false},
		{"1e39", "not a finite number", Float, false},
		{"inf", "not a finite number", Optional, false},
		{"1,2", "3 fields instead of 2", ID, false},
		{`"a"b`, "text after a closing quote", Key, false},
	} {
		t.Run(c.field+"_"+c.what, func(t *testing.T) {
			data := "1,0\n2," + c.field + "\n3,0\n"
			spec := Spec{Format: Format{Delim: ',', Quotes: true}, Width: 2,
				Columns: []Column{{Field: 0, Kind: ID}, {Field: 1, Kind: c.kind}}}
			r, err := OpenText(memFile(t, "f", []byte(data)), "f", spec)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			b, err := r.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if len(b.Bad) != 1 || b.Bad[0].Line != 2 || !strings.Contains(b.Bad[0].What, c.what) ||
				b.Bad[0].NotInteger != c.notInteger {
				t.Errorf("bad rows %+v, want line 2: %s", b.Bad, c.what)
			}
			if !slices.Equal(b.Columns[0].IDs, []uint64{1, 3}) || b.Rows != 2 ||
				!slices.Equal(b.Lines, []int64{1, 3}) {
				t.Errorf("rows %v of lines %v are left", b.Columns[0].IDs, b.Lines)
			}
		})
	}
}

func TestVector(t *testing.T) {
	data := "a,1,2.5\nb,nan,\nc,-1e3,0x1p-2\n"
	spec := Spec{Format: Format{Delim: ','}, Width: 3, Columns: []Column{{Field: 0, Kind: Key}},
		Vector: []int{1, 2}}
	for _, allow := range []bool{false, true} {
		spec.NaN = allow
		r, err := OpenText(memFile(t, "f", []byte(data)), "f", spec)
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if allow && (b.Rows != 3 || len(b.Vector) != 6 || b.Vector[2] == b.Vector[2]) {
			t.Errorf("with NaN: %d rows, %v", b.Rows, b.Vector)
		}
		if !allow && (b.Rows != 2 || !slices.Equal(b.Vector, []float32{1, 2.5, -1000, 0.25}) ||
			len(b.Bad) != 1 || b.Bad[0].Line != 2) {
			t.Errorf("without NaN: %d rows, %v, bad %+v", b.Rows, b.Vector, b.Bad)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func gzipped(t testing.TB, data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstded(t testing.TB, data []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(data, nil)
}

// bzip2ed is "1,2\n3,4\n", compressed with bzip2 -9.
const bzip2ed = "BZh91AY&SY\x93\xb7\r\x0c\x00\x00\x02X\x00\x00\x10\x00\x04<" +
	"\x00 \x000\xc0\x08i\xb2\x88#'\x8b\xb9\"\x9c(HI\xdb\x86\x86\x00"

// TestBzip2 is TestCompressed for a form that the standard library only reads.
func TestBzip2(t *testing.T) {
	spec := Spec{Format: Format{Delim: ','}, Width: 2}
	for _, level := range []byte{'1', '9'} {
		z := []byte(bzip2ed)
		z[3] = level
		rows, _, bad, err := readTexts(t, z, spec, 64)
		if err != nil || len(bad) > 0 || fmt.Sprint(rows) != "[[1 2] [3 4]]" {
			t.Error(rows, bad, err)
		}
	}
	var e *Error
	for n := len("BZh91AY&SY"); n < len(bzip2ed); n++ {
		if _, _, _, err := readTexts(t, []byte(bzip2ed[:n]), spec, 64); !errors.As(err, &e) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
}

// TestCompressed reads a compressed file whole, cut off at every length, and with a flipped byte:
// damage is always found.
func TestCompressed(t *testing.T) {
	var data []byte
	for i := range 300 {
		data = fmt.Appendf(data, "%d,%d\n", i*i, i*7919%1000)
	}
	spec := Spec{Format: Format{Delim: ','}, Width: 2}
	want, _, _, err := readTexts(t, data, spec, bufferBytes)
	if err != nil || len(want) != 300 {
		t.Fatal(len(want), err)
	}
	for name, z := range map[string][]byte{"gzip": gzipped(t, data), "zstd": zstded(t, data),
		"two gzip members": append(gzipped(t, data[:100]), gzipped(t, data[100:])...)} {
		t.Run(name, func(t *testing.T) {
			got, _, bad, err := readTexts(t, z, spec, 64)
			if err != nil || len(bad) > 0 || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatal("rows differ", err, bad)
			}
			var e *Error
			for n := 4; n < len(z); n++ {
				_, _, bad, err := readTexts(t, z[:n], spec, 64)
				// A file cut between two members is a whole file; its last row may be half.
				if !errors.As(err, &e) && name != "two gzip members" {
					t.Fatalf("cut to %d of %d bytes: %v, %v", n, len(z), err, bad)
				}
			}
			for i := 12; i < len(z); i++ {
				x := slices.Clone(z)
				x[i] ^= 0x10
				got, _, _, err := readTexts(t, x, spec, 64)
				if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("byte %d flipped: no error, but other rows", i)
				}
			}
		})
	}
}

func TestErrors(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("dir", 0o755); err != nil {
		t.Fatal(err)
	}
	layouttest.WriteFile(t, fs, "empty", nil)
	layouttest.WriteFile(t, fs, "data", []byte("1,2\n"))
	var e *Error
	for _, name := range []string{"dir", "empty"} {
		if _, err := OpenText(fs, name, Spec{Width: 2}); !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := OpenText(fs, "none", Spec{Width: 2}); err == nil || errors.As(err, &e) {
		t.Errorf("missing file: %v", err)
	}
	// A failing disk is not the fault of the file.
	failure := errors.New("the disk is broken")
	broken := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileRead {
			return failure
		}
		return nil
	}))
	r, err := OpenText(broken, "data", Spec{Width: 2})
	if err == nil {
		_, err = r.Next(context.Background())
		r.Close()
	}
	if !errors.Is(err, failure) || errors.As(err, &e) {
		t.Errorf("failing disk: %v", err)
	}
}

func TestQuoteWithoutEnd(t *testing.T) {
	rows, _, bad, err := readTexts(t, []byte("1,2\n\"a,b\n3,4\n"),
		Spec{Format: Format{Delim: ',', Quotes: true}, Width: 2}, 4)
	if err != nil || len(rows) != 1 || len(bad) != 1 || bad[0].Line != 2 {
		t.Errorf("rows %v, bad %+v, error %v", rows, bad, err)
	}
}

func TestCloseEarly(t *testing.T) {
	data := bytes.Repeat([]byte("1,2\n"), 1<<20)
	r, err := OpenText(memFile(t, "f", data), "f", Spec{Format: Format{Delim: ','}, Width: 2,
		Columns: []Column{{Field: 0, Kind: ID}, {Field: 1, Kind: ID}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := r.Next(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	for range 100 {
		if _, err := r.Next(ctx); errors.Is(err, context.Canceled) {
			break
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestAgainstCSV compares with encoding/csv on files that it writes.
func TestAgainstCSV(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		width := rapid.IntRange(1, 4).Draw(rt, "width")
		field := rapid.StringMatching(`[a,;"0 \né]{0,6}`)
		var buf bytes.Buffer
		w := csv.NewWriter(&buf)
		w.UseCRLF = rapid.Bool().Draw(rt, "crlf")
		var want [][]string
		for range rapid.IntRange(1, 20).Draw(rt, "rows") {
			row := rapid.SliceOfN(field, width, width).Draw(rt, "row")
			for i, f := range row {
				// Blanks around a field that is not quoted are not part of it here.
				if f = strings.Trim(f, " "); width == 1 && f == "" {
					f = "x" // a blank line
				}
				row[i] = f
			}
			want = append(want, row)
			if err := w.Write(row); err != nil {
				rt.Fatal(err)
			}
		}
		w.Flush()
		data := buf.Bytes()
		if w.UseCRLF {
			for i, row := range want {
				for k, f := range row {
					want[i][k] = strings.ReplaceAll(f, "\n", "\r\n")
				}
			}
		}
		got, _, bad, err := readTexts(t, data, Spec{Format: Format{Delim: ',', Quotes: true},
			Width: width}, rapid.IntRange(1, 64).Draw(rt, "buffer"))
		if err != nil || len(bad) > 0 || fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("%q: got %q %v %v, want %q", data, got, bad, err, want)
		}
	})
}

func TestNumbers(t *testing.T) {
	for _, s := range []string{"0", "-0", "1", "1.", ".5", "-.5", ".", "-", "", "1..2", "1e5",
		"1e400",
		"0.1", "123456789012345", "1234567890123456", "12345678.9012345", "16777217",
		"0.3333333333",
		"1_000", "nan", "NaN", "inf", "-Infinity", "0x1p4", "+1", "1e-45", "9.999999e37"} {
		want, err := strconv.ParseFloat(s, 64)
		got, ok := ParseFloat([]byte(s))
		if ok != (err == nil) || ok && math.Float32bits(got) != math.Float32bits(float32(want)) {
			t.Errorf("%q: %v %v, want %v %v", s, got, ok, float32(want), err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`-?[0-9]{0,9}\.?[0-9]{0,9}(e-?[0-9]{1,2})?`).Draw(t, "s")
		want, err := strconv.ParseFloat(s, 64)
		got, ok := ParseFloat([]byte(s))
		if ok != (err == nil) || ok && got != float32(want) {
			t.Fatalf("%q: %v %v, want %v %v", s, got, ok, float32(want), err)
		}
	})
	for s, want := range map[string]uint64{"0": 0, "7": 7, "18446744073709551615": math.MaxUint64,
		"9999999999999999999": 9999999999999999999} {
		if got, ok := ParseID([]byte(s)); !ok || got != want {
			t.Errorf("id %s: %d %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "00", "01", "+1", "-1", "1 ", "a", "18446744073709551616",
		"+9999999999999999999", "99999999999999999999999"} {
		if got, ok := ParseID([]byte(s)); ok {
			t.Errorf("id %q is %d", s, got)
		}
	}
}

func TestHead(t *testing.T) {
	data := []byte("a,b\n" + strings.Repeat("1,2\n", 1000))
	fs := vfs.NewMem()
	layouttest.WriteFile(t, fs, "f", data)
	layouttest.WriteFile(t, fs, "z", gzipped(t, data))
	wide := []byte(strings.Repeat("x,", 5000) + "x\n1,2\n3")
	layouttest.WriteFile(t, fs, "wide", wide)
	for _, name := range []string{"f", "z"} {
		head, all, err := TextHead(fs, name, 100)
		if err != nil || all || len(head) < 100 || !bytes.HasPrefix(data, head) {
			t.Errorf("%s: %d bytes, all %v, error %v", name, len(head), all, err)
		}
		rows := TextRows(head, all, Format{Delim: ','}, 3)
		if fmt.Sprint(rows) != "[[a b] [1 2] [1 2]]" {
			t.Errorf("%s: rows %v", name, rows)
		}
		if _, all, err = TextHead(fs, name, 1<<20); err != nil || !all {
			t.Errorf("%s: all %v, error %v", name, all, err)
		}
	}
	if head, _, err := TextHead(fs, "wide", 10); err != nil || bytes.Count(head, []byte{'\n'}) < 2 {
		t.Errorf("wide: %d bytes, %v", len(head), err)
	}
}

// TestNoText: what is no text is reported from what it is, not read as rows of rubbish.
func TestNoText(t *testing.T) {
	tar := make([]byte, 512)
	copy(tar[257:], "ustar")
	for what, data := range map[string]string{
		"Matrix Market": "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n",
		"xz":            "\xfd7zXZ\x00\x00", "zip": "PK\x03\x04\n", "7z": "7z\xbc\xaf\n1,2\n",
		"Parquet": "PAR1\n",
		"HDF5":    "\x89HDF\r\n", "array": "\x93NUMPY",
		"UTF-16": "\xff\xfe1\x00", "tar": string(tar),
		"zero byte": "1,2\n3,\x00\n", "carriage returns": "a,b\r1,2\r",
	} {
		fs := vfs.NewMem()
		layouttest.WriteFile(t, fs, "f", []byte(data))
		layouttest.WriteFile(t, fs, "z", gzipped(t, []byte(data)))
		for _, name := range []string{"f", "z"} {
			var e *Error
			if _, _, err := TextHead(fs, name, 100); !errors.As(err, &e) ||
				!strings.Contains(e.What, what) || e.Do == "" {
				t.Errorf("%q in %s: %v", data, name, err)
			}
		}
	}
	for _, data := range []string{"1,2\r", "1,2\r\n3,4\r\n", "BZh,7\n", "PK,3\n"} {
		fs := vfs.NewMem()
		layouttest.WriteFile(t, fs, "f", []byte(data))
		if head, _, err := TextHead(fs, "f", 100); err != nil || string(head) != data {
			t.Errorf("%q: %q, %v", data, head, err)
		}
	}
}

// FuzzReader reads anything, with any buffer: never a panic, and the buffer changes nothing.
func FuzzReader(f *testing.F) {
	f.Add([]byte("1,2\n\"3\",4\r\n\n#x\n5,\"6\n\"\"\"\n"), uint8(3), byte(','))
	f.Add([]byte("1 2\n 3\t4"), uint8(1), byte(0))
	f.Add(gzipped(f, []byte("1,2\n")), uint8(9), byte(','))
	f.Fuzz(func(t *testing.T, data []byte, buffer uint8, delim byte) {
		if delim == '\n' || delim == '"' {
			return
		}
		spec := Spec{Format: Format{Delim: delim, Quotes: delim != 0, Comment: '#'}, Width: 2}
		rows, lines, bad, err := readTexts(t, data, spec, 1+int(buffer))
		rows2, lines2, bad2, err2 := readTexts(t, data, spec, 1<<12)
		// How much is read before damage is found depends on the buffer.
		if (err == nil) != (err2 == nil) || err == nil &&
			fmt.Sprint(rows, lines, bad) != fmt.Sprint(rows2, lines2, bad2) {
			t.Fatalf("buffer %d: %q %v %v %v\nbuffer 4096: %q %v %v %v", 1+int(buffer), rows, lines,
				bad, err, rows2, lines2, bad2, err2)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	var ints, texts, weighted []byte
	x := uint64(1)
	const rows = 1 << 20
	for range rows {
		x = x*6364136223846793005 + 1442695040888963407
		u, v := x>>42, x>>20&(1<<22-1)
		ints = fmt.Appendf(ints, "%d,%d\n", u, v)
		texts = fmt.Appendf(texts, "user_%07d,user_%07d\n", u, v)
		weighted = fmt.Appendf(weighted, "%d,%d,0.%06d\n", u, v, x%1000000)
	}
	id, key := []Column{{Field: 0, Kind: ID}, {Field: 1, Kind: ID}},
		[]Column{{Field: 0, Kind: Key}, {Field: 1, Kind: Key}}
	for _, c := range []struct {
		name    string
		data    []byte
		columns []Column
	}{{"ids=integer", ints, id}, {"ids=text", texts, key},
		{"ids=integer/weight", weighted, append(id, Column{Field: 2, Kind: Float})},
		{"ids=integer/gzip", gzipped(b, ints), id}, {"ids=integer/zstd", zstded(b, ints), id}} {
		b.Run(c.name, func(b *testing.B) {
			fs := memFile(b, "f", c.data)
			for b.Loop() {
				r, err := OpenText(fs, "f", Spec{Format: Format{Delim: ',', Quotes: true},
					Width: max(2, len(c.columns)), Columns: c.columns})
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for {
					batch, err := r.Next(context.Background())
					if err == io.EOF {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					n += batch.Rows
				}
				if n != rows {
					b.Fatal(n)
				}
				if err := r.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
