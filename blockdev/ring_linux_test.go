package blockdev

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// withSetup replaces the system call that makes rings, for one test.
func withSetup(t *testing.T, setup func(uint32, *ringParams) (int, error)) {
	real := ringSetup
	ringSetup = setup
	t.Cleanup(func() { ringSetup = real })
}

func TestRingRefused(t *testing.T) {
	for errno, word := range map[unix.Errno]string{
		unix.EPERM:  "forbidden here (EPERM",
		unix.EACCES: "forbidden here (EACCES",
		unix.ENOSYS: "no io_uring (ENOSYS",
		unix.ENOMEM: "may not lock enough memory (ENOMEM",
		unix.EINVAL: "does not work here",
		unix.ETIME:  "does not answer here",
	} {
		withSetup(t, func(uint32, *ringParams) (int, error) { return -1, errno })
		dev, err := Open(Options{})
		if err != nil {
			t.Fatal(err)
		}
		info := dev.Info()
		if info.Backend != Pread || !strings.Contains(info.Why, word) ||
			info.QueueDepth != poolDepth {
			t.Errorf("%v: %+v, want the pread pool because %q", errno, info, word)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		_, err = Open(Options{Backend: URing})
		if !errors.Is(err, errno) || !strings.Contains(err.Error(), word) {
			t.Errorf("%v: opening the ring backend gives %v", errno, err)
		}
	}
}

// TestRingWaitsNoLonger: a read that is never answered, here of a pipe, is not waited for.
func TestRingWaitsNoLonger(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r, err := newRing(4)
	if err != nil || !r.timed {
		t.Skipf("no io_uring with limited waits on this machine: %v", err)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	buf := AlignedBuffer(512)
	r.read(int32(pipe[0]), -1, buf, 0, 0)
	if err := r.enter(0); err != nil {
		t.Fatal(err)
	}
	if err := r.enterFor(1, 10*time.Millisecond); !errors.Is(err, unix.ETIME) {
		t.Errorf("%v, want ETIME", err)
	}
	if _, err := unix.Write(pipe[1], []byte("late")); err != nil {
		t.Fatal(err)
	}
	if err := r.enterFor(1, time.Minute); err != nil {
		t.Errorf("an answer within the limit: %v", err)
	}
	answers := 0
	r.reap(func(_ uint64, n int32) { answers += int(n) })
	if answers != 4 || string(buf[:4]) != "late" {
		t.Errorf("%d bytes, %q", answers, buf[:4])
	}
	if err := errors.Join(r.close(), unix.Close(pipe[0]), unix.Close(pipe[1])); err != nil {
		t.Error(err)
	}
}

// TestOlderKernels refuses the better modes one after the other, as older kernels do. The last
// two need the array of indices between queue and entries.
func TestOlderKernels(t *testing.T) {
	dev, err := Open(Options{Backend: URing})
	if err != nil {
		t.Skipf("no io_uring on this machine: %v", err)
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	real := ringSetup
	for k, mode := range ringModes {
		t.Run(fmt.Sprintf("mode=%d", k), func(t *testing.T) {
			withSetup(t, func(n uint32, p *ringParams) (int, error) {
				if p.flags&^mode.flags != 0 {
					return -1, unix.EINVAL
				}
				return real(n, p)
			})
			dev, err := Open(Options{Backend: URing, QueueDepth: 6})
			if err != nil {
				t.Fatal(err)
			}
			if why := dev.Info().Why; !strings.Contains(why, mode.name) {
				t.Errorf("mode %q is not told: %s", mode.name, why)
			}
			readWhole(t, dev, t.TempDir())
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// readWhole writes a file into dir and compares what dev reads of it.
func readWhole(t *testing.T, dev Device, dir string) {
	t.Helper()
	path, want := filepath.Join(dir, "gdb-test"), make([]byte, 64<<10)
	for i := range want {
		want[i] = byte(i * 7 >> 3)
	}
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := dev.OpenFile(vfs.Default, path)
	if err != nil {
		t.Fatal(err)
	}
	buf := AlignedBuffer(len(want))
	var reqs []Request
	for off := 0; off < len(want); off += Align {
		reqs = append(reqs, Request{File: f, Off: int64(off), Buf: buf[off : off+Align]})
	}
	if err := dev.ReadBatch(t.Context(), reqs); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(buf, want) {
		t.Error("not the bytes of the file")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestStopWhileFilling stops a batch after it was looked at and before its last request is queued:
// it is over once, or the next user of its memory would be told that its reads are done.
func TestStopWhileFilling(t *testing.T) {
	for requests := 1; requests <= 3; requests++ {
		u := &uring{slots: make([]inFlight, requests)}
		for i := range requests {
			u.free = append(u.free, uint32(i))
		}
		b := &batch{reqs: make([]Request, requests), done: make(chan struct{}, 9)}
		for i := range b.reqs {
			b.reqs[i].File = &file{}
		}
		b.left.Store(int64(requests))
		b.stop.Store(true)
		if u.fillFrom(b) || len(b.done) != 1 || len(u.free) != requests || u.inFlight != 0 {
			t.Errorf("%d requests: over %d times, %d slots are free, %d reads in flight",
				requests, len(b.done), len(u.free), u.inFlight)
		}
	}
}

// TestFileSystemInMemory reads from tmpfs, where O_DIRECT is not what it says.
func TestFileSystemInMemory(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "gdb")
	if err != nil {
		t.Skipf("no tmpfs: %v", err)
	}
	defer os.RemoveAll(dir)
	for _, backend := range []Backend{Auto, Pread} {
		dev, err := Open(Options{Backend: backend})
		if err != nil {
			t.Fatal(err)
		}
		readWhole(t, dev, dir)
		if why := dev.Info().Why; !strings.Contains(why, "1 opened without O_DIRECT") ||
			!strings.Contains(why, dir) {
			t.Errorf("%s does not tell how it reads the file: %s", backend, why)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestManyFiles opens more files than can be registered with the ring, and its slots again.
func TestManyFiles(t *testing.T) {
	dev, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	const n = fileSlots + 10
	for round := range 2 {
		var files []File
		var reqs []Request
		for i := range n {
			path := filepath.Join(dir, fmt.Sprint(i))
			content := bytes.Repeat([]byte{byte(i), byte(i >> 8), byte(round), 1}, Align/4)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := dev.OpenFile(vfs.Default, path)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
			reqs = append(reqs, Request{File: f, Buf: AlignedBuffer(Align)})
		}
		if err := dev.ReadBatch(t.Context(), reqs); err != nil {
			t.Fatal(err)
		}
		for i, r := range reqs {
			if !bytes.Equal(r.Buf[:4], []byte{byte(i), byte(i >> 8), byte(round), 1}) {
				t.Fatalf("file %d: got the bytes of another file", i)
			}
			if err := files[i].Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMappedFault copies from a page behind the end of a file that was cut off.
func TestMappedFault(t *testing.T) {
	dev, err := Open(Options{Backend: MMap})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := dev.OpenFile(vfs.Default, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	err = dev.ReadBatch(t.Context(), []Request{{File: f, Off: 4096, Buf: AlignedBuffer(8192)}})
	if !errors.Is(err, ErrTruncated) || errors.Is(err, unix.EIO) {
		t.Errorf("got %v, want ErrTruncated alone", err)
	}
	if err := errors.Join(f.Close(), dev.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestRefusedCompletion gives the ring an answer of the kernel that is an error: it is one, and not
// bytes that were read.
func TestRefusedCompletion(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EPERM, unix.EIO, unix.ENODATA} {
		req := Request{File: &file{path: "x", src: nil}, Buf: make([]byte, Align)}
		b := &batch{done: make(chan struct{}, 1), reqs: []Request{req}}
		b.left.Store(1)
		u := &uring{dev: &device{}, slots: []inFlight{{b: b}}, inFlight: 1}
		u.complete(0, -int32(errno))
		select {
		case <-b.done:
		default:
			t.Fatalf("%v: the request is not over", errno)
		}
		if err := b.err(t.Context()); !errors.Is(err, errno) {
			t.Errorf("%v: the batch ended with %v", errno, err)
		}
	}
}
