package blockdev_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gdb/blockdev"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// refusing takes no write of a descriptor that is set to direct writes, as some file systems do.
type refusing struct{ vfs.File }

func (f *refusing) Write(p []byte) (int, error) {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err == nil && flags&unix.O_DIRECT != 0 {
		return 0, syscall.EINVAL
	}
	return f.File.Write(p)
}

// TestWriter: a file has the bytes that were written to it, in whatever pieces, on a disk, on a
// file system that refuses direct writes, and in memory.
func TestWriter(t *testing.T) {
	for seed, size := range []int{0, 1, 511, 512, 4096, 70000, blockdev.WriteBytes - 1,
		blockdev.WriteBytes, 3*blockdev.WriteBytes + 512, 3*blockdev.WriteBytes + 513} {
		rnd := rand.New(rand.NewPCG(uint64(seed), 1))
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(rnd.Uint32())
		}
		disk := filepath.Join(t.TempDir(), "f")
		for _, fs := range []vfs.FS{vfs.Default, vfs.NewMem()} {
			for _, refuses := range []bool{false, true} {
				mustWrite(t, fs, disk, want, refuses, rnd)
				if got := mustRead(t, fs, disk); !bytes.Equal(got, want) {
					t.Fatalf("%d bytes, refuses=%v: other bytes were written", size, refuses)
				}
			}
		}
	}
}

// TestWritePages: pages take the place of what a file had, on a disk, on a file system that refuses
// direct writes, and in memory; their memory stays as it was.
func TestWritePages(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "f")
	for round, fs := range []vfs.FS{vfs.Default, vfs.Default, vfs.NewMem()} {
		if err := fs.MkdirAll(filepath.Dir(disk), 0o755); err != nil {
			t.Fatal(err)
		}
		for version := range 2 {
			pages := [][]byte{blockdev.AlignedBuffer(4096), blockdev.AlignedBuffer(3 << 20)}
			for _, p := range pages {
				for i := range p {
					p[i] = byte(i>>3 + version)
				}
			}
			want := bytes.Join(pages, nil)
			f, err := fs.OpenReadWrite(disk, vfs.WriteCategoryUnspecified)
			if err != nil {
				t.Fatal(err)
			}
			if round == 1 {
				f = &refusing{f}
			}
			err = errors.Join(blockdev.WritePages(f, pages...), f.Close())
			if got := mustRead(t, fs, disk); err != nil || !bytes.Equal(got, want) ||
				!bytes.Equal(bytes.Join(pages, nil), want) {
				t.Fatalf("round %d, version %d: other bytes were written: %v", round, version, err)
			}
		}
	}
}

// mustWrite writes want in pieces.
func mustWrite(t *testing.T, fs vfs.FS, path string, want []byte, refuses bool, rnd *rand.Rand) {
	t.Helper()
	if err := fs.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if refuses {
		f = &refusing{f}
	}
	w := blockdev.NewWriter(f)
	for len(want) > 0 {
		n := min(len(want), 1+rnd.IntN(300_000))
		if k, err := w.Write(want[:n]); k != n || err != nil {
			t.Fatalf("%d bytes of %d: %v", k, n, err)
		}
		want = want[n:]
	}
	if err := errors.Join(w.Finish(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte{1}); err == nil {
		t.Error("a finished file was written to")
	}
}

// TestFinishedWritersKeepNothing: a writer has no memory after Finish or Stop.
func TestFinishedWritersKeepNothing(t *testing.T) {
	const writers = 8
	var all []*blockdev.Writer
	heap := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before := heap()
	for i := range writers {
		f, err := vfs.NewMem().Create("f", vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		w := blockdev.NewWriter(f)
		if all = append(all, w); i%2 == 0 {
			w.Stop()
		} else if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
	}
	if kept := heap() - before; kept > writers*blockdev.WriteBytes/4 {
		t.Errorf("%d finished writers keep %d bytes", writers, kept)
	}
	runtime.KeepAlive(all)
}

func mustRead(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, st.Size())
	if _, err := f.ReadAt(b, 0); err != nil && len(b) > 0 {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}

// full is a file that has no room after a number of writes. It answers the last write as the kernel
// does.
type full struct {
	vfs.File
	writes int
}

func (f *full) Write(p []byte) (int, error) {
	if f.writes--; f.writes < 0 {
		n, err := f.File.Write(p[:len(p)/2])
		return n, errors.Join(err, syscall.ENOSPC)
	}
	return f.File.Write(p)
}

// TestWriterFails: a full disk is reported, by the write after it or at the latest by Finish, and
// for
// good.
func TestWriterFails(t *testing.T) {
	f, err := vfs.NewMem().Create("f", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	w, failed := blockdev.NewWriter(&full{File: f, writes: 2}), 0
	for range 5 {
		_, err := w.Write(make([]byte, blockdev.WriteBytes/2))
		if errors.Is(err, syscall.ENOSPC) {
			failed++
		}
	}
	if failed != 2 || !errors.Is(w.Finish(), syscall.ENOSPC) {
		t.Errorf("%d writes of 5 failed; at the end %v", failed, w.Finish())
	}
	w = blockdev.NewWriter(&full{File: f})
	if _, err := w.Write([]byte{1}); err != nil || !errors.Is(w.Finish(), syscall.ENOSPC) {
		t.Errorf("at the end: %v, %v", err, w.Finish())
	}
}

// slow takes its time for a write.
type slow struct {
	vfs.File
	written int
}

func (f *slow) Write(p []byte) (int, error) {
	time.Sleep(20 * time.Millisecond)
	f.written += len(p)
	return len(p), nil
}

// TestWriterStops: after Stop nothing is being written, and nothing can be.
func TestWriterStops(t *testing.T) {
	synctest.Test(t, writerStops) // whose clock goes on when the writer waits for the slow file
}

func writerStops(t *testing.T) {
	memory, err := vfs.NewMem().Create("f", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	f := &slow{File: memory}
	w := blockdev.NewWriter(f)
	if _, err := w.Write(make([]byte, blockdev.WriteBytes/2+1)); err != nil {
		t.Fatal(err)
	}
	w.Stop()
	if f.written != blockdev.WriteBytes/2 {
		t.Errorf("%d bytes were written", f.written)
	}
	if n, err := w.Write([]byte{1}); n != 0 || err == nil || w.Finish() == nil {
		t.Errorf("a stopped writer took %d bytes, %v", n, err)
	}
}
