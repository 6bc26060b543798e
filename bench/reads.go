package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/rowfile"
	"gdb/sample"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// extent is a read of one file: its offset and its length, in units of blockdev.Align.
type extent uint64

const (
	extentBits = 20 // of the length: 512 MiB, more than any read

	replayCallers = ioCallers
	replayBytes   = 8 << 20 // of a caller's buffer, or of the longest read
)

func newExtent(off int64, bytes int) extent {
	return extent(off/blockdev.Align<<extentBits | int64(bytes/blockdev.Align))
}

func (e extent) off() int64 { return int64(e>>extentBits) * blockdev.Align }
func (e extent) bytes() int { return int(e&(1<<extentBits-1)) * blockdev.Align }

// recorder is a device that notes what is read of a file, in the order in which it was asked for.
// Memory: 8 bytes a read, counted.
type recorder struct {
	blockdev.Device
	path string // of the file

	mu struct {
		sync.Mutex
		file  blockdev.File
		reads []extent
		held  mem.Account
	}
}

func newRecorder(dev blockdev.Device, path string, budget *mem.Budget) *recorder {
	r := &recorder{Device: dev, path: path}
	r.mu.held = mem.NewAccount(budget, "list of reads")
	return r
}

// OpenFile opens a file, and remembers the one whose reads are noted.
func (r *recorder) OpenFile(fs vfs.FS, path string) (blockdev.File, error) {
	f, err := r.Device.OpenFile(fs, path)
	if err == nil && path == r.path {
		r.mu.Lock()
		r.mu.file = f
		r.mu.Unlock()
	}
	return f, err
}

// ReadBatch reads, after noting what.
func (r *recorder) ReadBatch(ctx context.Context, reqs []blockdev.Request) error {
	if err := r.note(reqs); err != nil {
		return err
	}
	return r.Device.ReadBatch(ctx, reqs)
}

func (r *recorder) note(reqs []blockdev.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range reqs {
		if reqs[i].File == r.mu.file {
			r.mu.reads = append(r.mu.reads, newExtent(reqs[i].Off, len(reqs[i].Buf)))
		}
	}
	return r.mu.held.AtLeast(8 * int64(cap(r.mu.reads)))
}

// take returns what was noted and forgets it; the list is valid until the next read.
func (r *recorder) take() (file blockdev.File, reads []extent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reads = r.mu.reads
	r.mu.reads = r.mu.reads[:0]
	return r.mu.file, reads
}

// replay issues reads of a file in the order given, from replayCallers callers that each have a
// batch under way, so that the queue is full until the last ones, and returns how long it took.
// Nothing is verified or copied.
func replay(ctx context.Context, dev blockdev.Device, file blockdev.File, reads []extent,
	budget *mem.Budget) (took time.Duration, err error) {
	longest := 0
	for _, e := range reads {
		longest = max(longest, e.bytes())
	}
	room := max(replayBytes, longest)
	arena, err := mem.NewArena(budget, "buffers of a replay", int64(replayCallers*room))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, arena.Free()) }()
	clear(arena.Bytes()) // the first touch of a page is not the read's work
	var (
		callers sync.WaitGroup
		next    atomic.Int64
		errs    [replayCallers]error
		chunks  = cut(reads, room)
		begun   = time.Now()
	)
	for c := range replayCallers {
		buf := arena.Bytes()[c*room : (c+1)*room]
		callers.Go(func() {
			reqs := make([]blockdev.Request, 0, ioBatch)
			for errs[c] == nil {
				k := int(next.Add(1)) - 1
				if k+1 >= len(chunks) {
					return
				}
				reqs = requests(reqs[:0], file, reads[chunks[k]:chunks[k+1]], buf)
				errs[c] = dev.ReadBatch(ctx, reqs)
			}
		})
	}
	callers.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return 0, fmt.Errorf("bench: repeat reads of %s: %w", file.Path(), err)
	}
	return time.Since(begun), nil
}

// cut divides reads into batches of up to ioBatch reads and room bytes: where each begins, and the
// end.
func cut(reads []extent, room int) []int {
	begins, used := []int{0}, 0
	for i, e := range reads {
		if used+e.bytes() > room || i-begins[len(begins)-1] == ioBatch {
			begins, used = append(begins, i), 0
		}
		used += e.bytes()
	}
	return append(begins, len(reads))
}

func requests(to []blockdev.Request, file blockdev.File, reads []extent,
	buf []byte) []blockdev.Request {
	for _, e := range reads {
		n := e.bytes()
		to = append(to, blockdev.Request{File: file, Off: e.off(), Buf: buf[:n:n]})
		buf = buf[n:]
	}
	return to
}

// missedRows reads rows for a cache, and notes which. Memory: 4 bytes a row, counted.
type missedRows struct {
	*rowfile.Reader
	mu struct {
		sync.Mutex
		nodes []sample.NodeID
		ends  []int // of each list in nodes
		held  mem.Account
	}
}

// GatherParts reads rows, after noting which.
func (m *missedRows) GatherParts(ctx context.Context, nodes []sample.NodeID, at []uint32,
	out []float32, arrived func(keys []uint64)) error {
	m.mu.Lock()
	m.mu.nodes = append(m.mu.nodes, nodes...)
	m.mu.ends = append(m.mu.ends, len(m.mu.nodes))
	err := m.mu.held.AtLeast(4*int64(cap(m.mu.nodes)) + 8*int64(cap(m.mu.ends)))
	m.mu.Unlock()
	if err != nil {
		return err
	}
	return m.Reader.GatherParts(ctx, nodes, at, out, arrived)
}

// apart returns the reads of what was asked for since the last call if no gap is ever read along:
// the sectors that hold rows, of each gather every one once, those side by side together. They are
// appended to the memory of to.
func (m *missedRows) apart(to []extent) []extent {
	m.mu.Lock()
	defer m.mu.Unlock()
	begin, meta := 0, m.Meta()
	for _, end := range m.mu.ends {
		list := m.mu.nodes[begin:end]
		slices.Sort(list)
		to = sectors(to, meta, list)
		begin = end
	}
	m.mu.nodes, m.mu.ends = m.mu.nodes[:0], m.mu.ends[:0]
	return to
}

// sectors appends the runs of sectors that hold the rows of ascending nodes.
func sectors(to []extent, m kv.RowsMeta, nodes []sample.NodeID) []extent {
	perPage, begin, end := int64(m.PageBytes/m.RowBytes), int64(0), int64(0)
	put := func() {
		if end > begin {
			to = append(to, newExtent(codec.HeaderBytes+begin, int(end-begin)))
		}
	}
	for _, v := range nodes {
		at := int64(v)/perPage*int64(m.PageBytes) + int64(v)%perPage*int64(m.RowBytes)
		first := at / blockdev.Align * blockdev.Align
		last := (at + int64(m.RowBytes) + blockdev.Align - 1) / blockdev.Align * blockdev.Align
		if first > end || last-begin > apartMost {
			put()
			begin = max(first, end)
		}
		end = max(end, last)
	}
	put()
	return to
}

// apartMost bounds a run of sectors, as layout bounds a read.
const apartMost = 256 << 10

func bytesOf(reads []extent) (bytes int64) {
	for _, e := range reads {
		bytes += int64(e.bytes())
	}
	return bytes
}
