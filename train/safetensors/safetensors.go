// Package safetensors writes files of named arrays that other tools read without running anything:
// the format of Hugging Face's library of that name.
//
//	0        8              8+n
//	+--------+--------------+---------------------------------+
//	| n, u64 | JSON, spaces | values, array after array       |   little-endian
//	+--------+--------------+---------------------------------+
//
// The JSON is an object: for each array {"dtype": "F32", "shape": [rows, cols], "data_offsets":
// [begin, end]}, in bytes from the first value on, and "__metadata__", an object of strings. Spaces
// make n a multiple of 8, so that values are aligned.
package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"gdb/internal/files"
	"gdb/internal/mem"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Extension is what names of files end with.
const Extension = ".safetensors"

// metadataName is the entry of the header that is no array.
const metadataName = "__metadata__"

// Tensor is a named array, row-major: the product of Shape is len(Values).
type Tensor struct {
	Name   string
	Shape  []int
	Values []float32
}

// entry describes an array in the header.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// Write writes arrays, and words about them, to a file, which appears whole or not at all.
func Write(fs vfs.FS, path string, metadata map[string]string, tensors []Tensor) error {
	head, err := header(metadata, tensors)
	if err != nil {
		return fmt.Errorf("safetensors: %s: %w", path, err)
	}
	parts := [][]byte{head}
	for _, t := range tensors {
		parts = append(parts, mem.BytesOf(t.Values))
	}
	if err := files.WriteAtomic(fs, path, parts...); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}

// header is the length and the JSON.
func header(metadata map[string]string, tensors []Tensor) ([]byte, error) {
	entries := map[string]any{metadataName: metadata}
	at := int64(0)
	for _, t := range tensors {
		if _, twice := entries[t.Name]; twice {
			return nil, fmt.Errorf("two arrays are called %q", t.Name)
		}
		end := at + 4*int64(len(t.Values))
		entries[t.Name] = entry{DType: "F32", Shape: t.Shape, Offsets: [2]int64{at, end}}
		at = end
	}
	text, err := json.Marshal(entries)
	if err != nil {
		return nil, err
	}
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), nil
}
