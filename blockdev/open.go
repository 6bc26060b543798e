package blockdev

import (
	"cmp"
	"fmt"
)

const (
	// poolDepth is the default depth of a pool. 32 reads are as fast as fio; 64 gain 3 % and double
	// the latency.
	poolDepth = 32
	// ringDepth is the default depth of a ring. Depth costs a ring nothing, and completions can be
	// awaited 16 at a time.
	ringDepth = 128
	// depthMax keeps a typing mistake from starting a million workers.
	depthMax = 4096
)

// Open returns a device. Auto tries io_uring with a real read, and takes the pread pool if that
// fails; asking for URing where it does not work is an error.
func Open(opt Options) (Device, error) {
	if opt.QueueDepth < 0 || opt.QueueDepth > depthMax {
		return nil, fmt.Errorf("blockdev: queue depth %d is not between 1 and %d",
			opt.QueueDepth, depthMax)
	}
	opt.Backend = cmp.Or(opt.Backend, Auto)
	d := &device{info: Info{Backend: opt.Backend, QueueDepth: opt.QueueDepth}}
	switch opt.Backend {
	case Auto, URing:
		return d.openRing()
	case Pread:
		return d.openPool("chosen: a pool of direct reads; io_uring was not tried"), nil
	case Buffered:
		return d.openPool("chosen: reads through the page cache"), nil
	case MMap:
		if !hasDescriptors {
			return nil, fmt.Errorf("blockdev: backend mmap: only on Linux; use %s", Buffered)
		}
		return d.openPool("chosen: copies out of memory maps advised for random access"), nil
	case Memory:
		return d.openPool("chosen: reads by each file system's own ReadAt"), nil
	}
	return nil, fmt.Errorf("blockdev: backend %q is none of %s, %s, %s, %s, %s and %s",
		opt.Backend, Auto, URing, Pread, Buffered, MMap, Memory)
}

// openPool starts as many workers as the queue is deep. why is the reason that Info reports.
func (d *device) openPool(why string) Device {
	d.info.QueueDepth = cmp.Or(d.info.QueueDepth, poolDepth)
	if !hasDescriptors {
		why += "; without O_DIRECT on this operating system"
	}
	d.info.Why = why
	d.engine = newPool(d, d.info.QueueDepth)
	return d
}

func (d *device) openRing() (Device, error) {
	depth := d.info.QueueDepth
	depth = cmp.Or(depth, ringDepth)
	ring, how, err := newURing(d, depth)
	if err == nil {
		d.engine, d.info = ring, Info{Backend: URing, QueueDepth: depth, Why: how}
		return d, nil
	}
	if d.info.Backend == URing {
		return nil, fmt.Errorf("blockdev: backend %s: %s; use %s or %s: %w",
			URing, ringRefusal(err), Auto, Pread, err)
	}
	d.info.Backend = Pread
	return d.openPool(ringRefusal(err) + ": a pool of direct reads instead"), nil
}
