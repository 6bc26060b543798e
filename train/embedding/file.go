package embedding

import (
	"errors"
	"fmt"
	"io/fs"

	"gdb/internal/codec"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/train/runs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A file of vectors, checkpoint-N/embedding, is a header block followed by arrays of float32, each
// (nodes, width), with its checksum in the header:
//
//	header fields: u64 nodes, u32 width, u64 steps of the optimizer, u32 number of arrays,
//	               then for each array: string name, u32 crc32c
//
// The checksum of array i is codec.BlockSum of block i+1. The file is complete before the
// checkpoint's state is written.
const (
	fileKind = "EMBD"
	// FileName is the name of the file in a checkpoint's directory.
	FileName    = "embedding"
	headerBytes = codec.HeaderBytes
	// arraysMax bounds the number of arrays that a header may claim.
	arraysMax = 16
	// pieceBytes is how many bytes are written at a time. They are copied first, because a vfs.File
	// may change what it writes.
	pieceBytes = 1 << 20
)

// fileHeader is the content of a file's header.
type fileHeader struct {
	nodes uint64
	dim   int
	steps uint64
	names []string
	sums  []uint32
}

func (h *fileHeader) encode(uuid [16]byte) []byte {
	var e codec.Enc
	e.U64(h.nodes)
	e.U32(uint32(h.dim))
	e.U64(h.steps)
	e.U32(uint32(len(h.names)))
	for i, name := range h.names {
		e.String(name)
		e.U32(h.sums[i])
	}
	return codec.Header{Kind: fileKind, UUID: uuid, Fields: e.B}.Encode()
}

func decodeHeader(b []byte, uuid [16]byte) (f fileHeader, err error) {
	h, err := codec.DecodeHeader(b, fileKind, uuid)
	if err != nil {
		return f, err
	}
	d := codec.NewDec(h.Fields)
	f.nodes, f.dim, f.steps = d.U64(), int(d.U32()), d.U64()
	n := d.U32()
	if n > arraysMax {
		return f, fmt.Errorf("%d arrays, at most %d", n, arraysMax)
	}
	for range n {
		f.names, f.sums = append(f.names, d.String()), append(f.sums, d.U32())
	}
	if d.Err() == nil && d.Remaining() != 0 {
		return f, fmt.Errorf("%d bytes after the end of the header", d.Remaining())
	}
	return f, d.Err()
}

// Write writes the file of a checkpoint into its directory: the vectors, the optimizer's state
// after that many steps, and the vectors of the best evaluation, if there was one.
func (t *Table) Write(r runs.Dir, dir string, steps int, best bool) (err error) {
	h := fileHeader{nodes: t.cfg.Nodes, dim: t.cfg.Dim, steps: uint64(steps)}
	arrays := t.arrays(best)
	for i, a := range arrays {
		h.names = append(h.names, a.name)
		h.sums = append(h.sums, codec.BlockSum(fileKind, r.UUID(), uint64(i+1),
			mem.BytesOf(a.values)))
	}
	path := r.FS().PathJoin(dir, FileName)
	f, err := files.CreateAtomic(r.FS(), path)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	w := &pieces{f: f, buf: make([]byte, pieceBytes)}
	w.write(h.encode(r.UUID()))
	for _, a := range arrays {
		w.write(mem.BytesOf(a.values))
	}
	if w.err != nil {
		return errors.Join(fmt.Errorf("train: write %s at offset %d: %w", path, w.offset, w.err),
			f.Abort())
	}
	if err := f.Commit(); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// pieces writes copies of what it is given, piece by piece, until the first error.
type pieces struct {
	f      vfs.File
	buf    []byte
	offset int64
	err    error
}

func (w *pieces) write(b []byte) {
	for len(b) > 0 && w.err == nil {
		n := copy(w.buf, b)
		b = b[n:]
		n, w.err = w.f.Write(w.buf[:n])
		w.offset += int64(n)
	}
}

// Restore reads everything that a run needs to go on from a checkpoint in a directory of it. The
// optimizer must have taken that many steps.
func (t *Table) Restore(r runs.Dir, checkpoint string, steps int, best bool) error {
	return t.read(r, checkpoint, wanted{steps, t.arrays(best), false})
}

// Load reads the vectors to predict with: those of the best evaluation, if there was one.
func (t *Table) Load(r runs.Dir, checkpoint string, steps int, best bool) error {
	return t.read(r, checkpoint, wanted{steps, []array{t.predicting(best)}, false})
}

// Known says which nodes of a table a file has vectors of: the first, or those that Shifts lead
// from. Seed drew the vectors of the table.
type Known struct {
	Shifts []layout.Shift
	Seed   uint64
}

// LoadKnown does as Load with a file that may have fewer nodes. The vectors of the others are those
// that Init drew.
func (t *Table) LoadKnown(r runs.Dir, checkpoint string, steps int, best bool, of Known) error {
	err := t.read(r, checkpoint, wanted{steps, []array{t.predicting(best)}, true})
	if err == nil {
		runs.Spread(t.rows.values, t.cfg.Dim, of.Shifts, func(row []float32, node uint64) {
			initRow(row, of.Seed, node)
		})
	}
	return err
}

// predicting returns the rows under the name of those to predict with in a checkpoint.
func (t *Table) predicting(best bool) array {
	rows := t.rows
	if best {
		rows.name = bestName
	}
	return rows
}

// wanted says what to read: arrays, of a file after some steps of the optimizer. fewer says that
// the file may have fewer nodes.
type wanted struct {
	steps  int
	arrays []array
	fewer  bool
}

// read reads the wanted arrays by their names.
func (t *Table) read(r runs.Dir, checkpoint string, want wanted) (err error) {
	if !want.fewer {
		if err := r.SameNumbers(); err != nil {
			return err
		}
	}
	name := checkpoint + "/" + FileName
	f, err := r.FS().Open(r.Path(checkpoint, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("train: run %s: %w", r.Name(), r.Corrupt(name, "it is missing"))
	}
	if err != nil {
		return fmt.Errorf("train: run %s: %w", r.Name(), err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h, what, err := t.header(f, r.UUID(), want)
	for i := 0; err == nil && what == "" && i < len(want.arrays); i++ {
		to := want.arrays[i]
		to.values = to.values[:h.nodes*uint64(h.dim)]
		what, err = h.read(f, r.UUID(), to)
	}
	if what != "" {
		err = r.Corrupt(name, what)
	}
	if err != nil {
		return fmt.Errorf("train: run %s: %w", r.Name(), err)
	}
	return nil
}

// header reads the header of a file. what says which damage it found; "" if none.
func (t *Table) header(f vfs.File, uuid [16]byte, want wanted) (h fileHeader, what string,
	err error) {
	info, err := f.Stat()
	if err != nil {
		return h, "", err
	}
	b := make([]byte, headerBytes)
	if info.Size() < headerBytes {
		return h, fmt.Sprintf("it has %d bytes", info.Size()), nil
	}
	if _, err := f.ReadAt(b, 0); err != nil {
		return h, "", fmt.Errorf("read the header of %s: %w", FileName, err)
	}
	if h, err = decodeHeader(b, uuid); err != nil {
		return h, err.Error(), nil
	}
	if h.dim == t.cfg.Dim && h.nodes < t.cfg.Nodes && !want.fewer {
		return h, "", fmt.Errorf("it has learned a vector for each of %d nodes, and the snapshot "+
			"that is read has %d: read the snapshot of the run, or train one that begins with it "+
			"(train --from-run)", h.nodes, t.cfg.Nodes)
	}
	fits := h.dim == t.cfg.Dim && (h.nodes == t.cfg.Nodes || want.fewer && h.nodes < t.cfg.Nodes)
	size := headerBytes + int64(len(h.names))*4*int64(h.nodes)*int64(h.dim)
	switch {
	case !fits:
		what = fmt.Sprintf("vectors of %d values of %d nodes, the run has %d of %d", h.dim, h.nodes,
			t.cfg.Dim, t.cfg.Nodes)
	case h.steps != uint64(want.steps):
		what = fmt.Sprintf("it is from step %d, the checkpoint from %d", h.steps, want.steps)
	case info.Size() != size:
		what = fmt.Sprintf("it has %d bytes, want %d", info.Size(), size)
	}
	return h, what, nil
}

// read reads an array and checks its checksum. what says which damage it found; "" if none.
func (h *fileHeader) read(f vfs.File, uuid [16]byte, to array) (what string, err error) {
	for i, name := range h.names {
		if name != to.name {
			continue
		}
		b := mem.BytesOf(to.values)
		if _, err := f.ReadAt(b, headerBytes+int64(i)*int64(len(b))); err != nil {
			return "", fmt.Errorf("read %s: %w", name, err)
		}
		if got := codec.BlockSum(fileKind, uuid, uint64(i+1), b); got != h.sums[i] {
			return fmt.Sprintf("%s: checksum %08x, want %08x", name, got, h.sums[i]), nil
		}
		return "", nil
	}
	return "no " + to.name, nil
}
