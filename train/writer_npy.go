package train

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// npyWriter writes one structured array of NumPy, one record a node: ids as int64 if they are
// integers, else as strings of the longest's width; predictions as int64 if all labels are
// integers, else as strings; probabilities as float32.
//
// The file is "\x93NUMPY", version 3.0, a uint32 length and a Python dictionary in UTF-8, padded
// with spaces to a multiple of 64 bytes, then the records, little-endian and packed. Strings are
// UCS-4.
type npyWriter struct {
	*outputFile
	classes    int
	idWidth    int // characters; 0: int64
	labelWidth int // characters; 0: int64
	record     []byte
}

// WantsLongestID is true: the width of ids stands in the header.
func (w *npyWriter) WantsLongestID() bool { return true }

// Begin writes the header.
func (w *npyWriter) Begin(h PredictionHeader) error {
	if err := w.create(); err != nil {
		return err
	}
	if !h.IntegerIDs {
		w.idWidth = max(1, h.LongestID)
	}
	w.labelWidth = labelWidth(h)
	var descr strings.Builder
	for i, name := range columnNames(h) {
		kind := "<f4"
		switch i {
		case 0:
			kind = npyKind(w.idWidth)
		case 1:
			kind = npyKind(w.labelWidth)
		}
		fmt.Fprintf(&descr, "(%s, '%s'), ", pythonString(name), kind)
	}
	if h.Probabilities {
		w.classes = len(h.Classes)
	}
	dict := fmt.Sprintf("{'descr': [%s], 'fortran_order': False, 'shape': (%d,), }",
		strings.TrimSuffix(descr.String(), ", "), h.Nodes)
	const before = 6 + 2 + 4
	pad := 63 - (before+len(dict))%64
	head := bytes.NewBufferString("\x93NUMPY\x03\x00")
	head.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(dict)+pad+1)))
	head.WriteString(dict + strings.Repeat(" ", pad) + "\n")
	return w.put(head.Bytes())
}

// labelWidth is the longest label in characters, or 0 if labels are written as integers.
func labelWidth(h PredictionHeader) int {
	longest, sum, integers := 1, 0, !h.Multi
	for _, c := range h.Classes {
		n := utf8.RuneCountInString(c)
		longest, sum = max(longest, n), sum+n+1
		v, err := strconv.ParseInt(c, 10, 64)
		integers = integers && err == nil && strconv.FormatInt(v, 10) == c
	}
	switch {
	case integers:
		return 0
	case h.Multi:
		return sum
	}
	return longest
}

func npyKind(width int) string {
	if width == 0 {
		return "<i8"
	}
	return "<U" + strconv.Itoa(width)
}

// pythonString writes a string literal.
func pythonString(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`).Replace(s) + "'"
}

// Write writes a record for each prediction.
func (w *npyWriter) Write(p *Predictions) error {
	for i, id := range p.IDs {
		w.record = w.record[:0]
		if err := w.text(id, w.idWidth); err != nil {
			return err
		}
		if err := w.text(p.Labels[i], w.labelWidth); err != nil {
			return err
		}
		for k := range w.classes {
			w.record = binary.LittleEndian.AppendUint32(w.record,
				math.Float32bits(p.Probabilities[i*w.classes+k]))
		}
		if err := w.put(w.record); err != nil {
			return err
		}
	}
	return nil
}

// text appends a string of a fixed width, or an integer.
func (w *npyWriter) text(s string, width int) error {
	if width == 0 {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return fmt.Errorf("train: write %s: %q is no integer: %w", w.path, s, err)
		}
		w.record = binary.LittleEndian.AppendUint64(w.record, uint64(v))
		return nil
	}
	n := 0
	for _, r := range s {
		w.record = binary.LittleEndian.AppendUint32(w.record, uint32(r))
		n++
	}
	w.record = append(w.record, make([]byte, 4*(width-n))...)
	return nil
}

func (w *npyWriter) put(b []byte) error {
	if _, err := w.buf.Write(b); err != nil {
		return fmt.Errorf("train: write %s: %w", w.path, err)
	}
	return nil
}

// Commit makes the file appear.
func (w *npyWriter) Commit() error { return w.commit() }
