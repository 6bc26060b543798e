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
	"slices"

	"gdb/blockdev"
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

// RunWriter writes the blocks of one run, whose records come in order.
type RunWriter struct {
	f       vfs.File
	path    string
	run     Run
	block   []byte // headerBytes, then the payload so far
	limit   int    // payload bytes at which a block is full
	number  uint64
	flushed int64 // bytes up to which writing back was asked for
}

// NewRunWriter starts a run with a name below opt.Dir.
func NewRunWriter(opt Options, name string) (*RunWriter, error) {
	opt.ensureDefaults()
	path := opt.path(name)
	f, err := opt.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("extsort: create %s: %w", path, err)
	}
	return &RunWriter{f: f, path: path, run: Run{Name: name}, limit: opt.BlockBytes - headerBytes,
		block: make([]byte, headerBytes, opt.BlockBytes)}, nil
}

// Add appends an entry, which is not before the last. An entry that is larger than a block gets one
// of its own.
func (w *RunWriter) Add(e Entry) error {
	n := entryBytes + len(e.Text)
	if len(w.block) > headerBytes && len(w.block)-headerBytes+n > w.limit {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.block = e.appendTo(w.block)
	w.run.Records++
	return nil
}

// words appends records of a width.
func (w *RunWriter) words(words []uint64, width int) error {
	perBlock := max(1, w.limit/8/width) * width * 8 // bytes of whole records in a block
	w.run.Records += uint64(len(words) / width)
	for b := mem.BytesOf(words); len(b) > 0; {
		n := min(perBlock-(len(w.block)-headerBytes), len(b))
		w.block, b = append(w.block, b[:n]...), b[n:]
		if len(w.block)-headerBytes == perBlock {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *RunWriter) flush() error {
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

// Finish writes what is left, makes the run durable and closes it.
func (w *RunWriter) Finish() (Run, error) {
	err := w.flush()
	if err == nil {
		if err = w.f.Sync(); err != nil {
			err = fmt.Errorf("extsort: sync %s: %w", w.path, err)
		}
	}
	dropCache(w.f, 0, w.run.Bytes)
	return w.run, errors.Join(err, w.f.Close())
}

// WriteRun writes the run that fill gives.
func WriteRun(opt Options, name string, fill func(w *RunWriter) error) (Run, error) {
	w, err := NewRunWriter(opt, name)
	if err != nil {
		return Run{}, err
	}
	err = fill(w)
	run, err2 := w.Finish()
	return run, errors.Join(err, err2)
}

// dropCache tells the kernel that a range of a file will not be read again soon. Under a memory
// cgroup the page cache is charged to the process: what is dropped need not be reclaimed from it
// when memory is short. It is advice only, and does nothing for files in memory.
func dropCache(f vfs.File, off, n int64) {
	if n > 0 {
		_ = blockdev.DropCache(f, off, n)
	}
}

// openRuns are runs that are read at the same time. Each has a buffer of a block, outside of the Go
// heap.
type openRuns struct {
	blocks  *mem.Arena
	readers []*runReader
}

// open opens runs. What is open must be closed, although it fails.
func (o *openRuns) open(opt *Options, runs []Run) (err error) {
	size := opt.BlockBytes
	if o.blocks, err = mem.NewArena(opt.Budget, "merging", int64(len(runs)*size)); err != nil {
		return err
	}
	for i, run := range runs {
		path := opt.path(run.Name)
		f, err := opt.FS.Open(path, vfs.RandomReadsOption)
		if err != nil {
			return fmt.Errorf("extsort: open %s: %w", path, err)
		}
		o.readers = append(o.readers, &runReader{f: f, path: path, run: run,
			buf: o.blocks.Bytes()[i*size : (i+1)*size]})
	}
	return nil
}

func (o *openRuns) close() error {
	var errs []error
	for _, r := range o.readers {
		dropCache(r.f, 0, r.run.Bytes)
		errs = append(errs, r.f.Close())
	}
	o.readers = nil
	if o.blocks != nil {
		errs = append(errs, o.blocks.Free())
	}
	return errors.Join(errs...)
}

// reduce merges runs until they can be merged at once: mergeTo merges a group of them to one. Those
// that it was given stay. made are the runs of the result that it made, at PREFIX-m0.run and so
// on, which the caller removes.
func reduce(opt Options, runs []Run, mergeTo func(group []Run, w *RunWriter) error) (rest,
	made []Run, err error) {
	count := 0
	for fan := fanIn(opt.Memory, opt.BlockBytes); len(runs) > fan; count++ {
		// Merge no more than needed: what is left is merged once only.
		group := runs[:min(fan, len(runs)-fan+1)]
		run, err := WriteRun(opt, fmt.Sprintf("%s-m%d.run", opt.Prefix, count),
			func(w *RunWriter) error { return mergeTo(group, w) })
		if err != nil {
			return nil, made, err
		}
		for _, r := range group {
			if i := slices.Index(made, r); i >= 0 {
				made = slices.Delete(made, i, i+1)
				if err := opt.Remove(r); err != nil {
					return nil, made, err
				}
			}
		}
		made, runs = append(made, run), append(slices.Clone(runs[len(group):]), run)
	}
	return runs, made, nil
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
