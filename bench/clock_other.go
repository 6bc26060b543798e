//go:build !linux

package bench

import "time"

// threadClock returns the wall clock where a thread's CPU time cannot be read.
func threadClock() time.Duration { return wallClock() }
