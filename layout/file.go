package layout

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"gdb/blockdev"
	"gdb/internal/bug"
	"gdb/internal/codec"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/kv"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Kinds of files, as in their headers and in kv.FileMeta. The direction is part of the kind, so
// that checksums distinguish in-lists from out-lists.
const (
	KindTopologyIn  = "GTIN"
	KindTopologyOut = "GTOU"
	KindIndexIn     = "GXIN"
	KindIndexOut    = "GXOU"
	KindRows        = "GROW"
	KindSums        = "GCRC"
	KindColumn      = "GCOL"
)

// PageBytes is the size of a page of index and checksum files, and the smallest block.
const PageBytes = 4096

// ReadChunk is the size of one sequential read: at 64 KiB random reads are as fast as sequential
// ones, so 1 MiB is large enough for any disk and small enough that several are in flight.
const ReadChunk = 1 << 20

// TopologyPaths returns the paths of the lists of a direction and of their index, relative to the
// store.
func TopologyPaths(d Direction) (lists, index string) {
	prefix := "topology/" + d.String()
	return prefix + ListsExt(d), prefix + ".idx"
}

// ListsExt returns .csc for in-lists (compressed columns) and .csr for out-lists (compressed rows).
func ListsExt(d Direction) string { return [...]string{In: ".csc", Out: ".csr"}[d] }

// TopologyKind returns the kind of the file of lists of a direction.
func TopologyKind(d Direction) string {
	return [...]string{In: KindTopologyIn, Out: KindTopologyOut}[d]
}

// IndexKind returns the kind of the index of the lists of a direction.
func IndexKind(d Direction) string { return [...]string{In: KindIndexIn, Out: KindIndexOut}[d] }

// SumsPath returns the path of the checksums of a file of rows.
func SumsPath(rows string) string { return strings.TrimSuffix(rows, ".rows") + ".crc" }

// SumSeed returns the checksum of a file's kind and store, with which the checksum of every block
// starts.
func SumSeed(kind string, uuid kv.UUID) uint32 { return codec.Checksum([]byte(kind), uuid[:]) }

// NumberedSum returns codec.BlockSum of a block that holds its own number, in the eight bytes of
// number. It does not encode the number again, since it runs for every block read.
func NumberedSum(seed uint32, number, rest []byte) uint32 {
	return codec.ChecksumUpdate(codec.ChecksumUpdate(seed, number), rest)
}

// VerifyPage checks page number n of an index or of checksums, which begins with its checksum.
func VerifyPage(kind string, uuid kv.UUID, n int64, page []byte) error {
	want := binary.LittleEndian.Uint32(page)
	if got := codec.BlockSum(kind, uuid, uint64(n), page[4:]); got != want {
		return fmt.Errorf("checksum is %08x, its bytes give %08x", want, got)
	}
	return nil
}

// FileWriter writes one file from start to end in large pieces, and keeps its checksum.
type FileWriter struct {
	file vfs.File
	Path string
	out  *blockdev.Writer
	sum  uint32
	size int64
	err  error // the first error; all later writes return it
}

// CreateFile creates a file. The caller calls Finish or Abort.
func CreateFile(fs vfs.FS, path string) (*FileWriter, error) {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("layout: create %s: %w", path, err)
	}
	return &FileWriter{file: f, Path: path, out: blockdev.NewWriter(f)}, nil
}

// Write appends p, which the caller may change afterwards.
func (w *FileWriter) Write(p []byte) error {
	if w.err != nil {
		return w.err
	}
	w.sum = codec.ChecksumUpdate(w.sum, p)
	n, err := w.out.Write(p)
	w.size += int64(n)
	w.failed(err)
	return w.err
}

func (w *FileWriter) failed(err error) {
	if err != nil {
		w.err = fmt.Errorf("layout: write %s before offset %d: %w", w.Path, w.size, err)
	}
}

// Finish writes what is buffered, syncs and closes the file, and returns its record. rel is its
// path relative to the store.
func (w *FileWriter) Finish(rel, kind string) (kv.FileMeta, error) {
	if w.err == nil {
		w.failed(w.out.Finish())
	}
	if w.err == nil {
		if err := w.file.Sync(); err != nil {
			w.err = fmt.Errorf("layout: sync %s: %w", w.Path, err)
		}
	}
	if err := w.Abort(); w.err == nil {
		w.err = err
	}
	return kv.FileMeta{Path: rel, Kind: kind, Size: w.size, Checksum: w.sum}, w.err
}

// Abort closes the file. Further calls do nothing.
func (w *FileWriter) Abort() error {
	if w.file == nil {
		return nil
	}
	w.out.Stop()
	err := w.file.Close()
	w.file = nil
	if err != nil {
		return fmt.Errorf("layout: close %s: %w", w.Path, err)
	}
	return nil
}

// PageWriter writes an index or checksums: a header, and pages that begin with their checksum.
type PageWriter struct {
	*FileWriter
	kind  string
	uuid  kv.UUID
	page  []byte // room for the checksum, and the entries so far
	pages uint64
}

// CreatePages creates a file with a header. The caller calls FinishPages or Abort.
func CreatePages(fs vfs.FS, path string, h codec.Header) (*PageWriter, error) {
	f, err := CreateFile(fs, path)
	if err != nil {
		return nil, err
	}
	if err := f.Write(h.Encode()); err != nil {
		return nil, errors.Join(err, f.Abort())
	}
	return &PageWriter{FileWriter: f, kind: h.Kind, uuid: h.UUID, page: make([]byte, 4, PageBytes)},
		nil
}

// Add appends an entry, and ends the page if it has no room for another one.
func (w *PageWriter) Add(entry ...uint32) error {
	for _, v := range entry {
		w.page = binary.LittleEndian.AppendUint32(w.page, v)
	}
	if len(w.page)+4*len(entry) > PageBytes {
		return w.EndPage(nil)
	}
	return nil
}

// EndPage appends last to the page and writes it, filled up with zeros, unless it is empty.
func (w *PageWriter) EndPage(last []byte) error {
	w.page = append(w.page, last...)
	n := len(w.page)
	if n == 4 {
		return nil
	}
	w.page = w.page[:PageBytes]
	clear(w.page[n:])
	w.pages++
	binary.LittleEndian.PutUint32(w.page, codec.BlockSum(w.kind, w.uuid, w.pages, w.page[4:]))
	err := w.Write(w.page)
	w.page = w.page[:4]
	return err
}

// FinishPages ends the last page, and does what Finish does.
func (w *PageWriter) FinishPages(rel string) (kv.FileMeta, error) {
	err := w.EndPage(nil)
	m, err2 := w.Finish(rel, w.kind)
	return m, errors.Join(err, err2)
}

// File is an opened file of a store, which Dev reads by Handle, and its name in messages.
type File struct {
	Dev    blockdev.Device
	Handle blockdev.File
	Path   string // relative to the store
}

// OpenFile opens a file of the store for reading. If the catalog lists the file with another
// length, it returns a CorruptionError.
func (s *Store) OpenFile(dev blockdev.Device, rel string) (*File, error) {
	if len(s.levels) > 0 && !strings.HasPrefix(rel, PrepDir+"/") &&
		!strings.HasPrefix(rel, "runs/") {
		return nil, s.errLevels(rel + " would be read without")
	}
	f, err := dev.OpenFile(s.fs, s.Path(rel))
	if err != nil {
		return nil, s.openError(rel, err)
	}
	if what := s.meta.CheckSize(rel, f.Size()); what != "" {
		return nil, errors.Join(&CorruptionError{Path: rel, Block: -1, What: what}, f.Close())
	}
	return &File{Dev: dev, Handle: f, Path: rel}, nil
}

// openError returns a CorruptionError if the failure to open a file shows damage, else the system's
// error.
func (s *Store) openError(rel string, err error) error {
	_, listed := s.meta.File(rel)
	what := ""
	switch {
	case listed && (oserror.IsNotExist(err) || errors.Is(err, syscall.ENOTDIR)):
		what = "the file is missing"
	case errors.Is(err, blockdev.ErrLength):
		if info, e := s.fs.Stat(s.Path(rel)); e == nil {
			what = s.meta.CheckSize(rel, info.Size())
		}
		what = cmp.Or(what, err.Error())
	case errors.Is(err, files.ErrRefused):
		what = err.Error()
	}
	if what != "" {
		return &CorruptionError{Path: rel, Block: -1, What: what}
	}
	return fmt.Errorf("layout: open %s: %w", rel, err)
}

// Size returns the length of the file in bytes.
func (f *File) Size() int64 { return f.Handle.Size() }

// Close closes the file.
func (f *File) Close() error { return f.Handle.Close() }

// Read fills buf from offset off on, in requests of ReadChunk.
func (f *File) Read(ctx context.Context, off int64, buf []byte) error {
	return f.Dev.ReadBatch(ctx, f.Requests(off, buf))
}

// Requests returns the requests that fill buf from offset off on.
func (f *File) Requests(off int64, buf []byte) []blockdev.Request {
	reqs := make([]blockdev.Request, 0, (len(buf)+ReadChunk-1)/ReadChunk)
	for i := 0; i < len(buf); i += ReadChunk {
		end := min(i+ReadChunk, len(buf))
		reqs = append(reqs, blockdev.Request{File: f.Handle, Off: off + int64(i), Buf: buf[i:end]})
	}
	return reqs
}

// Damage returns a CorruptionError of this file.
func (f *File) Damage(block, off int64, format string, args ...any) error {
	return &CorruptionError{Path: f.Path, Block: block, Offset: off,
		What: fmt.Sprintf(format, args...)}
}

// CheckSize checks that the file is want bytes long.
func (f *File) CheckSize(want int64) error {
	if got := f.Size(); got != want {
		return f.Damage(-1, 0, "file is %d bytes long, want %d", got, want)
	}
	return nil
}

// ReadHeader reads and checks the first block. A header of another version is kv.ErrFormat, any
// other flaw a CorruptionError.
func (f *File) ReadHeader(ctx context.Context, kind string, uuid kv.UUID) (codec.Header, error) {
	if f.Size() < codec.HeaderBytes {
		return codec.Header{}, f.Damage(-1, 0, "file is %d bytes long, shorter than its header",
			f.Size())
	}
	buf := blockdev.AlignedBuffer(codec.HeaderBytes)
	if err := f.Read(ctx, 0, buf); err != nil {
		return codec.Header{}, fmt.Errorf("layout: read the header of %s: %w", f.Path, err)
	}
	h, err := codec.DecodeHeader(buf, kind, uuid)
	if errors.Is(err, codec.ErrVersion) {
		return h, fmt.Errorf("layout: %s: %w: %w", f.Path, kv.ErrFormat, err)
	}
	if err != nil {
		return h, f.Damage(0, 0, "header: %v", err)
	}
	return h, nil
}

// ReadPage reads and verifies page number n of an index or of checksums.
func (f *File) ReadPage(ctx context.Context, kind string, uuid kv.UUID, n int64) ([]byte, error) {
	page := blockdev.AlignedBuffer(PageBytes)
	if err := f.Read(ctx, n*PageBytes, page); err != nil {
		return nil, fmt.Errorf("layout: read %s: %w", f.Path, err)
	}
	if err := VerifyPage(kind, uuid, n, page); err != nil {
		return nil, f.Damage(n, n*PageBytes, "%v", err)
	}
	return page, nil
}

// EachPage calls fn with the verified pages 1 to end-1 of an index or of checksums, in order. An
// error of fn is damage of the page.
func (f *File) EachPage(ctx context.Context, kind string, uuid kv.UUID, end int64,
	fn func(n int64, page []byte) error) error {
	return f.Stream(ctx, PageBytes, end*PageBytes, PageBytes, func(off int64, data []byte) error {
		for ; len(data) > 0; off, data = off+PageBytes, data[PageBytes:] {
			n, page := off/PageBytes, data[:PageBytes]
			err := VerifyPage(kind, uuid, n, page)
			if err == nil {
				err = fn(n, page)
			}
			if err != nil {
				return f.Damage(n, off, "%v", err)
			}
		}
		return nil
	})
}

// streamChunk is how much a stream reads together, in bytes; it holds two such buffers.
const streamChunk = 4 << 20

type chunk struct {
	off int64
	buf []byte
	err error
}

// Stream calls fn with the bytes [from, to) of f in order, in chunks of whole units, and reads the
// next chunk while fn works. It does not read what remains after the last whole unit.
func (f *File) Stream(ctx context.Context, from, to int64, unit int,
	fn func(off int64, data []byte) error) (err error) {
	size := int64(max(streamChunk/unit, 1)) * int64(unit)
	to -= (to - from) % int64(unit)
	size = min(size, max(to-from, int64(unit)))
	arena, err := mem.NewArena(nil, "read buffers", 2*size)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	free, full := make(chan []byte, 2), make(chan chunk, 2)
	free <- arena.Bytes()[:size]
	free <- arena.Bytes()[size:]
	go func() {
		defer bug.Catch()
		defer close(full)
		for off := from; off < to; off += size {
			var buf []byte
			select {
			case buf = <-free:
			case <-ctx.Done():
				full <- chunk{err: ctx.Err()}
				return
			}
			c := chunk{off: off, buf: buf[:min(size, to-off)]}
			c.err = f.Read(ctx, off, c.buf)
			full <- c
			if c.err != nil {
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range full { // the reader ends and closes it
			continue
		}
		err = errors.Join(err, arena.Free())
	}()
	for c := range full {
		if c.err != nil {
			return fmt.Errorf("layout: read %s: %w", f.Path, c.err)
		}
		if err := fn(c.off, c.buf); err != nil {
			return err
		}
		free <- c.buf[:size]
	}
	return nil
}
