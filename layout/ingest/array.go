package ingest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"gdb/internal/mem"
	"gdb/layout/ingest/npy"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// readBytes is the buffer of one sequential reader of a source file.
const readBytes = 1 << 20

// array streams the values of one array file in storage order.
type array struct {
	npy.Header
	path string
	r    io.Reader
	c    io.Closer
	buf  []byte
}

// openArray opens an .npy file at the value number first, and checks that the file is as long as
// its header says.
func openArray(fs vfs.FS, path string, first uint64) (*array, error) {
	f, err := fs.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return nil, fmt.Errorf("ingest: open %s: %w", path, err)
	}
	a, err := newArray(f, path, first)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return a, nil
}

func newArray(f vfs.File, path string, first uint64) (*array, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("ingest: %s: %w", path, err)
	}
	h, err := npy.ReadHeader(io.NewSectionReader(f, 0, info.Size()))
	if err != nil {
		return nil, &BadInputError{Where: path, What: err.Error(),
			Do: "write it again with numpy.save"}
	}
	item := int64(h.ItemBytes())
	if want := h.Bytes + int64(h.Count())*item; info.Size() != want {
		return nil, &BadInputError{Where: path, What: fmt.Sprintf(
			"the file has %d bytes, its header describes %d", info.Size(), want),
			Do: "it was cut off or appended to: write it again"}
	}
	skip := h.Bytes + int64(first)*item
	r := bufio.NewReaderSize(io.NewSectionReader(f, skip, info.Size()-skip), readBytes)
	return &array{Header: h, path: path, r: r, c: f}, nil
}

// Close closes the file.
func (a *array) Close() error { return a.c.Close() }

// next reads the bytes of n values.
func (a *array) next(n int) ([]byte, error) {
	size := n * a.ItemBytes()
	if cap(a.buf) < size {
		a.buf = make([]byte, size)
	}
	b := a.buf[:size]
	if _, err := io.ReadFull(a.r, b); err != nil {
		return nil, fmt.Errorf("ingest: read %s: %w", a.path, err)
	}
	if a.BigEndian() {
		swapBytes(b, a.ItemBytes())
	}
	return b, nil
}

func swapBytes(b []byte, item int) {
	for ; len(b) >= item; b = b[item:] {
		for i, j := 0, item-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
}

// ints reads len(out) integers. Floats and unsigned numbers past the range are a wrong type.
func (a *array) ints(out []int64) error {
	b, err := a.next(len(out))
	if err != nil {
		return err
	}
	switch a.Descr[1:] {
	case "i8", "u8":
		for i := range out {
			out[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
		}
	case "i4":
		for i := range out {
			out[i] = int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
		}
	case "u4":
		for i := range out {
			out[i] = int64(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case "i2":
		for i := range out {
			out[i] = int64(int16(binary.LittleEndian.Uint16(b[2*i:])))
		}
	case "u2":
		for i := range out {
			out[i] = int64(binary.LittleEndian.Uint16(b[2*i:]))
		}
	case "i1":
		for i := range out {
			out[i] = int64(int8(b[i]))
		}
	case "u1", "b1":
		for i := range out {
			out[i] = int64(b[i])
		}
	default:
		return a.wrongType("integers")
	}
	return nil
}

// floats reads len(out) numbers of any type.
func (a *array) floats(out []float32) error {
	if a.Kind() != 'f' {
		ints := make([]int64, len(out))
		if err := a.ints(ints); err != nil {
			return err
		}
		for i, v := range ints {
			out[i] = float32(v)
		}
		return nil
	}
	b, err := a.next(len(out))
	if err != nil {
		return err
	}
	switch a.ItemBytes() {
	case 2:
		for i := range out {
			out[i] = halfToFloat(binary.LittleEndian.Uint16(b[2*i:]))
		}
	case 4:
		copy(mem.BytesOf(out), b)
	default:
		for i := range out {
			out[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])))
		}
	}
	return nil
}

// halfToFloat converts an IEEE 754 half.
func halfToFloat(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch {
	case exp == 31:
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	case exp != 0:
		return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
	}
	v := float32(frac) / (1 << 24)
	if sign != 0 {
		v = -v
	}
	return v
}

func (a *array) wrongType(want string) error {
	return &BadInputError{Where: a.path, What: fmt.Sprintf("values are %s, want %s", a.Descr, want),
		Do: "convert the array"}
}
