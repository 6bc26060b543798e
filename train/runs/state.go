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

// EncodeState returns the parts of the file.
func EncodeState(uuid [16]byte, position any, arrays []Array) ([][]byte, error) {
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

// DecodeState checks and decodes a file to a position and arrays, which are copies.
func DecodeState(uuid [16]byte, b []byte, position any) (arrays []Array, err error) {
	h, err := codec.DecodeHeader(b, CheckpointKind, uuid)
	if err != nil {
		return nil, err
	}
	body, d := codec.NewDec(b[codec.HeaderBytes:]), codec.NewDec(h.Fields)
	size, sum, n := d.U32(), d.U32(), d.U32()
	if n > stateArraysMax {
		return nil, fmt.Errorf("%d arrays, at most %d", n, stateArraysMax)
	}
	text := body.Bytes(int(size))
	if err := errors.Join(d.Err(), body.Err()); err != nil {
		return nil, err
	}
	if got := codec.BlockSum(CheckpointKind, uuid, 0, text); got != sum {
		return nil, fmt.Errorf("position: checksum %08x, want %08x", got, sum)
	}
	if err := json.Unmarshal(text, position); err != nil {
		return nil, fmt.Errorf("position: %w", err)
	}
	for i := range n {
		a, err := decodeArray(uuid, uint64(i), d, body)
		if err != nil {
			return nil, err
		}
		arrays = append(arrays, a)
	}
	if body.Remaining() != 0 {
		return nil, fmt.Errorf("%d bytes after the end", body.Remaining())
	}
	return arrays, d.Err()
}

func decodeArray(uuid [16]byte, i uint64, d, body *codec.Dec) (Array, error) {
	a := Array{Name: d.String()}
	values, sum := d.U64(), d.U32()
	if err := d.Err(); err != nil {
		return a, err
	}
	if values > uint64(body.Remaining())/4 {
		return a, fmt.Errorf("%s: %d values, the file holds %d bytes more", a.Name, values,
			body.Remaining())
	}
	b := body.Bytes(int(values) * 4)
	if got := codec.BlockSum(CheckpointKind, uuid, i+1, b); got != sum {
		return a, fmt.Errorf("%s: checksum %08x, want %08x", a.Name, got, sum)
	}
	a.Values = make([]float32, values)
	copy(mem.BytesOf(a.Values), b)
	return a, nil
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
