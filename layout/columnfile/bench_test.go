package columnfile_test

import (
	"math/rand/v2"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BenchmarkColumn writes 10 million rows of numbers of these bits, scans them, and gathers 20,000
// rows at random places.
func BenchmarkColumn(b *testing.B) {
	const rows, batch = 10_000_000, 1 << 14
	for name, bits := range map[string]int{"bits=20": 20, "bits=64": 64} {
		b.Run(name, func(b *testing.B) {
			fs, dir, r := vfs.Default, b.TempDir(), rand.New(rand.NewPCG(7, 7))
			v := columnfile.Values{Rows: batch, Ints: make([]int64, batch)}
			for i := range v.Ints {
				v.Ints[i] = int64(r.Uint64() >> (64 - bits))
			}
			var c kv.TableColumn
			var f kv.FileMeta
			b.Run("op=write", func(b *testing.B) {
				b.SetBytes(8 * rows)
				for b.Loop() {
					w, err := columnfile.NewWriter(fs, fs.PathJoin(dir, "x.col"),
						columnfile.Spec{Name: "x", Path: "x.col", Type: columnfile.Int64})
					for at := 0; at < rows && err == nil; at += batch {
						err = w.Append(&v)
					}
					if err == nil {
						c, f, err = w.Finish()
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(f.Size)/rows, "bytes/row")
			})
			s := layout.NewStore(fs, dir, &kv.Meta{Files: []kv.FileMeta{f}})
			x, err := columnfile.Open(b.Context(), s, layouttest.Device(b), c, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.Run("op=scan", func(b *testing.B) { benchScan(b, x) })
			b.Run("op=gather", func(b *testing.B) { benchGather(b, x) })
			if err := x.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}

func benchScan(b *testing.B, x *columnfile.Reader) {
	b.SetBytes(8 * int64(x.Meta().Rows))
	sum := int64(0)
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
