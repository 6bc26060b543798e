package tables

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Field is one field of a structured array. Type is its dtype as NumPy names it: "<i8", "<U12". If
// Length is above 0, the field is an array of this many values.
type Field struct {
	Name, Type string
	Length     int
}

// appendRecordHeader appends the header of a structured array of one dimension. Its records follow,
// packed. It is of version 3.0, whose names are UTF-8.
func appendRecordHeader(dst []byte, fields []Field, records uint64) []byte {
	var descr strings.Builder
	for _, f := range fields {
		shape := ""
		if f.Length > 0 {
			shape = fmt.Sprintf(", (%d,)", f.Length)
		}
		fmt.Fprintf(&descr, "(%s, '%s'%s), ", pythonString(f.Name), f.Type, shape)
	}
	text := fmt.Sprintf("{'descr': [%s], 'fortran_order': False, 'shape': (%d,), }",
		strings.TrimSuffix(descr.String(), ", "), records)
	const fixed = len(magic) + 2 + 4 // version, length
	text += strings.Repeat(" ", align-1-(fixed+len(text))%align) + "\n"
	dst = append(dst, magic...)
	dst = append(dst, 3, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(text)))
	return append(dst, text...)
}

// pythonString returns s as a string literal of Python.
func pythonString(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`).Replace(s) + "'"
}
