package superbatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"gdb/blockdev"
	"gdb/internal/bug"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Kinds of runtime files, as they stand in their headers.
const (
	kindBatches  = "GSBB" // the sampled batches: for each its nodes, then its edges
	kindAccesses = "GSBA" // which nodes are accessed when, by node range
	kindNext     = "GSBN" // the next use of each access, in parallel parts
	kindPlan     = "GSBP" // where each batch finds its rows, and which it keeps
	kindMissing  = "GSBM" // which rows batches miss, by node range
	kindRows     = "GSBR" // the rows that some batches miss, batch by batch
	kindSlots    = "GSBS" // the rows of slots whose memory is needed between epochs
)

// The runtime files hold what a superbatch has on disk while its process runs: files of records
// with checksums, written from start to end and read in any order. They lie in a directory of the
// process in the store's prep/, which is removed with the process, or by a later one.
//
// A runtime file is a header block (see codec.Header; its one field is the number of the
// superbatch) and records, each at a multiple of unitBytes:
//
//	0        4        8          16
//	+--------+--------+----------+------------------+-------+
//	| crc32c | length | sequence | payload (length) | zeros |
//	+--------+--------+----------+------------------+-------+
//
// The checksum covers kind, store, offset, length, sequence and payload, so a record of another
// place, file or superbatch never verifies. The files do not outlive their process: they are not
// synced, and no process reads those of another.
const (
	recordHead = 16
	unitBytes  = blockdev.Align
	// readChunk is the size of the reads into which a large record is split, in bytes.
	readChunk = 1 << 20
)

const _ uint = -(codec.HeaderBytes % unitBytes) // records begin at a whole unit

// ref locates a record. It takes 8 bytes, so that a million batches need a few MiB.
type ref struct {
	Unit  uint32 // offset in units, or'ed with inMemory: files end at 1 TiB
	Bytes uint32 // size of the payload
}

// inMemory is set in ref.Unit if the record is in memory instead of the file.
const inMemory = 1 << 31

func (r ref) inMemory() bool { return r.Unit&inMemory != 0 }

// Off returns where the record begins, in bytes, in the file or in memory.
func (r ref) Off() int64 { return int64(r.Unit&^inMemory) * unitBytes }

// DiskBytes returns how many bytes the record takes in its file, with head and padding.
func (r ref) DiskBytes() int64 { return roundUp(recordHead+int64(r.Bytes), unitBytes) }

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// identity is what all files of a superbatch have in common: their place, store and number.
type identity struct {
	FS   vfs.FS
	Dir  string
	UUID kv.UUID
	Seq  uint64 // number of the superbatch
}

// Path returns the path of the file of a kind.
func (id identity) Path(kind string) string {
	name := map[string]string{kindBatches: "batches", kindAccesses: "accesses",
		kindNext: "next", kindPlan: "plan", kindMissing: "missing", kindRows: "rows",
		kindSlots: "slots"}[kind]
	return id.FS.PathJoin(id.Dir, fmt.Sprintf("%d.%s", id.Seq, name))
}

// sum returns the checksum of a record at off. head is the record's head without the checksum.
func (id identity) sum(kind string, off int64, head, payload []byte) uint32 {
	return codec.BlockSum(kind, id.UUID, uint64(off), head, payload)
}

// fileWriter writes one runtime file from start to end. The first records go to Memory, as long as
// they fit, and are never written to the file.
type fileWriter struct {
	ID   identity
	Kind string
	File vfs.File
	out  *blockdev.Writer
	Size int64 // bytes of the file, with what out has not written yet
	err  error // the first error; all later writes return it

	Memory []byte
	used   int64 // bytes used of Memory
}

// Create creates a runtime file of this kind.
func (id identity) Create(kind string) (*fileWriter, error) {
	f, err := id.FS.Create(id.Path(kind), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("superbatch: create %s: %w", id.Path(kind), err)
	}
	var fields codec.Enc
	fields.U64(id.Seq)
	w := &fileWriter{ID: id, Kind: kind, File: f, out: blockdev.NewWriter(f)}
	header := codec.Header{Kind: kind, UUID: id.UUID, Fields: fields.B}.Encode()
	w.put(header)
	w.Size = int64(len(header))
	return w, nil
}

// Append writes a record. payload's contents may be overwritten.
func (w *fileWriter) Append(payload []byte) (ref, error) {
	if w.err != nil {
		return ref{}, w.err
	}
	if end := w.used + int64(len(payload)); end <= int64(len(w.Memory)) {
		r := ref{Unit: uint32(w.used/unitBytes) | inMemory, Bytes: uint32(len(payload))}
		copy(w.Memory[w.used:], payload)
		w.used = roundUp(end, unitBytes)
		return r, nil
	}
	r := ref{Unit: uint32(w.Size / unitBytes), Bytes: uint32(len(payload))}
	if w.Size/unitBytes >= inMemory || len(payload) > math.MaxUint32-recordHead {
		w.err = fmt.Errorf("superbatch: %s: a record of %d bytes at offset %d is too far or too "+
			"large: lower --superbatch", w.ID.Path(w.Kind), len(payload), w.Size)
		return ref{}, w.err
	}
	head := codec.Enc{B: make([]byte, 0, recordHead)}
	head.U32(0)
	head.U32(r.Bytes)
	head.U64(w.ID.Seq)
	sum := codec.Enc{B: head.B[:0]}
	sum.U32(w.ID.sum(w.Kind, w.Size, head.B[4:recordHead], payload))
	w.put(head.B[:recordHead])
	w.put(payload)
	w.Size += r.DiskBytes()
	var zeros [unitBytes]byte
	w.put(zeros[:r.DiskBytes()-recordHead-int64(r.Bytes)])
	return r, w.err
}

func (w *fileWriter) put(p []byte) {
	if w.err != nil {
		return
	}
	if _, err := w.out.Write(p); err != nil {
		w.failed(err)
	}
}

func (w *fileWriter) failed(err error) {
	w.err = fmt.Errorf("superbatch: write %s before offset %d: %w; free space on the disk, or "+
		"lower --superbatch", w.ID.Path(w.Kind), w.Size, err)
}

// Total returns the bytes that the records take, in the file and in memory.
func (w *fileWriter) Total() int64 { return w.Size + w.used }

// Flush writes what is buffered. No record can follow.
func (w *fileWriter) Flush() error {
	if w.err == nil {
		if err := w.out.Finish(); err != nil {
			w.failed(err)
		}
	}
	return w.err
}

// Finish writes what is buffered and closes the file.
func (w *fileWriter) Finish() error { return errors.Join(w.Flush(), w.Abort()) }

// Abort closes the file. Further calls do nothing.
func (w *fileWriter) Abort() error {
	if w.File == nil {
		return nil
	}
	w.out.Stop()
	err := w.File.Close()
	w.File = nil
	if err != nil {
		return fmt.Errorf("superbatch: close %s: %w", w.ID.Path(w.Kind), err)
	}
	return nil
}

// fileReader reads the records of one runtime file, in any order, from any goroutine.
type fileReader struct {
	id   identity
	kind string
	dev  blockdev.Device
	File blockdev.File

	Memory []byte // that of the Writer, with its first records
}

// Open opens a finished file and checks its header.
func (id identity) Open(ctx context.Context, dev blockdev.Device,
	kind string) (*fileReader, error) {
	f, err := dev.OpenFile(id.FS, id.Path(kind))
	if err != nil {
		return nil, fmt.Errorf("superbatch: open %s: %w", id.Path(kind), err)
	}
	r := &fileReader{id: id, kind: kind, dev: dev, File: f}
	buf := blockdev.AlignedBuffer(codec.HeaderBytes)
	err = dev.ReadBatch(ctx, []blockdev.Request{{File: f, Buf: buf}})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("superbatch: read the header of %s: %w", id.Path(kind),
			err), f.Close())
	}
	if _, err := codec.DecodeHeader(buf, kind, id.UUID); err != nil {
		return nil, errors.Join(r.Damage(0, "header: %v", err), f.Close())
	}
	return r, nil
}

// Damage returns an error saying that the disk returned other bytes than were written. It wraps
// layout.ErrCorrupt.
func (r *fileReader) Damage(off int64, format string, args ...any) error {
	return fmt.Errorf("superbatch: %s record at offset %d: %w: %s; check the disk and run again",
		r.id.Path(r.kind), off, layout.ErrCorrupt, fmt.Sprintf(format, args...))
}

// record names one record of a file.
type record struct {
	File *fileReader
	At   ref
}

// Read reads all records at once and returns their payloads, verified. They are valid until the
// next call.
func (b *readBuffer) Read(ctx context.Context, records ...record) ([][]byte, error) {
	total := int64(0)
	for _, r := range records {
		if r.At.inMemory() {
			continue
		}
		if end := r.At.Off() + r.At.DiskBytes(); end > r.File.File.Size() {
			return nil, r.File.Damage(r.At.Off(), "file is %d bytes long, the record ends at %d",
				r.File.File.Size(), end)
		}
		total += r.At.DiskBytes()
	}
	var all []byte
	if total > 0 {
		if err := b.fit(total); err != nil {
			return nil, err
		}
		all = b.Arena.Bytes()
	}
	b.reqs, b.Payloads = b.reqs[:0], b.Payloads[:0]
	for _, r := range records {
		if r.At.inMemory() {
			b.Payloads = append(b.Payloads, r.File.Memory[r.At.Off():][:r.At.Bytes])
			continue
		}
		size := r.At.DiskBytes()
		part := all[:size]
		all = all[size:]
		b.Payloads = append(b.Payloads, part)
		for i := int64(0); i < size; i += readChunk {
			b.reqs = append(b.reqs, blockdev.Request{File: r.File.File, Off: r.At.Off() + i,
				Buf: part[i:min(i+readChunk, size)]})
		}
	}
	if len(b.reqs) == 0 {
		return b.Payloads, ctx.Err()
	}
	if err := records[0].File.dev.ReadBatch(ctx, b.reqs); err != nil {
		return nil, fmt.Errorf("superbatch: read %s: %w", records[0].File.id.Dir, err)
	}
	for i, r := range records {
		if r.At.inMemory() {
			continue
		}
		var err error
		if b.Payloads[i], err = r.File.verify(r.At, b.Payloads[i]); err != nil {
			return nil, err
		}
	}
	return b.Payloads, nil
}

// verify checks the record in b and returns its payload.
func (r *fileReader) verify(at ref, b []byte) ([]byte, error) {
	d := codec.NewDec(b)
	sum, bytes, seq := d.U32(), d.U32(), d.U64()
	payload := b[recordHead : recordHead+int64(at.Bytes)]
	if got := r.id.sum(r.kind, at.Off(), b[4:recordHead], payload); got != sum {
		return nil, r.Damage(at.Off(), "record has checksum %08x, its bytes give %08x", sum, got)
	}
	if bytes != at.Bytes || seq != r.id.Seq {
		return nil, r.Damage(at.Off(), "%d bytes of superbatch %d, want %d of %d", bytes, seq,
			at.Bytes, r.id.Seq)
	}
	return payload, nil
}

// Close closes the file.
func (r *fileReader) Close() error {
	if err := r.File.Close(); err != nil {
		return fmt.Errorf("superbatch: close %s: %w", r.id.Path(r.kind), err)
	}
	return nil
}

// Drop closes and removes the file.
func (r *fileReader) Drop() error { return errors.Join(r.Close(), r.id.Remove(r.kind)) }

// Remove deletes the superbatch's file of this kind.
func (id identity) Remove(kind string) error {
	if err := id.FS.Remove(id.Path(kind)); err != nil {
		return fmt.Errorf("superbatch: remove %s: %w", id.Path(kind), err)
	}
	return nil
}

// readBuffer is aligned memory that records are read to. The zero value is empty; the owner calls
// Free.
type readBuffer struct {
	Budget   *mem.Budget
	Arena    *mem.Arena
	reqs     []blockdev.Request
	Payloads [][]byte
}

// fit makes the buffer hold n bytes, with a quarter to spare. What it held may be lost.
func (b *readBuffer) fit(n int64) error {
	if b.Arena != nil && int64(len(b.Arena.Bytes())) >= n {
		return nil
	}
	if err := b.Free(); err != nil {
		return err
	}
	var err error
	b.Arena, err = mem.NewArena(b.Budget, "superbatch read buffer", n+n/4)
	return err
}

// Free gives the memory back.
func (b *readBuffer) Free() error {
	a := b.Arena
	b.Arena = nil
	if a == nil {
		return nil
	}
	return a.Free()
}

// readAhead reads groups of records in order, in a goroutine: one is read while another is used.
type readAhead struct {
	groups      [2]readGroup
	used        *readGroup // the group that the consumer has
	empty, full chan *readGroup
	cancel      context.CancelFunc
	done        sync.WaitGroup
}

// readGroup is records that are read together.
type readGroup struct {
	Records  []record
	Payloads [][]byte
	Parts    []int // one number per record, by which the chooser knows it
	Fresh    bool  // set and read by the chooser; false for each new group
	err      error
	buf      readBuffer
}

// Add adds a record to the group. part is the number by which the caller knows it.
func (g *readGroup) Add(file *fileReader, at ref, part int) {
	g.Records, g.Parts = append(g.Records, record{File: file, At: at}), append(g.Parts, part)
}

// newReadAhead begins to read. choose adds the records of the next group and returns whether there
// is one; it is called by its goroutine. The caller calls Close.
func newReadAhead(ctx context.Context, budget *mem.Budget,
	choose func(*readGroup) bool) *readAhead {
	ctx, cancel := context.WithCancel(ctx)
	a := &readAhead{cancel: cancel, empty: make(chan *readGroup, 2), full: make(chan *readGroup, 2)}
	for i := range a.groups {
		a.groups[i].buf.Budget = budget
		a.empty <- &a.groups[i]
	}
	a.done.Go(func() {
		defer bug.Catch()
		defer close(a.full)
		for {
			var g *readGroup
			select {
			case g = <-a.empty:
			case <-ctx.Done():
				return
			}
			g.Records, g.Parts, g.Fresh = g.Records[:0], g.Parts[:0], false
			if !choose(g) {
				return
			}
			g.Payloads, g.err = g.buf.Read(ctx, g.Records...)
			a.full <- g // never blocks
			if g.err != nil {
				return
			}
		}
	})
	return a
}

// Next returns the next group, or nil after the last. The group before must not be used any more.
func (a *readAhead) Next(ctx context.Context) (*readGroup, error) {
	if a.used != nil {
		a.empty <- a.used // never blocks
		a.used = nil
	}
	g, ok := <-a.full
	if !ok {
		return nil, ctx.Err()
	}
	if g.err != nil {
		return nil, g.err
	}
	a.used = g
	return g, nil
}

// Close ends the goroutine and frees the memory.
func (a *readAhead) Close() error {
	a.cancel()
	a.done.Wait()
	err := a.groups[0].buf.Free()
	if other := a.groups[1].buf.Free(); err == nil {
		err = other
	}
	return err
}
