package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/train/runs"
	"gdb/train/task"
)

const (
	// checkpointArraysMax bounds what a header can claim.
	checkpointArraysMax = 16
	// checkpointVectorsMax are the arrays that have a value for each parameter, or fewer.
	checkpointVectorsMax = 5
	// positionBytesMax bounds the position: it takes some hundred bytes.
	positionBytesMax = 64 << 10
)

// errNotExist is the error of a missing file.
var errNotExist = fs.ErrNotExist

// position is where a run stands: all that a checkpoint holds besides arrays. Epochs and batches
// are counted from 0; Batch is the next one of Epoch, and may be one past the last.
type position struct {
	Seed  uint64 `json:"seed"`
	Epoch uint64 `json:"epoch"`
	Batch uint64 `json:"batch"`
	Steps int    `json:"steps"` // of the optimizer

	Sums epochSums `json:"sums"` // of the epoch so far

	HasBest   bool    `json:"has_best"`
	Best      float64 `json:"best"`
	BestEpoch int     `json:"best_epoch"` // counted from 1
	SinceBest int     `json:"since_best"` // evaluations since
	// Plateau is evaluations since the best one or the last halving of the rate, of which there
	// were so many.
	Plateau  int `json:"plateau,omitempty"`
	Halvings int `json:"halvings,omitempty"`

	// Scale is that of the labels, if they are numbers.
	Scale *task.Scale `json:"scale,omitempty"`

	Done bool     `json:"done"`
	Test *float64 `json:"test,omitempty"`
}

// checkpoint is one that was read: the name of its directory, and for the user that CURRENT was not
// there, if it was not.
type checkpoint struct {
	pos        position
	arrays     []array
	name, note string
}

// array is a named vector of a checkpoint.
type array struct {
	name   string
	values []float32
}

// A checkpoint file, checkpoint-N/state, is a header block, the position as JSON, and arrays of
// float32, each with its checksum in the header:
//
//	header fields: u32 length and u32 crc32c of the JSON, u32 number of arrays,
//	               then for each array: string name, u64 values, u32 crc32c
//
// The checksums are codec.BlockSum of block 0 (the JSON) and i+1 (array i). CURRENT holds the name
// of the newest checkpoint, its checksum in hexadecimal and a newline; it is renamed into place
// after the file was synced, so a crash leaves the old checkpoint or the new one, never half of
// one.

// encodeCheckpoint returns the parts of the file.
func encodeCheckpoint(uuid [16]byte, p position, arrays []array) ([][]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("train: encode checkpoint: %w", err)
	}
	var e codec.Enc
	e.U32(uint32(len(text)))
	e.U32(codec.BlockSum(runs.CheckpointKind, uuid, 0, text))
	e.U32(uint32(len(arrays)))
	parts := [][]byte{nil, text}
	for i, a := range arrays {
		b := mem.BytesOf(a.values)
		e.String(a.name)
		e.U64(uint64(len(a.values)))
		e.U32(codec.BlockSum(runs.CheckpointKind, uuid, uint64(i+1), b))
		parts = append(parts, b)
	}
	parts[0] = codec.Header{Kind: runs.CheckpointKind, UUID: uuid, Fields: e.B}.Encode()
	return parts, nil
}

// decodeCheckpoint checks and decodes a file; the arrays are copies.
func decodeCheckpoint(uuid [16]byte, b []byte) (p position, arrays []array, err error) {
	h, err := codec.DecodeHeader(b, runs.CheckpointKind, uuid)
	if err != nil {
		return p, nil, err
	}
	body, d := codec.NewDec(b[codec.HeaderBytes:]), codec.NewDec(h.Fields)
	size, sum, n := d.U32(), d.U32(), d.U32()
	if n > checkpointArraysMax {
		return p, nil, fmt.Errorf("%d arrays, at most %d", n, checkpointArraysMax)
	}
	text := body.Bytes(int(size))
	if err := errors.Join(d.Err(), body.Err()); err != nil {
		return p, nil, err
	}
	if got := codec.BlockSum(runs.CheckpointKind, uuid, 0, text); got != sum {
		return p, nil, fmt.Errorf("position: checksum %08x, want %08x", got, sum)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, nil, fmt.Errorf("position: %w", err)
	}
	for i := range n {
		a, err := decodeArray(uuid, uint64(i), d, body)
		if err != nil {
			return p, nil, err
		}
		arrays = append(arrays, a)
	}
	if body.Remaining() != 0 {
		return p, nil, fmt.Errorf("%d bytes after the end", body.Remaining())
	}
	return p, arrays, d.Err()
}

func decodeArray(uuid [16]byte, i uint64, d, body *codec.Dec) (array, error) {
	a := array{name: d.String()}
	values, sum := d.U64(), d.U32()
	if err := d.Err(); err != nil {
		return a, err
	}
	if values > uint64(body.Remaining())/4 {
		return a, fmt.Errorf("%s: %d values, the file holds %d bytes more", a.name, values,
			body.Remaining())
	}
	b := body.Bytes(int(values) * 4)
	if got := codec.BlockSum(runs.CheckpointKind, uuid, i+1, b); got != sum {
		return a, fmt.Errorf("%s: checksum %08x, want %08x", a.name, got, sum)
	}
	a.values = make([]float32, values)
	copy(mem.BytesOf(a.values), b)
	return a, nil
}

// writeCheckpoint writes where a run stands; beside is as in runs.Dir.WriteState.
func writeCheckpoint(r runs.Dir, p position, arrays []array,
	beside func(dir string) error) error {
	parts, err := encodeCheckpoint(r.UUID(), p, arrays)
	if err != nil {
		return err
	}
	return r.WriteState(beside, parts...)
}

// readCheckpoint reads the current checkpoint of a model with so many parameters.
func readCheckpoint(r runs.Dir, params int) (c checkpoint, err error) {
	b, file, note, err := r.ReadState(stateBytesMax(params))
	if err != nil {
		return c, err
	}
	if c.pos, c.arrays, err = decodeCheckpoint(r.UUID(), b); err != nil {
		return c, fmt.Errorf("train: run %s: %w", r.Name(), r.Corrupt(file, err.Error()))
	}
	c.name, c.note = path.Dir(file), note
	return c, nil
}

// stateBytesMax is the most that a checkpoint of so many parameters takes: weights, the best ones,
// and what the optimizer keeps, thresholds, beside header and position.
func stateBytesMax(params int) int64 {
	return codec.HeaderBytes + positionBytesMax + checkpointVectorsMax*4*int64(params)
}

// find returns the values of a named array, which must have n.
func find(arrays []array, name string, n int) ([]float32, error) {
	for _, a := range arrays {
		if a.name == name && len(a.values) == n {
			return a.values, nil
		}
		if a.name == name {
			return nil, fmt.Errorf("train: checkpoint: %s has %d values, the model %d: %w", name,
				len(a.values), n, layout.ErrCorrupt)
		}
	}
	return nil, fmt.Errorf("train: checkpoint: no %s: %w", name, layout.ErrCorrupt)
}
