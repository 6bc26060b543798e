package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadClock returns the CPU time of the calling thread.
func threadClock() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return wallClock()
	}
	return time.Duration(t.Nano())
}
