package layout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/storefs"
	"gdb/kv"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Kinds of files, as in their headers and in kv.FileMeta. The direction is part of the kind, so
// that checksums tell in-lists from out-lists.
const (
	KindTopologyIn  = "GTIN"
	KindTopologyOut = "GTOU"
	KindIndexIn     = "GXIN"
	KindIndexOut    = "GXOU"
	KindRows        = "GROW"
	KindSums        = "GCRC"
)

// pageBytes is the unit of layout of index and checksum files, and the least block.
const pageBytes = 4096

// readChunk is the size of one sequential read: at 64 KiB random reads are as fast as sequential
// ones, so 1 MiB is large enough for any disk and small enough that several are in flight.
const readChunk = 1 << 20

// TopologyPaths returns where the lists of a direction and their index are, relative to the
// store.
func TopologyPaths(d Direction) (lists, index string) {
	prefix := "topology/" + d.String()
	return prefix + listsExt(d), prefix + ".idx"
}

// listsExt is .csc for in-lists (compressed columns) and .csr for out-lists (compressed rows).
func listsExt(d Direction) string {
	if d == Out {
		return ".csr"
	}
	return ".csc"
}

func topologyKind(d Direction) string {
	if d == Out {
		return KindTopologyOut
	}
	return KindTopologyIn
}

func indexKind(d Direction) string {
	if d == Out {
		return KindIndexOut
	}
	return KindIndexIn
}

// SumsPath is the path of the checksums of a file of rows.
func SumsPath(rows string) string { return strings.TrimSuffix(rows, ".rows") + ".crc" }

// sumSeed is where the checksum of every block of a file starts: the sum of its kind and store.
func sumSeed(kind string, uuid kv.UUID) uint32 { return codec.Checksum([]byte(kind), uuid[:]) }

// numberedSum equals codec.BlockSum for a block that repeats its own number in the eight bytes of
// number, without encoding it again: it runs once for every block read.
func numberedSum(seed uint32, number, rest []byte) uint32 {
	return codec.ChecksumUpdate(codec.ChecksumUpdate(seed, number), rest)
}

// fileWriter writes one file from start to end in large pieces, and keeps its checksum.
type fileWriter struct {
	file vfs.File
	path string
	out  *blockdev.Writer
	sum  uint32
	size int64
	err  error // the first error; all later writes fail with it
}

func createFile(fs vfs.FS, path string) (*fileWriter, error) {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("layout: create %s: %w", path, err)
	}
	return &fileWriter{file: f, path: path, out: blockdev.NewWriter(f)}, nil
}

// write appends p, which is free to reuse afterwards.
func (w *fileWriter) write(p []byte) error {
	if w.err != nil {
		return w.err
	}
	w.sum = codec.ChecksumUpdate(w.sum, p)
	n, err := w.out.Write(p)
	w.size += int64(n)
	w.failed(err)
	return w.err
}

func (w *fileWriter) failed(err error) {
	if err != nil {
		w.err = fmt.Errorf("layout: write %s before offset %d: %w", w.path, w.size, err)
	}
}

// finish writes what is left, syncs and closes, and returns the record of the file, which will be
// known to the store as rel.
func (w *fileWriter) finish(rel, kind string) (kv.FileMeta, error) {
	if w.err == nil {
		w.failed(w.out.Finish())
	}
	if w.err == nil {
		if err := w.file.Sync(); err != nil {
			w.err = fmt.Errorf("layout: sync %s: %w", w.path, err)
		}
	}
	if err := w.abort(); w.err == nil {
		w.err = err
	}
	return kv.FileMeta{Path: rel, Kind: kind, Size: w.size, Checksum: w.sum}, w.err
}

// abort closes the file; further calls do nothing.
func (w *fileWriter) abort() error {
	if w.file == nil {
		return nil
	}
	w.out.Stop()
	err := w.file.Close()
	w.file = nil
	if err != nil {
		return fmt.Errorf("layout: close %s: %w", w.path, err)
	}
	return nil
}

// source is an opened store file and the name it has in messages.
type source struct {
	dev  blockdev.Device
	file blockdev.File
	path string // relative to the store
}

func (s *Store) open(dev blockdev.Device, rel string) (*source, error) {
	f, err := dev.OpenFile(s.fs, s.Path(rel))
	if err != nil {
		return nil, s.openError(rel, err)
	}
	return &source{dev: dev, file: f, path: rel}, nil
}

// openError tells the damage of a file that could not be opened from what the system refused.
func (s *Store) openError(rel string, err error) error {
	listed := slices.ContainsFunc(s.meta.Files, func(m kv.FileMeta) bool { return m.Path == rel })
	switch {
	case listed && oserror.IsNotExist(err):
		return &CorruptionError{Path: rel, Block: -1, What: "the file is missing"}
	case errors.Is(err, blockdev.ErrLength), errors.Is(err, storefs.ErrRefused):
		return &CorruptionError{Path: rel, Block: -1, What: err.Error()}
	}
	return fmt.Errorf("layout: open %s: %w", rel, err)
}

// read fills buf from offset off, in requests of readChunk.
func (f *source) read(ctx context.Context, off int64, buf []byte) error {
	return f.dev.ReadBatch(ctx, f.requests(off, buf))
}

// requests are those that fill buf from offset off.
func (f *source) requests(off int64, buf []byte) []blockdev.Request {
	reqs := make([]blockdev.Request, 0, (len(buf)+readChunk-1)/readChunk)
	for i := 0; i < len(buf); i += readChunk {
		end := min(i+readChunk, len(buf))
		reqs = append(reqs, blockdev.Request{File: f.file, Off: off + int64(i), Buf: buf[i:end]})
	}
	return reqs
}

// damage returns a CorruptionError of this file.
func (f *source) damage(block, off int64, format string, args ...any) error {
	return &CorruptionError{Path: f.path, Block: block, Offset: off,
		What: fmt.Sprintf(format, args...)}
}

// sized checks that the file is want bytes long.
func (f *source) sized(want int64) error {
	if got := f.file.Size(); got != want {
		return f.damage(-1, 0, "file is %d bytes long, want %d", got, want)
	}
	return nil
}

// header reads and checks the first block into buf, which is aligned and of codec.HeaderBytes. A
// header of another version is kv.ErrFormat, anything else that is wrong a CorruptionError.
func (f *source) header(ctx context.Context, kind string, uuid kv.UUID,
	buf []byte) (codec.Header, error) {
	if f.file.Size() < codec.HeaderBytes {
		return codec.Header{}, f.damage(-1, 0, "file is %d bytes long, shorter than its header",
			f.file.Size())
	}
	if err := f.read(ctx, 0, buf[:codec.HeaderBytes]); err != nil {
		return codec.Header{}, fmt.Errorf("layout: read the header of %s: %w", f.path, err)
	}
	h, err := codec.DecodeHeader(buf, kind, uuid)
	if errors.Is(err, codec.ErrVersion) {
		return h, fmt.Errorf("layout: %s: %w: %w", f.path, kv.ErrFormat, err)
	}
	if err != nil {
		return h, f.damage(0, 0, "header: %v", err)
	}
	return h, nil
}
