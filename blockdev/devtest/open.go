package devtest

import (
	"runtime"
	"testing"
	"time"

	"gdb/blockdev"
)

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
