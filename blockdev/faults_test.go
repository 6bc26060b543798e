package blockdev

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const faultFileBytes = 256 << 10

// faultCase is an opened device with a hook on its raw answers, and a file.
type faultCase struct {
	dev     Device
	file    File
	path    string
	content []byte
	closed  bool
}

// eachBackend runs a test on every backend, with a depth that makes requests wait.
func eachBackend(t *testing.T, h func(t *testing.T) hook, test func(*testing.T, *faultCase)) {
	RaiseGOMAXPROCS()
	for _, backend := range []Backend{URing, Pread, Buffered, MMap, Memory} {
		t.Run("backend="+string(backend), func(t *testing.T) {
			dev, err := Open(Options{Backend: backend, QueueDepth: 5})
			if err != nil && backend == URing {
				t.Skipf("no io_uring on this machine: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			dev.(*device).hook = h(t)
			c := &faultCase{dev: dev, path: filepath.Join(t.TempDir(), "f"),
				content: make([]byte, faultFileBytes)}
			for i := range c.content {
				c.content[i] = byte(i>>9) ^ byte(i)
			}
			if err := os.WriteFile(c.path, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			if c.file, err = dev.OpenFile(vfs.Default, c.path); err != nil {
				t.Fatal(err)
			}
			test(t, c)
			c.close(t)
		})
	}
}

// close closes the file and the device, once.
func (c *faultCase) close(t *testing.T) {
	t.Helper()
	if c.closed {
		return
	}
	c.closed = true
	if err := errors.Join(c.file.Close(), c.dev.Close()); err != nil {
		t.Fatal(err)
	}
}

func (c *faultCase) requests(n, bytes int) []Request {
	reqs := make([]Request, n)
	for i := range reqs {
		reqs[i] = Request{File: c.file, Buf: AlignedBuffer(bytes),
			Off: rand.Int64N(int64(faultFileBytes-bytes)/Align+1) * Align}
	}
	return reqs
}

func (c *faultCase) mustHold(t *testing.T, reqs []Request) {
	t.Helper()
	for i, r := range reqs {
		if !bytes.Equal(r.Buf, c.content[r.Off:r.Off+int64(len(r.Buf))]) {
			t.Fatalf("request %d at %d: not the bytes of the file", i, r.Off)
		}
	}
}

// shorten answers many reads with fewer bytes than asked for, at any length, and spoils the rest.
func shorten(*testing.T) hook {
	return func(_ string, _ int64, buf []byte, n int, err error) (int, error) {
		if err != nil || n == 0 || rand.IntN(3) == 0 {
			return n, err
		}
		short := rand.IntN(n)
		for i := short; i < n; i++ {
			buf[i] = 0xbd
		}
		return short, nil
	}
}

func TestShortReadsGoOn(t *testing.T) {
	eachBackend(t, shorten, func(t *testing.T, c *faultCase) {
		for _, size := range []int{Align, 4096, 16 << 10} {
			reqs := c.requests(100, size)
			if err := c.dev.ReadBatch(t.Context(), reqs); err != nil {
				t.Fatal(err)
			}
			c.mustHold(t, reqs)
		}
	})
}

func TestInterruptedReadsAreRepeated(t *testing.T) {
	interrupt := func(*testing.T) hook {
		return func(_ string, _ int64, buf []byte, n int, err error) (int, error) {
			switch rand.IntN(4) {
			case 0:
				clear(buf)
				return -1, syscall.EINTR
			case 1:
				clear(buf)
				return 0, syscall.EAGAIN
			}
			return n, err
		}
	}
	eachBackend(t, interrupt, func(t *testing.T, c *faultCase) {
		reqs := c.requests(300, 4096)
		if err := c.dev.ReadBatch(t.Context(), reqs); err != nil {
			t.Fatal(err)
		}
		c.mustHold(t, reqs)
	})
}

func TestNoProgressEnds(t *testing.T) {
	for name, stuck := range map[string]error{"EAGAIN": syscall.EAGAIN, "nothing": nil} {
		t.Run(name, func(t *testing.T) {
			refuse := func(*testing.T) hook {
				return func(string, int64, []byte, int, error) (int, error) { return 0, stuck }
			}
			eachBackend(t, refuse, func(t *testing.T, c *faultCase) {
				err := c.dev.ReadBatch(t.Context(), c.requests(1, 4096))
				var re *ReadError
				if !errors.As(err, &re) || re.Got != 0 || stuck != nil && !errors.Is(err, stuck) {
					t.Fatalf("got %v, want a ReadError of %v", err, stuck)
				}
			})
		})
	}
}

// TestErrorsAreReported answers the second half of one range with EIO, after a short first half.
func TestErrorsAreReported(t *testing.T) {
	const bad, size = 64 << 10, 8 << 10
	failing := func(*testing.T) hook {
		return func(_ string, off int64, _ []byte, n int, err error) (int, error) {
			switch off {
			case bad:
				return size / 2, nil
			case bad + size/2:
				return -1, syscall.EIO
			}
			return n, err
		}
	}
	eachBackend(t, failing, func(t *testing.T, c *faultCase) {
		reqs := []Request{
			{File: c.file, Off: 0, Buf: AlignedBuffer(size)},
			{File: c.file, Off: bad, Buf: AlignedBuffer(size)},
		}
		err := c.dev.ReadBatch(t.Context(), reqs)
		var re *ReadError
		if !errors.As(err, &re) || !errors.Is(err, syscall.EIO) {
			t.Fatalf("got %v, want EIO", err)
		}
		if re.Path != c.path || re.Off != bad || re.Len != size || re.Got != size/2 {
			t.Errorf("wrong place: %+v", re)
		}
		if s := c.dev.Stats(); s.Errors != 1 {
			t.Errorf("%d errors counted, want 1", s.Errors)
		}
		reqs = reqs[:1]
		if err := c.dev.ReadBatch(t.Context(), reqs); err != nil {
			t.Errorf("after an error: %v", err)
		}
		c.mustHold(t, reqs)
	})
}

func TestManyErrorsStopTheBatch(t *testing.T) {
	var answers atomic.Int64
	broken := func(*testing.T) hook {
		answers.Store(0)
		return func(string, int64, []byte, int, error) (int, error) {
			answers.Add(1)
			return -1, syscall.EIO
		}
	}
	eachBackend(t, broken, func(t *testing.T, c *faultCase) {
		reqs := c.requests(10_000, 4096)
		if err := c.dev.ReadBatch(t.Context(), reqs); !errors.Is(err, syscall.EIO) {
			t.Fatalf("got %v, want EIO", err)
		}
		if n := answers.Load(); n > 100 {
			t.Errorf("%d reads were tried on a broken disk", n)
		}
		s := c.dev.Stats()
		if s.Reads != 0 || s.Bytes != 0 || s.Errors != uint64(answers.Load()) {
			t.Errorf("%d answers, but stats are %+v", answers.Load(), s)
		}
	})
}

// TestCancelStopsReads cancels from within a read, so that the moment is known: what is not under
// way by then is never read.
func TestCancelStopsReads(t *testing.T) {
	var answers atomic.Int64
	var cancel atomic.Value
	slow := func(*testing.T) hook {
		answers.Store(0)
		return func(_ string, _ int64, _ []byte, n int, err error) (int, error) {
			if answers.Add(1) == 50 {
				cancel.Load().(context.CancelFunc)()
			}
			if answers.Load() >= 50 {
				time.Sleep(time.Millisecond)
			}
			return n, err
		}
	}
	eachBackend(t, slow, func(t *testing.T, c *faultCase) {
		ctx, stop := context.WithCancel(t.Context())
		cancel.Store(stop)
		defer stop()
		err := c.dev.ReadBatch(ctx, c.requests(5000, 4096))
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want context.Canceled", err)
		}
		n := answers.Load()
		if n > 2500 {
			t.Errorf("%d of 5000 reads were made though cancelled at the 50th", n)
		}
		c.close(t) // all that is under way ends before
		if late := answers.Load() - n; late != 0 {
			t.Errorf("%d reads ended after ReadBatch returned", late)
		}
		if s := c.dev.Stats(); s.Reads != uint64(n) {
			t.Errorf("%d reads counted, want %d", s.Reads, n)
		}
	})
}

// TestCancelEndsRepeats cancels while a read is answered by EAGAIN again and again.
func TestCancelEndsRepeats(t *testing.T) {
	var answers atomic.Int64
	var cancel atomic.Value
	again := func(*testing.T) hook {
		answers.Store(0)
		return func(string, int64, []byte, int, error) (int, error) {
			if answers.Add(1) == 20 {
				cancel.Load().(context.CancelFunc)()
			}
			time.Sleep(100 * time.Microsecond)
			return -1, syscall.EAGAIN
		}
	}
	eachBackend(t, again, func(t *testing.T, c *faultCase) {
		ctx, stop := context.WithCancel(t.Context())
		cancel.Store(stop)
		defer stop()
		err := c.dev.ReadBatch(ctx, c.requests(2, 4096))
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want context.Canceled", err)
		}
		if s := c.dev.Stats(); s.Reads != 0 || s.Errors != 0 {
			t.Errorf("want nothing counted: %+v", s)
		}
	})
}

func TestNoAllocationPerRequest(t *testing.T) {
	none := func(*testing.T) hook { return nil }
	eachBackend(t, none, func(t *testing.T, c *faultCase) {
		reqs := c.requests(2000, Align)
		got := testing.AllocsPerRun(5, func() {
			if err := c.dev.ReadBatch(t.Context(), reqs); err != nil {
				t.Fatal(err)
			}
		})
		if got > 50 {
			t.Errorf("%.0f allocations for a batch of %d", got, len(reqs))
		}
	})
}
