package columnfile_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// benchContents are columns whose reads are measured, with the bytes of a decoded row.
var benchContents = []struct {
	name, typ string
	dim       int
	bytes     int64
	add       func(r *rand.Rand, v *columnfile.Values)
}{
	{"bits=20", columnfile.Int64, 0, 8, func(r *rand.Rand, v *columnfile.Values) {
		v.Ints = append(v.Ints, int64(r.Uint64()>>44))
	}},
	{"bits=64", columnfile.Int64, 0, 8, func(r *rand.Rand, v *columnfile.Values) {
		v.Ints = append(v.Ints, int64(r.Uint64()))
	}},
	{"prices", columnfile.Float64, 0, 8, func(r *rand.Rand, v *columnfile.Values) {
		v.Floats = append(v.Floats, math.Round(100*r.ExpFloat64()*20)/100)
	}},
	{"kinds", columnfile.String, 0, 7, func(r *rand.Rand, v *columnfile.Values) {
		v.Strings.Add(fmt.Appendf(nil, "kind %02d", r.IntN(100)))
	}},
	{"texts", columnfile.String, 0, 48, func(r *rand.Rand, v *columnfile.Values) {
		v.Strings.Add(fmt.Appendf(nil, "%016x in words %016d", r.Uint64(), r.IntN(1e9)))
	}},
	{"words", columnfile.Sparse, 4714, 56, func(r *rand.Rand, v *columnfile.Values) {
		index := make([]uint32, 0, 14)
		for k := range uint32(14) {
			index = append(index, 330*k+r.Uint32N(330))
		}
		v.Sparse.Add(index, nil)
	}},
}

// BenchmarkColumn writes a million rows, 10 of the first two kinds, scans them from the disk and
// from the page cache, and gathers 20,000 rows at random places.
func BenchmarkColumn(b *testing.B) {
	for i, of := range benchContents {
		rows := 1_000_000
		if i < 2 {
			rows = 10_000_000
		}
		for _, nulls := range []int{0, 10} {
			b.Run(fmt.Sprintf("of=%s/nulls=%d", of.name, nulls), func(b *testing.B) {
				var v columnfile.Values
				for r := rand.New(rand.NewPCG(7, 7)); v.Rows < 1<<14; {
					if nulls > 0 && v.Rows%nulls == 0 {
						v.AddNull(of.typ)
						continue
					}
					of.add(r, &v)
					v.AddRow(true)
				}
				benchColumn(b, columnfile.Spec{Name: "x", Path: "x.col", Type: of.typ,
					Dim: of.dim}, &v, rows, of.bytes)
			})
		}
	}
}

// benchColumn measures a column of rows, of these bytes each, that repeat v.
func benchColumn(b *testing.B, spec columnfile.Spec, v *columnfile.Values, rows int, bytes int64) {
	fs, dir := vfs.Default, b.TempDir()
	var c kv.TableColumn
	var f kv.FileMeta
	b.Run("op=write", func(b *testing.B) {
		b.SetBytes(bytes * int64(rows))
		for b.Loop() {
			w, err := columnfile.NewWriter(fs, fs.PathJoin(dir, "x.col"), spec)
			for at := 0; at < rows && err == nil; at += v.Rows {
				err = w.Append(v)
			}
			if err == nil {
				c, f, err = w.Finish()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(f.Size)/float64(c.Rows), "bytes/row")
	})
	s := layout.NewStore(fs, dir, &kv.Meta{Files: []kv.FileMeta{f}})
	x, err := columnfile.Open(b.Context(), s, layouttest.Device(b), c, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("op=scan/io=auto", func(b *testing.B) { benchScan(b, x, bytes) })
	b.Run("op=gather", func(b *testing.B) { benchGather(b, x) })
	cached, err := columnfile.Open(b.Context(), s, devtest.Open(b, blockdev.Options{
		Backend: blockdev.Buffered}), c, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("op=scan/io=buffered", func(b *testing.B) { benchScan(b, cached, bytes) })
	if err := errors.Join(x.Close(), cached.Close()); err != nil {
		b.Error(err)
	}
}

// processTime is the CPU time of the process, which other work on the machine does not lengthen.
func processTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchScan(b *testing.B, x *columnfile.Reader, bytes int64) {
	b.SetBytes(bytes * int64(x.Meta().Rows))
	sum, begin := int64(0), processTime(b)
	for b.Loop() {
		err := x.Scan(b.Context(), 0, x.Meta().Rows, nil,
			func(_ uint64, v *columnfile.Values) error {
				for _, k := range v.Ints {
					sum += k
				}
				return nil
			})
		if err != nil {
			b.Fatal(err)
		}
	}
	rate := float64(bytes) * float64(x.Meta().Rows) * float64(b.N)
	b.ReportMetric(rate/1e6/(processTime(b)-begin).Seconds(), "MB/CPU-s")
}

func benchGather(b *testing.B, x *columnfile.Reader) {
	list, r := make([]uint64, 20000), rand.New(rand.NewPCG(7, 7))
	for i := range list {
		list[i] = r.Uint64N(x.Meta().Rows)
	}
	var out columnfile.Values
	b.ReportAllocs()
	before := x.BytesRead()
	for b.Loop() {
		if err := x.Gather(b.Context(), list, &out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(x.BytesRead()-before)/float64(b.N)/float64(len(list)), "read-B/row")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(list)), "ns/row")
}
