// Package npy reads and writes NumPy's array files in a stream: a header, then the values in
// order. Nothing is loaded whole.
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Header describes an array.
type Header struct {
	// Descr is NumPy's type string: byte order, kind, size, such as "<f4".
	Descr string
	// Fortran says that the first index runs fastest.
	Fortran bool
	Shape   []uint64
	// Bytes is the length of magic and header: where the values begin.
	Bytes int64
}

// ErrFormat says that the bytes are not those of an array file.
var ErrFormat = errors.New("not an .npy array")

const magic = "\x93NUMPY"

// headerMax bounds the header's text: a longer one is no header.
const headerMax = 1 << 16

var (
	descrField   = regexp.MustCompile(`'descr'\s*:\s*'([^']*)'`)
	fortranField = regexp.MustCompile(`'fortran_order'\s*:\s*(True|False)`)
	shapeField   = regexp.MustCompile(`'shape'\s*:\s*\(([0-9, L]*)\)`)
)

// ReadHeader reads magic and header from r, which is then at the first value.
func ReadHeader(r io.Reader) (Header, error) {
	var h Header
	fixed := make([]byte, 10)
	if _, err := io.ReadFull(r, fixed); err != nil {
		return h, fmt.Errorf("%w: it ends in the header", ErrFormat)
	}
	if string(fixed[:6]) != magic {
		return h, fmt.Errorf("%w: it begins with %q", ErrFormat, fixed[:6])
	}
	n, size := int(binary.LittleEndian.Uint16(fixed[8:])), 10
	if version := fixed[6]; version == 2 || version == 3 {
		more := make([]byte, 2)
		if _, err := io.ReadFull(r, more); err != nil {
			return h, fmt.Errorf("%w: it ends in the header", ErrFormat)
		}
		n |= int(binary.LittleEndian.Uint16(more)) << 16
		size = 12
	} else if version != 1 {
		return h, fmt.Errorf("%w: version %d is not known", ErrFormat, version)
	}
	if n > headerMax {
		return h, fmt.Errorf("%w: a header of %d bytes", ErrFormat, n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, fmt.Errorf("%w: it ends in the header", ErrFormat)
	}
	h.Bytes = int64(size + n)
	return h, h.parse(string(text))
}

func (h *Header) parse(text string) error {
	descr, fortran := descrField.FindStringSubmatch(text), fortranField.FindStringSubmatch(text)
	shape := shapeField.FindStringSubmatch(text)
	if descr == nil || fortran == nil || shape == nil {
		return fmt.Errorf("%w: header %q", ErrFormat, text)
	}
	h.Descr, h.Fortran = descr[1], fortran[1] == "True"
	for _, s := range strings.Split(shape[1], ",") {
		s = strings.TrimSuffix(strings.TrimSpace(s), "L")
		if s == "" {
			continue
		}
		n, err := strconv.ParseUint(s, 10, 63)
		if err != nil {
			return fmt.Errorf("%w: shape (%s)", ErrFormat, shape[1])
		}
		h.Shape = append(h.Shape, n)
	}
	if h.ItemBytes() == 0 {
		return fmt.Errorf("%w: values of type %q are not read", ErrFormat, h.Descr)
	}
	total := uint64(h.ItemBytes())
	for _, n := range h.Shape {
		if n != 0 && total > 1<<62/n {
			return fmt.Errorf("%w: shape (%s) is too large", ErrFormat, shape[1])
		}
		total *= n
	}
	return nil
}

// Kind is the kind of value: 'i', 'u', 'f' or 'b'.
func (h *Header) Kind() byte {
	if len(h.Descr) < 2 {
		return 0
	}
	return h.Descr[1]
}

// ItemBytes is the size of a value, or 0 for a type that is not read.
func (h *Header) ItemBytes() int {
	if len(h.Descr) != 3 || !strings.ContainsRune("<>|=", rune(h.Descr[0])) {
		return 0
	}
	switch h.Descr[1:] {
	case "b1", "i1", "u1":
		return 1
	case "i2", "u2", "f2":
		return 2
	case "i4", "u4", "f4":
		return 4
	case "i8", "u8", "f8":
		return 8
	}
	return 0
}

// BigEndian says that values have their highest byte first.
func (h *Header) BigEndian() bool { return h.Descr[0] == '>' }

// Count is the number of values.
func (h *Header) Count() uint64 {
	n := uint64(1)
	for _, s := range h.Shape {
		n *= s
	}
	return n
}

// Cols is the number of values in a row: the product of all dimensions but the first.
func (h *Header) Cols() uint64 {
	n := uint64(1)
	for i := 1; i < len(h.Shape); i++ {
		n *= h.Shape[i]
	}
	return n
}

// Rows is the first dimension; a scalar has one row.
func (h *Header) Rows() uint64 {
	if len(h.Shape) == 0 {
		return 1
	}
	return h.Shape[0]
}

// Encode writes the header as NumPy does: padded so that the values begin at a multiple of 64.
func (h *Header) Encode() []byte {
	var dims strings.Builder
	for _, n := range h.Shape {
		fmt.Fprintf(&dims, "%d,", n)
	}
	shape := dims.String()
	if len(h.Shape) > 1 {
		shape = strings.TrimSuffix(shape, ",")
	}
	order := "False"
	if h.Fortran {
		order = "True"
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", h.Descr, order,
		shape)
	for (10+len(text)+1)%64 != 0 {
		text += " "
	}
	text += "\n"
	b := append([]byte(magic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)
}

// Writer writes an array of known shape, value by value in C order.
type Writer struct {
	f    vfs.File
	path string
	left int64
}

// Create starts the array file path.
func Create(fs vfs.FS, path, descr string, shape ...uint64) (*Writer, error) {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("npy: create %s: %w", path, err)
	}
	h := Header{Descr: descr, Shape: shape}
	if _, err := f.Write(h.Encode()); err != nil {
		return nil, errors.Join(fmt.Errorf("npy: write %s: %w", path, err), f.Close())
	}
	return &Writer{f: f, path: path, left: int64(h.Count()) * int64(h.ItemBytes())}, nil
}

// Write appends values as their bytes.
func (w *Writer) Write(b []byte) (int, error) {
	n, err := w.f.Write(b)
	w.left -= int64(n)
	if err != nil {
		return n, fmt.Errorf("npy: write %s: %w", w.path, err)
	}
	return n, nil
}

// Close syncs and closes the file. It is an error if fewer or more values came than the shape has.
func (w *Writer) Close() error {
	err := errors.Join(w.f.Sync(), w.f.Close())
	if err == nil && w.left != 0 {
		err = fmt.Errorf("%d bytes are missing", w.left)
	}
	if err != nil {
		return fmt.Errorf("npy: close %s: %w", w.path, err)
	}
	return nil
}
