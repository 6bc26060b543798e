package runs

import (
	"encoding/json"
	"errors"
	"fmt"

	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/layout"
)

// stateArraysMax bounds the number of arrays that the header of a checkpoint may claim.
const stateArraysMax = 16

// Array is a named vector of a checkpoint.
type Array struct {
	Name   string
	Values []float32
}

// A checkpoint file, checkpoint-N/state, is a header block, the position of the run as JSON, and
// arrays of float32, each with its checksum in the header:
//
//	header fields: u32 length and u32 crc32c of the JSON, u32 number of arrays,
//	               then for each array: string name, u64 values, u32 crc32c
//
// The checksums are codec.BlockSum of block 0 (the JSON) and i+1 (array i). CURRENT holds the name
// of the newest checkpoint, its checksum in hexadecimal and a newline; it is renamed into place
// after the file was synced, so a crash leaves the old checkpoint or the new one, never half of
// one.

// encodeState returns the parts of the file.
func encodeState(uuid [16]byte, position any, arrays []Array) ([][]byte, error) {
	text, err := json.Marshal(position)
	if err != nil {
		return nil, fmt.Errorf("train: encode checkpoint: %w", err)
	}
	var e codec.Enc
	e.U32(uint32(len(text)))
	e.U32(codec.BlockSum(CheckpointKind, uuid, 0, text))
	e.U32(uint32(len(arrays)))
	parts := [][]byte{nil, text}
	for i, a := range arrays {
		b := mem.BytesOf(a.Values)
		e.String(a.Name)
		e.U64(uint64(len(a.Values)))
		e.U32(codec.BlockSum(CheckpointKind, uuid, uint64(i+1), b))
		parts = append(parts, b)
	}
	parts[0] = codec.Header{Kind: CheckpointKind, UUID: uuid, Fields: e.B}.Encode()
	return parts, nil
}

// ReadState reads the position and the arrays of a checkpoint, of at most limit bytes.
func (r Dir) ReadState(checkpoint string, limit int64, position any) (arrays []Array, err error) {
	s, err := r.OpenState(checkpoint, position)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if s.size > limit {
		return nil, s.damaged("it has %d bytes, at most %d", s.size, limit)
	}
	for _, a := range s.arrays {
		values := make([]float32, a.values)
		if err := s.Load(a.name, values); err != nil {
			return nil, err
		}
		arrays = append(arrays, Array{Name: a.name, Values: values})
	}
	return arrays, nil
}

// FindArray returns the values of a named array, which must have n.
func FindArray(arrays []Array, name string, n int) ([]float32, error) {
	for _, a := range arrays {
		if a.Name == name && len(a.Values) == n {
			return a.Values, nil
		}
		if a.Name == name {
			return nil, fmt.Errorf("train: checkpoint: %s has %d values, the model %d: %w", name,
				len(a.Values), n, layout.ErrCorrupt)
		}
	}
	return nil, fmt.Errorf("train: checkpoint: no %s: %w", name, layout.ErrCorrupt)
}
