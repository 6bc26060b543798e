package partition

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gdb/internal/bug"

	"github.com/RoaringBitmap/roaring/v2"
)

// Disk has the partitions that a Buffer does not have in memory. Frames are numbered from 0; their
// memory belongs to the Disk. Two goroutines call its methods, for different partitions.
type Disk interface {
	// Fill reads a partition into a frame, and returns how many bytes it read.
	Fill(ctx context.Context, part, frame int) (int64, error)
	// Store writes the partition that is in a frame, and returns how many bytes it wrote. It is
	// called only for partitions that Touch said have changed.
	Store(part, frame int) (int64, error)
}

// Buffer keeps some of the partitions of a graph in memory while training goes through them, set by
// set (the partition buffer of Waleffe et al., "Marius++", section 5.1). While a set is trained on,
// partitions that left are written if they changed, and partitions of the next set are read.
//
// It holds partitions in frames. One goroutine uses it and moves it from set to set; goroutines
// of the buffer read and write meanwhile.
type Buffer struct {
	disk  Disk
	count int // frames

	resident *roaring.Bitmap // partitions that may be used now
	coming   *roaring.Bitmap // partitions read for the next set, or being read
	changed  *roaring.Bitmap // resident partitions that differ from what is on disk
	frames   []int           // frame of each partition; -1 for none
	free     []int
	work     chan error // the work under way, which owns frames and free; nil if there is none
	ended    error      // error of work that failed; the buffer cannot go on after it
	mu       struct {
		sync.Mutex
		stats BufferStats
	}
}

// BufferStats counts what a buffer did.
type BufferStats struct {
	Reads, Writes         int // partitions
	ReadBytes, WriteBytes int64
	// Wait is how long Advance waited for the disk.
	Wait time.Duration
}

// NewBuffer returns an empty buffer for a number of partitions. frames is how many of them fit in
// the memory of disk: those of a set and, if the next set is to be read while this one is trained
// on, those that enter with it.
func NewBuffer(disk Disk, parts, frames int) *Buffer {
	b := &Buffer{disk: disk, count: frames, frames: make([]int, parts)}
	b.reset()
	return b
}

// reset makes all frames free.
func (b *Buffer) reset() {
	b.resident, b.coming, b.changed = roaring.New(), roaring.New(), roaring.New()
	for i := range b.frames {
		b.frames[i] = -1
	}
	b.free = b.free[:0]
	for i := range b.count {
		b.free = append(b.free, b.count-1-i)
	}
}

// Touch says that the resident partitions were changed, so that they are written when they leave.
// Unchanged partitions are not written.
func (b *Buffer) Touch() { b.changed.Or(b.resident) }

// Drop makes no partition resident, and writes nothing: changes since Flush are lost. A buffer that
// failed may be used again afterwards. It returns the error of the work that was under way.
func (b *Buffer) Drop() error {
	err := b.settle()
	b.ended = nil
	b.reset()
	return err
}

// Advance makes the partitions of now resident, and waits until they are. Then it starts to write
// the partitions that left, and to read those of next as far as there are frames for them; next is
// nil after the last set. A changed partition is written before another is read into its frame.
// Cancelling ctx ends the waiting, but not what goes on afterwards.
func (b *Buffer) Advance(ctx context.Context, now, next *roaring.Bitmap) error {
	if n := now.GetCardinality(); n > uint64(b.count) {
		return fmt.Errorf("train: a set of %d partitions in a buffer of %d", n, b.count)
	}
	begun := time.Now()
	defer func() { b.add(func(s *BufferStats) { s.Wait += time.Since(begun) }) }()
	if err := b.settle(); err != nil {
		return err
	}
	// What was read ahead and is not needed after all is dropped: nobody has changed it.
	b.release(roaring.AndNot(b.coming, now))
	left := roaring.AndNot(b.resident, now)
	b.resident.Or(b.coming)
	b.coming.Clear()
	b.resident.And(now)
	missing := roaring.AndNot(now, b.resident)
	if !missing.IsEmpty() { // at the first set, or where nothing was read ahead
		b.begin(ctx, left, missing)
		if err := b.settle(); err != nil {
			return err
		}
		b.resident.Or(missing)
		b.coming.AndNot(missing)
		left = roaring.New()
	}
	ctx = context.WithoutCancel(ctx)
	if next != nil {
		b.begin(ctx, left, b.fitting(roaring.AndNot(next, now), left))
	} else if !left.IsEmpty() {
		b.begin(ctx, left, roaring.New())
	}
	return nil
}

// fitting returns as many of the wanted partitions as there are frames for once others have left.
func (b *Buffer) fitting(wanted, left *roaring.Bitmap) *roaring.Bitmap {
	room := len(b.free) + int(left.GetCardinality())
	out := roaring.New()
	for it := wanted.Iterator(); it.HasNext() && room > 0; room-- {
		out.Add(it.Next())
	}
	return out
}

// begin starts goroutines that write the changed ones of the partitions that left, and read
// those that come.
func (b *Buffer) begin(ctx context.Context, left, come *roaring.Bitmap) {
	b.coming = come.Clone()
	changed := roaring.And(left, b.changed)
	b.changed.AndNot(left)
	b.release(roaring.AndNot(left, changed))
	free := make(chan int, b.count)
	for _, frame := range b.free {
		free <- frame
	}
	b.free = b.free[:0]
	written, done := make(chan error, 1), make(chan error, 1)
	b.work = done
	go func() {
		defer bug.Catch()
		defer close(free)
		written <- b.writeBack(ctx, changed, free)
	}()
	go func() {
		defer bug.Catch()
		err := b.fill(ctx, roaring.AndNot(come, changed), free)
		if err = errors.Join(<-written, err); err == nil { // partitions that come back are on disk
			for it := changed.Iterator(); it.HasNext(); {
				b.frames[it.Next()] = -1
			}
			err = b.fill(ctx, roaring.And(come, changed), free)
		}
		for frame := range free {
			b.free = append(b.free, frame)
		}
		done <- err
	}()
}

// byTwos calls fn with partitions, two at a time, until one fails: while one is read or written the
// checksums of the other are computed.
func byTwos(ctx context.Context, parts *roaring.Bitmap, fn func(part int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan int)
	var work sync.WaitGroup
	for range 2 {
		work.Go(func() {
			defer bug.Catch()
			for part := range next {
				if ctx.Err() != nil {
					continue
				}
				if err := fn(part); err != nil {
					stop(err)
				}
			}
		})
	}
	for it := parts.Iterator(); it.HasNext(); {
		next <- int(it.Next())
	}
	close(next)
	work.Wait()
	return context.Cause(ctx)
}

// writeBack writes partitions, and passes on the frame of each once it is written.
func (b *Buffer) writeBack(ctx context.Context, changed *roaring.Bitmap, free chan<- int) error {
	return byTwos(ctx, changed, func(part int) error {
		err := b.write(part)
		if err == nil {
			free <- b.frames[part]
		}
		return err
	})
}

// fill reads partitions into frames, as these become free.
func (b *Buffer) fill(ctx context.Context, come *roaring.Bitmap, free <-chan int) error {
	return byTwos(ctx, come, func(part int) error {
		frame, ok := <-free
		if !ok { // or writing failed, which says more
			return fmt.Errorf("train: partition %d has no place in a buffer of %d", part, b.count)
		}
		n, err := b.disk.Fill(ctx, part, frame)
		if err != nil {
			return err
		}
		b.frames[part] = frame
		b.add(func(s *BufferStats) { s.Reads, s.ReadBytes = s.Reads+1, s.ReadBytes+n })
		return nil
	})
}

// write writes a partition back.
func (b *Buffer) write(part int) error {
	n, err := b.disk.Store(part, b.frames[part])
	b.add(func(s *BufferStats) { s.Writes, s.WriteBytes = s.Writes+1, s.WriteBytes+n })
	return err
}

// add changes the stats.
func (b *Buffer) add(change func(s *BufferStats)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.mu.stats)
}

// release frees the frames of partitions.
func (b *Buffer) release(parts *roaring.Bitmap) {
	for it := parts.Iterator(); it.HasNext(); {
		part := it.Next()
		b.free = append(b.free, b.frames[part])
		b.frames[part] = -1
	}
}

// settle waits for the work under way. After an error all later calls return it.
func (b *Buffer) settle() error {
	if b.work != nil {
		b.ended = errors.Join(b.ended, <-b.work)
		b.work = nil
	}
	return b.ended
}

// Flush writes all changed partitions, so that a checkpoint can have them. They stay resident.
func (b *Buffer) Flush(ctx context.Context) error {
	if err := b.settle(); err != nil {
		return err
	}
	if b.ended = byTwos(ctx, b.changed, b.write); b.ended == nil {
		b.changed.Clear()
	}
	return b.ended
}

// Empty writes all changed partitions and frees all frames: no partition is resident afterwards,
// and others may use the memory of the frames until Advance.
func (b *Buffer) Empty(ctx context.Context) error {
	if err := b.Flush(ctx); err != nil {
		return err
	}
	b.reset()
	return nil
}

// Resident returns the partitions that may be used. The caller must not change it.
func (b *Buffer) Resident() *roaring.Bitmap { return b.resident }

// Frame returns the frame of a resident partition, which is valid until the next Advance.
func (b *Buffer) Frame(part int) int { return b.frames[part] }

// Stats returns what the buffer did so far. It waits for the work under way, and must not be called
// during Advance.
func (b *Buffer) Stats() (BufferStats, error) {
	err := b.settle()
	return b.mu.stats, err
}
