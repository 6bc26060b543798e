package ids

import (
	"fmt"
	"testing"

	"gdb/internal/rng"
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BenchmarkIDs measures lookups in a dictionary in memory, and its check.
func BenchmarkIDs(b *testing.B) {
	const nodes, batch = 200_000, 1000
	exts := names(nodes)
	fs := vfs.NewMem()
	m, ids := mustIDs(b, fs, exts)
	b.Run("op=Internal", func(b *testing.B) {
		for i := uint64(0); b.Loop(); i++ {
			if _, err := ids.Internal(b.Context(), exts[rng.Key(i)%nodes]); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, order := range []string{"random", "ascending"} {
		b.Run("op=External/order="+order, func(b *testing.B) {
			dst, of := make([]string, 0, batch), make([]kv.NodeID, batch)
			for i := uint64(0); b.Loop(); i++ {
				for k := range of {
					of[k] = kv.NodeID(i*batch+uint64(k)) % nodes
					if order == "random" {
						of[k] = kv.NodeID(rng.Key(uint64(of[k])) % nodes)
					}
				}
				var err error
				if dst, err = ids.External(b.Context(), of, dst[:0]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/id")
		})
	}
	for _, full := range []bool{false, true} {
		b.Run(fmt.Sprintf("op=Verify/full=%t", full), func(b *testing.B) {
			b.SetBytes(m.Files[0].Size + m.Files[1].Size)
			for b.Loop() {
				found, err := Verify(b.Context(), testDevice(b), fs, "store", m, full)
				if err != nil || len(found) > 0 {
					b.Fatal(found, err)
				}
			}
		})
	}
}

// BenchmarkForwardWriter measures writing without the sort before it.
func BenchmarkForwardWriter(b *testing.B) {
	exts := names(1000)
	w, err := newForwardForTest(vfs.NewMem())
	if err != nil {
		b.Fatal(err)
	}
	for i := uint64(0); b.Loop(); i++ {
		if err := w.Add(i<<20, []byte(exts[i%1000]), kv.NodeID(i)); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Abort(); err != nil {
		b.Fatal(err)
	}
}
