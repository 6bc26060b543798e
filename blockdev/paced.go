package blockdev

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Pace is what a device reads in a second at most; 0 does not bound it.
type Pace struct {
	Reads float64 // of PacedRead bytes at most: a larger one counts as several
	Bytes float64
}

// PacedRead is how many bytes count as one read, as volumes over networks count them.
const PacedRead = 256 << 10

// Paced makes a device as slow as a pace says, to measure what a slow disk, or a volume over a
// network, would do. Reads are served one after the other: each takes the longer of what its number
// and its bytes take.
func Paced(d Device, p Pace) Device {
	if p == (Pace{}) {
		return d
	}
	return &paced{Device: d, pace: p}
}

type paced struct {
	Device
	pace Pace
	mu   sync.Mutex
	free time.Time // when all reads so far are served
}

// Info says that the device is paced, in the backend's name too, so that nothing that was measured
// of the one is taken for the other.
func (d *paced) Info() Info {
	info := d.Device.Info()
	info.Backend += Backend(fmt.Sprintf("-%.0f-%.0f", d.pace.Reads, d.pace.Bytes))
	info.Why += fmt.Sprintf("; paced to %.0f reads and %.0f bytes a second (0: not bounded)",
		d.pace.Reads, d.pace.Bytes)
	return info
}

// ReadBatch returns when a device of this pace would have read all requests.
func (d *paced) ReadBatch(ctx context.Context, reqs []Request) error {
	done := d.serve(reqs, time.Now())
	if err := d.Device.ReadBatch(ctx, reqs); err != nil {
		return err
	}
	wait := time.NewTimer(time.Until(done))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serve puts requests behind those before, and returns when they are served.
func (d *paced) serve(reqs []Request, now time.Time) time.Time {
	seconds := 0.0
	for i := range reqs {
		size := len(reqs[i].Buf)
		of := 0.0
		if d.pace.Reads > 0 {
			of = float64((size+PacedRead-1)/PacedRead) / d.pace.Reads
		}
		if d.pace.Bytes > 0 {
			of = max(of, float64(size)/d.pace.Bytes)
		}
		seconds += of
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.free.Before(now) {
		d.free = now
	}
	d.free = d.free.Add(time.Duration(seconds * float64(time.Second)))
	return d.free
}
