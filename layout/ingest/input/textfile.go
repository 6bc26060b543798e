package input

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"

	"gdb/internal/message"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// readBytes is the buffer under a decompressor.
	readBytes = 256 << 10
	// windowBytesMax is the largest zstd window: what "zstd --long" uses, and what the zstd
	// command itself accepts without being asked.
	windowBytesMax = 128 << 20
	// bzip2Magic is how a bzip2 file begins; the fourth byte is the level.
	bzip2Magic = "BZh91AY&SY"
)

// textFile is an opened text file, decompressed. What it is compressed with is told by its first
// bytes, not by its name.
type textFile struct {
	name string
	disk diskReader
	r    io.Reader
	zstd *zstd.Decoder
}

// diskReader remembers that reading the disk failed, which is not the fault of the contents.
type diskReader struct {
	vfs.File
	err error
}

func (d *diskReader) Read(b []byte) (int, error) {
	n, err := d.File.Read(b)
	if err != nil && err != io.EOF {
		d.err = err
	}
	return n, err
}

func openFile(fs vfs.FS, name string) (*textFile, error) {
	f, err := fs.Open(name, vfs.SequentialReadsOption)
	if err != nil {
		return nil, fmt.Errorf("text: open: %w", err)
	}
	t := &textFile{name: name, disk: diskReader{File: f}}
	if err := t.start(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *textFile) start() error {
	stat, err := t.disk.Stat()
	if err != nil {
		return fmt.Errorf("text: open %s: %w", t.name, err)
	}
	if stat.IsDir() {
		return Wrong(t.name, "give a file", "is a directory")
	}
	if !stat.Mode().IsRegular() {
		return Wrong(t.name, "write it to a file, or pipe it into "+message.Program+" ingest -",
			"is a pipe or device, and files are read more than once")
	}
	if stat.Size() == 0 {
		return Wrong(t.name, "", "the file is empty")
	}
	var head [len(bzip2Magic)]byte
	n, err := t.disk.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("text: read %s: %w", t.name, err)
	}
	err = nil
	switch {
	case bytes.HasPrefix(head[:n], []byte{0x1f, 0x8b}):
		t.r, err = gzip.NewReader(bufio.NewReaderSize(&t.disk, readBytes))
	case string(head[:3]) == bzip2Magic[:3] && string(head[4:]) == bzip2Magic[4:]:
		t.r = bzip2.NewReader(bufio.NewReaderSize(&t.disk, readBytes))
	case bytes.HasPrefix(head[:n], []byte{0x28, 0xb5, 0x2f, 0xfd}):
		t.zstd, err = zstd.NewReader(bufio.NewReaderSize(&t.disk, readBytes),
			zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(windowBytesMax))
		t.r = t.zstd
	default:
		t.r = &t.disk
	}
	return t.wrap(err, 0)
}

// Close closes the file.
func (t *textFile) Close() error {
	if t.zstd != nil {
		t.zstd.Close()
	}
	return t.disk.Close()
}

// readFull fills b, or reads to the end of the file and returns io.EOF. line tells, for errors, the
// line on which what was read ends.
func (t *textFile) readFull(b []byte, line func(read []byte) int64) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = t.r.Read(b[n:])
		n += m
	}
	if err == io.EOF {
		return n, err
	}
	if err == nil {
		return n, nil
	}
	return n, t.wrap(err, line(b[:n]))
}

// wrap turns the error of a read that failed because of the contents into an Error; others are the
// disk's.
func (t *textFile) wrap(err error, line int64) error {
	switch {
	case err == nil:
		return nil
	case t.disk.err != nil || t.r == io.Reader(&t.disk):
		return fmt.Errorf("text: read %s: %w", t.name, err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return Wrong(At(t.name, line), "copy it again", "the compressed file is truncated")
	}
	return &Error{Where: At(t.name, line),
		What: "the compressed file is damaged: " + err.Error(), Do: "copy it again"}
}

// TextHead returns the beginning of a file, at least n bytes or two lines if it has as many, and
// whether that is all of it.
func TextHead(fs vfs.FS, name string, n int) (head []byte, all bool, err error) {
	f, err := openFile(fs, name)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for len(head) < n || bytes.Count(head, []byte{'\n'}) < 2 && len(head) < rowBytesMax {
		have := len(head)
		head = append(head, make([]byte, max(n, have))...)
		got, err := f.readFull(head[have:], func(read []byte) int64 {
			return 1 + int64(bytes.Count(head[:have+len(read)], []byte{'\n'}))
		})
		head = head[:have+got]
		if err == io.EOF {
			return head, true, checkText(name, head)
		}
		if err != nil {
			return nil, false, err
		}
	}
	return head, false, checkText(name, head)
}

// packedText is how much text is taken for a byte of a compressed file.
const packedText = 4

// LinesAbout guesses from the beginning of a file how many lines it has; if that is all, it knows.
func LinesAbout(fs vfs.FS, name string, head []byte, all bool) (lines uint64, err error) {
	lines = uint64(bytes.Count(head, []byte{'\n'}))
	if all {
		return lines, nil
	}
	f, err := openFile(fs, name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	stat, err := f.disk.Stat()
	if err != nil {
		return 0, fmt.Errorf("text: %s: %w", name, err)
	}
	text := float64(stat.Size())
	if f.r != &f.disk {
		text *= packedText
	}
	return uint64(float64(lines) / float64(len(head)) * text), nil
}
