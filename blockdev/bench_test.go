package blockdev_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"gdb/blockdev"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BenchmarkReadBatch reads from a file that the page cache holds, so that what is measured is the
// work of checking, queueing and completing a request, one system call's share and a copy.
func BenchmarkReadBatch(b *testing.B) {
	blockdev.RaiseGOMAXPROCS()
	dir, err := os.MkdirTemp("/dev/shm", "gdb")
	if err != nil {
		b.Skipf("no tmpfs: %v", err)
	}
	defer os.RemoveAll(dir)
	const blocks = 1024
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, make([]byte, blocks*blockdev.Align), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, backend := range []blockdev.Backend{blockdev.URing, blockdev.Pread, blockdev.MMap} {
		for _, n := range []int{100, 10_000} {
			b.Run(fmt.Sprintf("backend=%s/n=%d", backend, n), func(b *testing.B) {
				dev, err := blockdev.Open(blockdev.Options{Backend: backend})
				if err != nil {
					b.Skip(err)
				}
				defer dev.Close()
				f, err := dev.OpenFile(vfs.Default, path)
				if err != nil {
					b.Fatal(err)
				}
				defer f.Close()
				reqs, buf := make([]blockdev.Request, n), blockdev.AlignedBuffer(n*blockdev.Align)
				for i := range reqs {
					reqs[i] = blockdev.Request{File: f, Off: rand.Int64N(blocks) * blockdev.Align,
						Buf: buf[i*blockdev.Align : (i+1)*blockdev.Align]}
				}
				for b.Loop() {
					if err := dev.ReadBatch(b.Context(), reqs); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/read")
			})
		}
	}
}
