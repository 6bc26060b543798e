// Package extsort sorts more records than memory holds: it sorts arenas of them, writes each as a
// run to a temporary file, and merges the runs. There are two sorters: Words for records of a few
// integers (edges), Strings for records with an external id.
//
// # Run file
//
// A run is a sequence of blocks, packed without gaps:
//
//	0        4        8              16
//	+--------+--------+--------------+------------------+
//	| crc32c | length | block number | payload (length) |
//	+--------+--------+--------------+------------------+
//
// The checksum covers everything after itself, so that a damaged or misplaced block is an error
// and never a wrong graph. Records do not straddle blocks.
package extsort

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"gdb/internal/codec"
	"gdb/internal/mem"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	headerBytes = 16
	// defaultBlockBytes is the size of a run's blocks: large enough that a disk seek between two
	// runs costs little beside the block's transfer.
	defaultBlockBytes = 256 << 10
	// syncBytes is how much of a run may be dirty in the page cache before it is sent to disk, so
	// that a memory cgroup is not filled with it.
	syncBytes = 8 << 20
)

// ErrDamaged says that a temporary file does not hold what was written to it.
var ErrDamaged = errors.New("temporary file is damaged: start the ingest again without --resume")

// Run is a sorted file of records.
type Run struct {
	Name    string // path below Options.Dir
	Records uint64
	Bytes   int64
}

// runWriter writes the blocks of one run.
type runWriter struct {
	f       vfs.File
	path    string
	run     Run
	block   []byte // headerBytes, then the payload so far
	limit   int    // payload bytes at which a block is full
	number  uint64
	flushed int64 // bytes up to which writing back was asked for
}

func newRunWriter(opt *Options, name string) (*runWriter, error) {
	path := opt.path(name)
	f, err := opt.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("extsort: create %s: %w", path, err)
	}
	w := &runWriter{f: f, path: path, run: Run{Name: name}, limit: opt.BlockBytes - headerBytes}
	w.block = make([]byte, headerBytes, opt.BlockBytes)
	return w, nil
}

// room makes sure that a record of n bytes fits in the current block. A record larger than a
// block gets one of its own.
func (w *runWriter) room(n int) error {
	if len(w.block) > headerBytes && len(w.block)-headerBytes+n > w.limit {
		return w.flush()
	}
	return nil
}

func (w *runWriter) flush() error {
	if len(w.block) == headerBytes {
		return nil
	}
	binary.LittleEndian.PutUint32(w.block[4:], uint32(len(w.block)-headerBytes))
	binary.LittleEndian.PutUint64(w.block[8:], w.number)
	binary.LittleEndian.PutUint32(w.block, codec.Checksum(w.block[4:]))
	if _, err := w.f.Write(w.block); err != nil {
		return fmt.Errorf("extsort: write %s: %w", w.path, err)
	}
	w.run.Bytes += int64(len(w.block))
	w.number++
	w.block = w.block[:headerBytes]
	if w.run.Bytes-w.flushed < syncBytes {
		return nil
	}
	dropCache(w.f, 0, w.flushed) // what was sent before this is on disk by now
	w.flushed = w.run.Bytes
	if _, err := w.f.SyncTo(w.run.Bytes); err != nil {
		return fmt.Errorf("extsort: write %s: %w", w.path, err)
	}
	return nil
}

// finish writes what is left, makes it durable and closes the file.
func (w *runWriter) finish() (Run, error) {
	err := w.flush()
	if err == nil {
		if err = w.f.Sync(); err != nil {
			err = fmt.Errorf("extsort: sync %s: %w", w.path, err)
		}
	}
	dropCache(w.f, 0, w.run.Bytes)
	return w.run, errors.Join(err, w.f.Close())
}

// blockArena holds a block buffer for each of n runs, outside the Go heap.
func blockArena(opt *Options, n int) (*mem.Arena, error) {
	return mem.NewArena(opt.Budget, "merging", int64(n)*int64(opt.BlockBytes))
}

// blockOf is the buffer of run i.
func blockOf(a *mem.Arena, opt *Options, i int) []byte {
	return a.Bytes()[i*opt.BlockBytes : (i+1)*opt.BlockBytes]
}

// runReader reads the blocks of one run, one ahead of the consumer by way of the page cache.
type runReader struct {
	f       vfs.File
	path    string
	run     Run
	buf     []byte
	off     int64
	number  uint64
	dropped int64
	records uint64 // delivered; the consumer counts
}

// openRun opens a run to be read through buf, which is a block long.
func openRun(opt *Options, run Run, buf []byte) (*runReader, error) {
	path := opt.path(run.Name)
	f, err := opt.FS.Open(path, vfs.RandomReadsOption)
	if err != nil {
		return nil, fmt.Errorf("extsort: open %s: %w", path, err)
	}
	return &runReader{f: f, path: path, run: run, buf: buf}, nil
}

// next returns the payload of the next block, valid until the next call, or nil at the end.
func (r *runReader) next() ([]byte, error) {
	if r.off == r.run.Bytes {
		if r.records != r.run.Records {
			return nil, r.damaged(fmt.Sprintf("%d records, want %d", r.records, r.run.Records))
		}
		return nil, nil
	}
	n := int(min(int64(len(r.buf)), r.run.Bytes-r.off))
	if err := r.read(r.buf[:n], r.off); err != nil {
		return nil, err
	}
	if n < headerBytes {
		return nil, r.damaged("a block is cut off")
	}
	total := headerBytes + int(binary.LittleEndian.Uint32(r.buf[4:]))
	if int64(total) > r.run.Bytes-r.off {
		return nil, r.damaged("a block reaches past the end")
	}
	if total > n { // a long record in a block of its own
		if total > len(r.buf) {
			r.buf = append(r.buf[:n:n], make([]byte, total-n)...)
		}
		if err := r.read(r.buf[n:total], r.off+int64(n)); err != nil {
			return nil, err
		}
	}
	block := r.buf[:total]
	if binary.LittleEndian.Uint64(block[8:]) != r.number ||
		binary.LittleEndian.Uint32(block) != codec.Checksum(block[4:]) {
		return nil, r.damaged("checksum does not match")
	}
	r.off += int64(total)
	r.number++
	r.advise()
	return block[headerBytes:], nil
}

// advise asks for the next block ahead of need, and gives back what was read.
func (r *runReader) advise() {
	if ahead := min(int64(len(r.buf)), r.run.Bytes-r.off); ahead > 0 {
		_ = r.f.Prefetch(r.off, ahead) // a hint: reading works without it
	}
	if r.off-r.dropped >= syncBytes {
		dropCache(r.f, r.dropped, r.off-r.dropped)
		r.dropped = r.off
	}
}

func (r *runReader) read(p []byte, off int64) error {
	n, err := r.f.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return r.damaged("file is shorter than it was written")
	}
	return fmt.Errorf("extsort: read %s at offset %d: %w", r.path, off, err)
}

func (r *runReader) damaged(what string) error {
	return fmt.Errorf("extsort: read %s block %d at offset %d: %s: %w",
		r.path, r.number, r.off, what, ErrDamaged)
}

func (r *runReader) close() error {
	dropCache(r.f, 0, r.run.Bytes)
	return r.f.Close()
}
