package superbatch

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Kinds of runtime files, as in their headers.
const (
	kindBatches  = "GSBB" // the sampled batches: for each its nodes, then its edges
	kindAccesses = "GSBA" // which nodes are accessed when, by node range
	kindNext     = "GSBN" // the next use of each access, parallel to these
	kindPlan     = "GSBP" // where each batch finds its rows, and which it keeps
	kindRows     = "GSBR" // the rows that some batches miss, batch by batch
	kindSlots    = "GSBS" // the rows of slots whose memory is needed between epochs
)

// A runtime file is a header block (see codec.Header; its fields are the number of the
// superbatch) and records, each at a multiple of unitBytes:
//
//	0        4        8          16
//	+--------+--------+----------+------------------+-------+
//	| crc32c | length | sequence | payload (length) | zeros |
//	+--------+--------+----------+------------------+-------+
//
// The checksum covers kind, store, offset, length, sequence and payload, so a record of another
// place, file or superbatch never verifies. These files do not outlive the process: they are not
// synced, and nothing reads those of a process that died.
const (
	recordHead = 16
	unitBytes  = blockdev.Align
	// readChunk is the size of one of the reads of a large record.
	readChunk = 1 << 20
)

const _ uint = -(codec.HeaderBytes % unitBytes) // records begin at a whole unit

// ref is where a record is: 8 bytes, so that a million batches need few MiB.
type ref struct {
	unit  uint32 // offset in units, with inMemory: files end at 1 TiB
	bytes uint32 // of the payload
}

// inMemory says that a record is not in the file but in the memory that stands before it.
const inMemory = 1 << 31

func (r ref) inMemory() bool { return r.unit&inMemory != 0 }

func (r ref) off() int64 { return int64(r.unit&^inMemory) * unitBytes }

// diskBytes is what the record takes in its file.
func (r ref) diskBytes() int64 { return roundUp(recordHead+int64(r.bytes), unitBytes) }

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// identity is what all files of a superbatch have in common.
type identity struct {
	fs   vfs.FS
	dir  string
	uuid kv.UUID
	seq  uint64 // number of the superbatch
}

func (id identity) path(kind string) string {
	name := map[string]string{kindBatches: "batches", kindAccesses: "accesses",
		kindNext: "next", kindPlan: "plan", kindRows: "rows",
		kindSlots: "slots"}[kind]
	return id.fs.PathJoin(id.dir, fmt.Sprintf("%d.%s", id.seq, name))
}

// sum is the checksum of a record whose head is given without the checksum.
func (id identity) sum(kind string, off int64, head, payload []byte) uint32 {
	return codec.BlockSum(kind, id.uuid, uint64(off), head, payload)
}

// writer writes one runtime file from start to end. The first records go to memory, if it has some:
// they are never written.
type writer struct {
	id   identity
	kind string
	file vfs.File
	out  *blockdev.Writer
	size int64 // with what out has not written yet
	err  error // the first; all later writes fail with it

	memory []byte
	used   int64 // of memory
}

// create starts a runtime file.
func (id identity) create(kind string) (*writer, error) {
	f, err := id.fs.Create(id.path(kind), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("superbatch: create %s: %w", id.path(kind), err)
	}
	var fields codec.Enc
	fields.U64(id.seq)
	w := &writer{id: id, kind: kind, file: f, out: blockdev.NewWriter(f)}
	header := codec.Header{Kind: kind, UUID: id.uuid, Fields: fields.B}.Encode()
	w.put(header)
	w.size = int64(len(header))
	return w, nil
}

// append writes a record; the contents of payload may be lost.
func (w *writer) append(payload []byte) (ref, error) {
	if w.err != nil {
		return ref{}, w.err
	}
	if end := w.used + int64(len(payload)); end <= int64(len(w.memory)) {
		r := ref{unit: uint32(w.used/unitBytes) | inMemory, bytes: uint32(len(payload))}
		copy(w.memory[w.used:], payload)
		w.used = roundUp(end, unitBytes)
		return r, nil
	}
	r := ref{unit: uint32(w.size / unitBytes), bytes: uint32(len(payload))}
	if w.size/unitBytes >= inMemory || len(payload) > math.MaxUint32-recordHead {
		w.err = fmt.Errorf("superbatch: %s: a record of %d bytes at offset %d is too far or too "+
			"large: lower --superbatch", w.id.path(w.kind), len(payload), w.size)
		return ref{}, w.err
	}
	head := codec.Enc{B: make([]byte, 0, recordHead)}
	head.U32(0)
	head.U32(r.bytes)
	head.U64(w.id.seq)
	sum := codec.Enc{B: head.B[:0]}
	sum.U32(w.id.sum(w.kind, w.size, head.B[4:recordHead], payload))
	w.put(head.B[:recordHead])
	w.put(payload)
	w.size += r.diskBytes()
	var zeros [unitBytes]byte
	w.put(zeros[:r.diskBytes()-recordHead-int64(r.bytes)])
	return r, w.err
}

func (w *writer) put(p []byte) {
	if w.err != nil {
		return
	}
	if _, err := w.out.Write(p); err != nil {
		w.failed(err)
	}
}

func (w *writer) failed(err error) {
	w.err = fmt.Errorf("superbatch: write %s before offset %d: %w; free space on the disk, or "+
		"lower --superbatch", w.id.path(w.kind), w.size, err)
}

// total is what the records take, in memory too.
func (w *writer) total() int64 { return w.size + w.used }

// flush writes what is left; no record can follow.
func (w *writer) flush() error {
	if w.err == nil {
		if err := w.out.Finish(); err != nil {
			w.failed(err)
		}
	}
	return w.err
}

// finish writes what is left and closes the file.
func (w *writer) finish() error { return errors.Join(w.flush(), w.abort()) }

// abort closes the file; further calls do nothing.
func (w *writer) abort() error {
	if w.file == nil {
		return nil
	}
	w.out.Stop()
	err := w.file.Close()
	w.file = nil
	if err != nil {
		return fmt.Errorf("superbatch: close %s: %w", w.id.path(w.kind), err)
	}
	return nil
}

// reader reads the records of one runtime file, in any order, from any goroutine.
type reader struct {
	id   identity
	kind string
	dev  blockdev.Device
	file blockdev.File

	memory []byte // see writer
}

// open opens a finished file and checks its header.
func (id identity) open(ctx context.Context, dev blockdev.Device, kind string) (*reader, error) {
	f, err := dev.OpenFile(id.fs, id.path(kind))
	if err != nil {
		return nil, fmt.Errorf("superbatch: open %s: %w", id.path(kind), err)
	}
	r := &reader{id: id, kind: kind, dev: dev, file: f}
	buf := blockdev.AlignedBuffer(codec.HeaderBytes)
	err = dev.ReadBatch(ctx, []blockdev.Request{{File: f, Buf: buf}})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("superbatch: read the header of %s: %w", id.path(kind),
			err), f.Close())
	}
	if _, err := codec.DecodeHeader(buf, kind, id.uuid); err != nil {
		return nil, errors.Join(r.damage(0, "header: %v", err), f.Close())
	}
	return r, nil
}

// damage says that the disk gave other bytes than were written. It wraps layout.ErrCorrupt.
func (r *reader) damage(off int64, format string, args ...any) error {
	return fmt.Errorf("superbatch: %s record at offset %d: %w: %s; check the disk and run again",
		r.id.path(r.kind), off, layout.ErrCorrupt, fmt.Sprintf(format, args...))
}

// record is one of a file.
type record struct {
	file *reader
	at   ref
}

// read returns the payloads of records, verified, in the memory of the buffer. All are read at
// once.
func (b *buffer) read(ctx context.Context, records ...record) ([][]byte, error) {
	total := int64(0)
	for _, r := range records {
		if r.at.inMemory() {
			continue
		}
		if end := r.at.off() + r.at.diskBytes(); end > r.file.file.Size() {
			return nil, r.file.damage(r.at.off(), "file is %d bytes long, the record ends at %d",
				r.file.file.Size(), end)
		}
		total += r.at.diskBytes()
	}
	var all []byte
	if total > 0 {
		if err := b.fit(total); err != nil {
			return nil, err
		}
		all = b.arena.Bytes()
	}
	b.reqs, b.payloads = b.reqs[:0], b.payloads[:0]
	for _, r := range records {
		if r.at.inMemory() {
			b.payloads = append(b.payloads, r.file.memory[r.at.off():][:r.at.bytes])
			continue
		}
		size := r.at.diskBytes()
		part := all[:size]
		all = all[size:]
		b.payloads = append(b.payloads, part)
		for i := int64(0); i < size; i += readChunk {
			b.reqs = append(b.reqs, blockdev.Request{File: r.file.file, Off: r.at.off() + i,
				Buf: part[i:min(i+readChunk, size)]})
		}
	}
	if len(b.reqs) == 0 {
		return b.payloads, ctx.Err()
	}
	if err := records[0].file.dev.ReadBatch(ctx, b.reqs); err != nil {
		return nil, fmt.Errorf("superbatch: read %s: %w", records[0].file.id.dir, err)
	}
	for i, r := range records {
		if r.at.inMemory() {
			continue
		}
		var err error
		if b.payloads[i], err = r.file.verify(r.at, b.payloads[i]); err != nil {
			return nil, err
		}
	}
	return b.payloads, nil
}

// verify returns the payload of a record.
func (r *reader) verify(at ref, b []byte) ([]byte, error) {
	d := codec.NewDec(b)
	sum, bytes, seq := d.U32(), d.U32(), d.U64()
	payload := b[recordHead : recordHead+int64(at.bytes)]
	if got := r.id.sum(r.kind, at.off(), b[4:recordHead], payload); got != sum {
		return nil, r.damage(at.off(), "record has checksum %08x, its bytes give %08x", sum, got)
	}
	if bytes != at.bytes || seq != r.id.seq {
		return nil, r.damage(at.off(), "%d bytes of superbatch %d, want %d of %d", bytes, seq,
			at.bytes, r.id.seq)
	}
	return payload, nil
}

func (r *reader) close() error {
	if err := r.file.Close(); err != nil {
		return fmt.Errorf("superbatch: close %s: %w", r.id.path(r.kind), err)
	}
	return nil
}

// drop closes and removes the file.
func (r *reader) drop() error { return errors.Join(r.close(), r.id.remove(r.kind)) }

// remove deletes a file of the superbatch.
func (id identity) remove(kind string) error {
	if err := id.fs.Remove(id.path(kind)); err != nil {
		return fmt.Errorf("superbatch: remove %s: %w", id.path(kind), err)
	}
	return nil
}

// buffer is aligned memory that records are read to.
type buffer struct {
	budget   *mem.Budget
	arena    *mem.Arena
	reqs     []blockdev.Request
	payloads [][]byte
}

// fit makes the buffer hold n bytes, with a quarter to spare; what it held is lost.
func (b *buffer) fit(n int64) error {
	if b.arena != nil && int64(len(b.arena.Bytes())) >= n {
		return nil
	}
	if err := b.free(); err != nil {
		return err
	}
	var err error
	b.arena, err = mem.NewArena(b.budget, "superbatch read buffer", n+n/4)
	return err
}

func (b *buffer) free() error {
	a := b.arena
	b.arena = nil
	if a == nil {
		return nil
	}
	return a.Free()
}
