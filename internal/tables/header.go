package tables

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

const (
	magic = "\x93NUMPY"
	align = 64
	// A header of numbers is about 100 bytes; more than this is damage.
	headerBytesMax = 1 << 16
)

// FormatError says what is wrong with an array file.
type FormatError struct {
	File, What, Do string
}

// Error returns one line: the file, what is wrong, and what to do.
func (e *FormatError) Error() string {
	s := e.File + ": " + e.What
	if e.Do != "" {
		s += "; " + e.Do
	}
	return s
}

// Header describes an array.
type Header struct {
	DType   DType
	Fortran bool // the first index runs fastest
	Shape   []int64
}

// Elements returns the number of elements.
func (h *Header) Elements() int64 {
	n := int64(1)
	for _, d := range h.Shape {
		n *= d
	}
	return n
}

// Bytes returns the size of all elements, in bytes.
func (h *Header) Bytes() int64 { return h.Elements() * int64(h.DType.Size) }

// ShapeString formats the shape as NumPy does: "(3, 4)", "(5,)".
func (h *Header) ShapeString() string { return shapeString(h.Shape) }

func shapeString(shape []int64) string {
	s := make([]string, len(shape))
	for i, d := range shape {
		s[i] = strconv.FormatInt(d, 10)
	}
	if len(s) == 1 {
		return "(" + s[0] + ",)"
	}
	return "(" + strings.Join(s, ", ") + ")"
}

// readHeader reads a header, and returns how many bytes it takes in the file.
func readHeader(r io.Reader) (*Header, int64, error) {
	var b [12]byte
	n, err := io.ReadFull(r, b[:10])
	switch {
	case n == 0 && err == io.EOF:
		return nil, 0, errors.New("the file is empty")
	case n < len(magic) || string(b[:len(magic)]) != magic:
		return nil, 0, errors.New("there is no npy header")
	case err != nil:
		return nil, 0, errors.New("the npy header is cut off")
	}
	start, size := int64(10), int64(binary.LittleEndian.Uint16(b[8:]))
	switch b[6] {
	case 1:
	case 2, 3:
		if _, err := io.ReadFull(r, b[10:]); err != nil {
			return nil, 0, errors.New("the npy header is cut off")
		}
		start, size = 12, int64(binary.LittleEndian.Uint32(b[8:]))
	default:
		return nil, 0, fmt.Errorf("npy version %d.%d is not known", b[6], b[7])
	}
	if size > headerBytesMax {
		return nil, 0, fmt.Errorf("the npy header says it has %d bytes", size)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, 0, errors.New("the npy header is cut off")
	}
	h, err := parseHeader(string(text))
	return h, start + size, err
}

// appendHeader appends a header of version 1.0, padded so that the elements after it are aligned.
func appendHeader(dst []byte, h *Header) []byte {
	fortran := "False"
	if h.Fortran {
		fortran = "True"
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }",
		h.DType.descr(), fortran, h.ShapeString())
	const fixed = len(magic) + 4
	pad := (align - (fixed+len(text)+1)%align) % align
	text += strings.Repeat(" ", pad) + "\n"
	dst = append(dst, magic...)
	dst = append(dst, 1, 0)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(text)))
	return append(dst, text...)
}

// parseHeader parses the Python literal: a dict of a string, a bool and a tuple of integers.
func parseHeader(text string) (*Header, error) {
	p := literal{text: text}
	h, seen := &Header{}, map[string]bool{}
	p.expect("{")
	for p.err == nil && !p.accept("}") {
		key := p.str()
		p.expect(":")
		if seen[key] {
			p.fail("twice " + key)
		}
		seen[key] = true
		switch key {
		case "descr":
			h.DType = p.dtype()
		case "fortran_order":
			h.Fortran = p.boolean()
		case "shape":
			h.Shape = p.tuple()
		default:
			p.fail("unknown key " + strconv.Quote(key))
		}
		if !p.accept(",") {
			p.expect("}")
			break
		}
	}
	if p.err == nil && strings.Trim(p.text, " \n\x00") != "" {
		p.fail("text after the end")
	}
	if p.err == nil && len(seen) != 3 {
		p.fail("descr, fortran_order or shape is missing")
	}
	if p.err != nil {
		return nil, p.err
	}
	return h, checkShape(h)
}

// checkShape returns an error for a shape whose size in bytes does not fit in 63 bits.
func checkShape(h *Header) error {
	n := int64(h.DType.Size)
	for _, d := range h.Shape {
		if d < 0 || d > 0 && n > math.MaxInt64/d {
			return fmt.Errorf("the shape %s is too large", h.ShapeString())
		}
		n *= d
	}
	return nil
}

// literal is a cursor over a Python literal. It keeps the first error.
type literal struct {
	text string
	err  error
}

func (p *literal) fail(what string) {
	if p.err == nil {
		p.err = fmt.Errorf("the npy header is wrong: %s", what)
		p.text = ""
	}
}

func (p *literal) accept(token string) bool {
	p.text = strings.TrimLeft(p.text, " \n")
	rest, ok := strings.CutPrefix(p.text, token)
	if ok {
		p.text = rest
	}
	return ok
}

func (p *literal) expect(token string) {
	if !p.accept(token) {
		p.fail("no " + token)
	}
}

func (p *literal) str() string {
	quote := "'"
	if !p.accept(quote) {
		quote = `"`
		p.expect(quote)
	}
	s, rest, ok := strings.Cut(p.text, quote)
	if !ok {
		p.fail("a string without end")
		return ""
	}
	p.text = rest
	return s
}

func (p *literal) dtype() DType {
	if p.accept("[") {
		p.fail("records (a structured dtype) are not supported")
		return DType{}
	}
	s := p.str()
	if p.err != nil {
		return DType{}
	}
	d, err := parseDType(s)
	if err != nil {
		p.err = err
	}
	return d
}

func (p *literal) boolean() bool {
	if p.accept("True") {
		return true
	}
	p.expect("False")
	return false
}

func (p *literal) tuple() []int64 {
	p.expect("(")
	shape := []int64{}
	for p.err == nil && !p.accept(")") {
		p.text = strings.TrimLeft(p.text, " \n")
		n := len(p.text) - len(bytes.TrimLeft([]byte(p.text), "0123456789"))
		d, err := strconv.ParseInt(p.text[:n], 10, 64)
		if err != nil {
			p.fail("the shape")
			return nil
		}
		shape = append(shape, d)
		p.text = strings.TrimPrefix(p.text[n:], "L") // Python 2 wrote 3L
		if !p.accept(",") {
			p.expect(")")
			break
		}
	}
	return shape
}
