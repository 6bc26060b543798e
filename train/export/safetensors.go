package export

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"gdb/internal/files"
	"gdb/internal/mem"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// WeightsExtension ends the names of files of weights.
const WeightsExtension = ".safetensors"

// tensorMetadata is the name of the header's entry that is not an array.
const tensorMetadata = "__metadata__"

// tensor is a named array, row-major: the product of Shape is len(Values).
type tensor struct {
	Name   string
	Shape  []int
	Values []float32
}

// tensorEntry describes an array in the header.
type tensorEntry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// writeTensors writes arrays, and metadata about them, to a file, which appears whole
// or not at all.
func writeTensors(fs vfs.FS, path string, metadata map[string]string, tensors []tensor) error {
	head, err := tensorHeader(metadata, tensors)
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

// tensorHeader returns the beginning of the file: the length and the JSON.
func tensorHeader(metadata map[string]string, tensors []tensor) ([]byte, error) {
	entries := map[string]any{tensorMetadata: metadata}
	at := int64(0)
	for _, t := range tensors {
		if _, twice := entries[t.Name]; twice {
			return nil, fmt.Errorf("two arrays are called %q", t.Name)
		}
		end := at + 4*int64(len(t.Values))
		entries[t.Name] = tensorEntry{DType: "F32", Shape: t.Shape, Offsets: [2]int64{at, end}}
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
