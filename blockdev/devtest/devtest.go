// Package devtest opens devices for tests, and injects faults into their reads.
package devtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"gdb/blockdev"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Fault says what happens to one read. The zero Fault changes nothing.
type Fault struct {
	// Delay is how long the read waits before it begins. The reads of a batch wait at the same
	// time.
	Delay time.Duration
	// Err fails the read, with Got bytes in the buffer and garbage behind them.
	Err error
	Got int
	// Short is the length of a first, short answer after which the device must continue: the read
	// happens in two pieces. It is rounded down to a multiple of blockdev.Align.
	Short int
}

// Rule chooses the fault of the nth read of a device. Reads are counted from 0 over all callers.
type Rule func(path string, off int64, nth uint64) Fault

// Inject returns a device that reads through dev with faults. Files must be opened through it;
// closing it closes dev.
func Inject(dev blockdev.Device, rule Rule) blockdev.Device {
	return &injector{Device: dev, rule: rule}
}

type injector struct {
	blockdev.Device
	rule  Rule
	reads atomic.Uint64
	fails atomic.Uint64
}

// injectedFile ties a file to the injector that opened it.
type injectedFile struct {
	blockdev.File
	in *injector
}

// OpenFile opens a file whose reads may fail.
func (in *injector) OpenFile(fs vfs.FS, path string) (blockdev.File, error) {
	f, err := in.Device.OpenFile(fs, path)
	if err != nil {
		return nil, err
	}
	return &injectedFile{File: f, in: in}, nil
}

// ReadBatch asks the rule about each request, reads the requests that do not fail, and reports the
// failures of the others.
func (in *injector) ReadBatch(ctx context.Context, reqs []blockdev.Request) error {
	var (
		pass  []blockdev.Request
		errs  []error
		delay time.Duration
	)
	for i, r := range reqs {
		f, ok := r.File.(*injectedFile)
		if !ok || f.in != in {
			return fmt.Errorf("devtest: request %d: %w: its file was not opened through Inject", i,
				blockdev.ErrInvalid)
		}
		r.File = f.File
		fault := in.rule(f.Path(), r.Off, in.reads.Add(1)-1)
		delay = max(delay, fault.Delay)
		if fault.Err != nil {
			errs = append(errs, in.fail(f, r, fault))
			continue
		}
		pass = append(pass, split(r, fault.Short)...)
	}
	if err := sleep(ctx, delay); err != nil {
		return err
	}
	if err := in.Device.ReadBatch(ctx, pass); err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

func (in *injector) fail(f *injectedFile, r blockdev.Request, fault Fault) error {
	in.fails.Add(1)
	got := min(max(0, fault.Got), len(r.Buf))
	copy(r.Buf, bytes.Repeat([]byte{0xdb}, len(r.Buf)))
	return &blockdev.ReadError{Path: f.Path(), Off: r.Off, Len: len(r.Buf), Got: got,
		Err: fault.Err}
}

func split(r blockdev.Request, at int) []blockdev.Request {
	at &^= blockdev.Align - 1
	if at <= 0 || at >= len(r.Buf) {
		return []blockdev.Request{r}
	}
	tail := blockdev.Request{File: r.File, Off: r.Off + int64(at), Buf: r.Buf[at:]}
	r.Buf = r.Buf[:at]
	return []blockdev.Request{r, tail}
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("devtest: delayed read: %w", ctx.Err())
	}
}

// Stats counts the injected failures as errors too.
func (in *injector) Stats() blockdev.Stats {
	s := in.Device.Stats()
	s.Errors += in.fails.Load()
	return s
}

// Open opens a device that is closed when the test ends.
func Open(t testing.TB, opt blockdev.Options) blockdev.Device {
	t.Helper()
	dev, err := blockdev.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// CheckGoroutines waits until no more goroutines run than before. It waits because a goroutine that
// reads ahead reports its end shortly before it ends.
func CheckGoroutines(t testing.TB, before int) {
	t.Helper()
	for range 400 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Errorf("goroutines were left behind:\n%s", buf[:runtime.Stack(buf, true)])
}
