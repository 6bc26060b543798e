// Package nodeindex finds the nodes of a type by the value of a column. An index is a table of
// Pebble in the folder of what is made of a snapshot, with a record in the catalog;
// docs/format/indexes.md has its keys.
package nodeindex

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
)

// The first byte of a key.
const (
	keyMeta  = 'm'
	keyValue = 'v'
)

// textMost is how many bytes of a string are part of a key. Find may return nodes whose values
// agree in these only.
const textMost = 256

// pathOf returns the path of the file of an index, relative to the store.
func pathOf(label, property string) string {
	h := fnv.New64a()
	h.Write([]byte(label + "\x00" + property))
	return fmt.Sprintf("%s/index-%016x.sst", layout.PrepDir, h.Sum64())
}

// UsageError says that there can be no such index.
type UsageError struct{ error }

// identity returns the value of the key of what the file is.
func identity(m kv.IndexMeta, uuid kv.UUID) ([]byte, error) {
	m.Path, m.Bytes, m.Values = "", 0, 0
	text, err := json.Marshal(m)
	return append(append(text, 0), uuid[:]...), err
}

// column returns the type and the column that an index is of. It says what can be indexed where
// that is none.
func column(m *kv.Meta, label, property string) (kv.NodeTypeMeta, kv.TableColumn, error) {
	var none kv.TableColumn
	if !m.Typed() {
		return kv.NodeTypeMeta{}, none, fmt.Errorf("its nodes have no tables of columns; ids are " +
			"found without an index")
	}
	var labels, columns []string
	for _, t := range m.NodeTypes {
		labels = append(labels, t.Name)
		if t.Name != label {
			continue
		}
		if t.IsID(property) {
			return t, none, fmt.Errorf("%s is the id of %s, which is found without an index",
				property, label)
		}
		for _, c := range t.Columns {
			columns = append(columns, c.Name)
			if c.Name == property && c.Type == columnfile.Sparse {
				return t, none, fmt.Errorf("%s.%s has vectors, which have no index", label,
					property)
			}
			if c.Name == property {
				return t, c, nil
			}
		}
		return t, none, fmt.Errorf("%s has no column %s%s", label, property,
			meant(property, columns))
	}
	return kv.NodeTypeMeta{}, none, fmt.Errorf("no nodes have the type %s%s", label,
		meant(label, labels))
}

// meant names what was probably meant, or what there is.
func meant(name string, among []string) string {
	if best := message.Nearest(name, among); best != "" {
		return fmt.Sprintf("; did you mean %s?", best)
	}
	return ", but " + strings.Join(among, ", ")
}

func appendInt(key []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(key, uint64(v)^1<<63)
}

func appendFloat(key []byte, v float64) []byte {
	if v == 0 {
		v = 0 // also -0
	}
	bits := math.Float64bits(v)
	if bits>>63 == 1 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(key, bits)
}

func appendText(key, text []byte) []byte {
	for _, b := range text[:min(len(text), textMost)] {
		if key = append(key, b); b == 0 {
			key = append(key, 0xff)
		}
	}
	return append(key, 0, 1)
}

// appendRow appends row i of values; false if it has no entry.
func appendRow(key []byte, typ string, v *columnfile.Values, i int) ([]byte, bool) {
	if v.Null(i) {
		return key, false
	}
	switch typ {
	case columnfile.Float64:
		return appendFloat(key, v.Floats[i]), v.Floats[i] == v.Floats[i]
	case columnfile.String:
		return appendText(key, v.Strings.At(i)), true
	}
	return appendInt(key, v.Ints[i]), true
}
