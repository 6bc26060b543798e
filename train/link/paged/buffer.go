package paged

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/train/link/entities"

	"github.com/RoaringBitmap/roaring/v2"
)

// bufferOptions configure a buffer.
type bufferOptions struct {
	// Frames is how many partitions fit: those of a set and, if the next set is to be read while
	// this one is trained on, those that enter with it.
	Frames int
	Budget *mem.Budget
}

// Bytes returns the memory of a buffer.
func (o *bufferOptions) Bytes(s *entities.FileSpec) int64 {
	return int64(1+s.State) * mem.ArenaBytes(int64(o.Frames)*arrayBytes(s))
}

// arrayBytes returns the bytes of one array of a frame.
func arrayBytes(s *entities.FileSpec) int64 { return int64(s.FrameRows()) * int64(s.Columns) * 4 }

// buffer keeps some of the partitions of the nodes' vectors in memory while training goes through
// them, set by set (the partition buffer of Waleffe et al., "Marius++", section 5.1). While a set
// is trained on, partitions that left are written, and partitions of the next set are read.
//
// It holds partitions in frames. One goroutine uses it and moves it from set to set; goroutines
// of the buffer read and write meanwhile.
type buffer struct {
	dir    *entities.Files
	spec   entities.FileSpec
	opt    bufferOptions
	arenas []*mem.Arena
	arrays [][]float32 // each (Frames * FrameRows, Columns)

	resident *roaring.Bitmap // partitions that may be used now
	coming   *roaring.Bitmap // partitions read for the next set, or being read
	changed  *roaring.Bitmap // resident partitions that differ from what is on disk
	frames   []int           // frame of each partition; -1 for none
	free     []int
	work     chan error // the work under way, which owns frames and free; nil if there is none
	ended    error      // error of work that failed; the buffer cannot go on after it
	mu       struct {
		sync.Mutex
		stats bufferStats
	}
}

// bufferStats counts what a buffer did.
type bufferStats struct {
	Reads, Writes         int // partitions
	ReadBytes, WriteBytes int64
	// Wait is how long Advance waited for the disk.
	Wait time.Duration
}

// newBuffer returns an empty buffer with its memory taken. The caller closes it.
func newBuffer(dir *entities.Files, opt bufferOptions) (*buffer, error) {
	b := &buffer{dir: dir, spec: dir.Spec(), opt: opt, resident: roaring.New(),
		coming: roaring.New(), changed: roaring.New()}
	b.frames = make([]int, b.spec.Map.Parts())
	for i := range b.frames {
		b.frames[i] = -1
	}
	for i := range opt.Frames {
		b.free = append(b.free, opt.Frames-1-i)
	}
	for range 1 + b.spec.State {
		a, err := mem.NewArena(opt.Budget, "partition buffer",
			int64(opt.Frames)*arrayBytes(&b.spec))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("train: %w", err), b.Close())
		}
		b.arenas = append(b.arenas, a)
		b.arrays = append(b.arrays, mem.View[float32](a.Bytes()))
	}
	return b, nil
}

// Touch says that rows of the resident partitions were changed, so that these are written when they
// leave. Unchanged partitions are not written.
func (b *buffer) Touch() { b.changed.Or(b.resident) }

// Close waits for the work under way and frees the memory. Changes since Flush are lost.
func (b *buffer) Close() error {
	err := b.settle()
	for _, a := range b.arenas {
		err = errors.Join(err, a.Free())
	}
	b.arenas = nil
	return err
}

// Advance makes the partitions of now resident, and waits until they are. Then it starts to write
// the partitions that left, and to read those of next as far as there are frames for them; next is
// nil after the last set. A changed partition is written before another is read into its frame.
func (b *buffer) Advance(ctx context.Context, now, next *roaring.Bitmap) error {
	if n := now.GetCardinality(); n > uint64(b.opt.Frames) {
		return fmt.Errorf("train: a set of %d partitions in a buffer of %d", n, b.opt.Frames)
	}
	begun := time.Now()
	defer func() { b.count(func(s *bufferStats) { s.Wait += time.Since(begun) }) }()
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
	if next != nil {
		b.begin(ctx, left, b.fitting(roaring.AndNot(next, now), left))
	} else if !left.IsEmpty() {
		b.begin(ctx, left, roaring.New())
	}
	return nil
}

// fitting returns as many of the wanted partitions as there are frames for once others have left.
func (b *buffer) fitting(wanted, left *roaring.Bitmap) *roaring.Bitmap {
	room := len(b.free) + int(left.GetCardinality())
	out := roaring.New()
	for it := wanted.Iterator(); it.HasNext() && room > 0; room-- {
		out.Add(it.Next())
	}
	return out
}

// begin starts goroutines that write the changed ones of the partitions that left, and read
// those that come.
func (b *buffer) begin(ctx context.Context, left, come *roaring.Bitmap) {
	b.coming = come.Clone()
	changed := roaring.And(left, b.changed)
	b.changed.AndNot(left)
	b.release(roaring.AndNot(left, changed))
	free := make(chan int, b.opt.Frames)
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

// pairs calls fn with partitions, two at a time, until one fails: while one is read or written the
// checksums of the other are computed.
func pairs(ctx context.Context, parts *roaring.Bitmap, fn func(part int) error) error {
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
func (b *buffer) writeBack(ctx context.Context, changed *roaring.Bitmap, free chan<- int) error {
	return pairs(ctx, changed, func(part int) error {
		err := b.write(part)
		if err == nil {
			free <- b.frames[part]
		}
		return err
	})
}

// fill reads partitions into frames, as these become free.
func (b *buffer) fill(ctx context.Context, come *roaring.Bitmap, free <-chan int) error {
	return pairs(ctx, come, func(part int) error {
		frame, ok := <-free
		if !ok { // or writing failed, which says more
			return fmt.Errorf("train: partition %d has no place in a buffer of %d", part,
				b.opt.Frames)
		}
		n, err := b.dir.Read(ctx, part, b.pieces(frame))
		if err != nil {
			return err
		}
		b.frames[part] = frame
		b.count(func(s *bufferStats) { s.Reads, s.ReadBytes = s.Reads+1, s.ReadBytes+n })
		return nil
	})
}

// write writes a partition back.
func (b *buffer) write(part int) error {
	b.count(func(s *bufferStats) {
		s.Writes, s.WriteBytes = s.Writes+1, s.WriteBytes+b.spec.PartBytes(part)
	})
	return b.dir.Write(part, b.pieces(b.frames[part]))
}

// count changes the stats.
func (b *buffer) count(change func(s *bufferStats)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.mu.stats)
}

// release frees the frames of partitions.
func (b *buffer) release(parts *roaring.Bitmap) {
	for it := parts.Iterator(); it.HasNext(); {
		part := it.Next()
		b.free = append(b.free, b.frames[part])
		b.frames[part] = -1
	}
}

// settle waits for the work under way. After an error all later calls return it.
func (b *buffer) settle() error {
	if b.work != nil {
		b.ended = errors.Join(b.ended, <-b.work)
		b.work = nil
	}
	return b.ended
}

// pieces returns the arrays of a frame.
func (b *buffer) pieces(frame int) (out [][]float32) {
	n := b.spec.FrameRows() * b.spec.Columns
	for _, a := range b.arrays {
		out = append(out, a[frame*n:(frame+1)*n:(frame+1)*n])
	}
	return out
}

// Flush writes all changed partitions, so that a checkpoint can have them: Files.Prepare is called
// after it. They stay resident.
func (b *buffer) Flush(ctx context.Context) error {
	if err := b.settle(); err != nil {
		return err
	}
	if b.ended = pairs(ctx, b.changed, b.write); b.ended == nil {
		b.changed.Clear()
	}
	return b.ended
}

// Empty writes all changed partitions and frees all frames: no partition is resident afterwards.
func (b *buffer) Empty(ctx context.Context) error {
	if err := b.Flush(ctx); err != nil {
		return err
	}
	b.resident.Or(b.coming)
	b.release(b.resident)
	b.resident.Clear()
	b.coming.Clear()
	return nil
}

// Frames returns the vectors of each frame of an empty buffer, (FrameRows, Columns): memory that
// others may use until Advance.
func (b *buffer) Frames() (out [][]float32) {
	for frame := range b.opt.Frames {
		out = append(out, b.pieces(frame)[0])
	}
	return out
}

// Resident returns the partitions that may be used. The caller must not change it.
func (b *buffer) Resident() *roaring.Bitmap { return b.resident }

// Array returns array i of all frames as one matrix: 0 for the vectors, the others for the
// optimizer's. Row says in which row a node is.
func (b *buffer) Array(i int) []float32 { return b.arrays[i] }

// Row returns the row of a node in the arrays, which is valid until the next Advance; ok is false
// if the node is not resident.
func (b *buffer) Row(v layout.NodeID) (row uint32, ok bool) {
	part, at := b.spec.Map.Place(v)
	if !b.resident.Contains(uint32(part)) {
		return 0, false
	}
	return uint32(b.frames[part]*b.spec.FrameRows()) + uint32(at), true
}

// First returns the row of the first node of a resident partition. Its other nodes follow.
func (b *buffer) First(part int) uint32 {
	return uint32(b.frames[part] * b.spec.FrameRows())
}

// Stats returns what the buffer did so far. It waits for the work under way, and must not be called
// during Advance.
func (b *buffer) Stats() (bufferStats, error) {
	err := b.settle()
	return b.mu.stats, err
}
