package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"gdb/internal/atomicfile"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/layout"
)

const (
	// checkpointKind names checkpoint files.
	checkpointKind = "CKPT"
	// checkpointsKept are the newest checkpoints that stay. Each holds the best weights too.
	checkpointsKept = 2
	// checkpointArraysMax bounds what a header can claim.
	checkpointArraysMax = 16
	// checkpointVectorsMax are the arrays that have a value for each parameter.
	checkpointVectorsMax = 4
	// positionBytesMax bounds the position: it takes some hundred bytes.
	positionBytesMax = 64 << 10
	// checkpointPrefix begins the names of directories of checkpoints.
	checkpointPrefix = "checkpoint-"
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

	Done bool     `json:"done"`
	Test *float64 `json:"test,omitempty"`
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
	e.U32(codec.BlockSum(checkpointKind, uuid, 0, text))
	e.U32(uint32(len(arrays)))
	parts := [][]byte{nil, text}
	for i, a := range arrays {
		b := mem.BytesOf(a.values)
		e.String(a.name)
		e.U64(uint64(len(a.values)))
		e.U32(codec.BlockSum(checkpointKind, uuid, uint64(i+1), b))
		parts = append(parts, b)
	}
	parts[0] = codec.Header{Kind: checkpointKind, UUID: uuid, Fields: e.B}.Encode()
	return parts, nil
}

// decodeCheckpoint checks and decodes a file; the arrays are copies.
func decodeCheckpoint(uuid [16]byte, b []byte) (p position, arrays []array, err error) {
	h, err := codec.DecodeHeader(b, checkpointKind, uuid)
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
	if got := codec.BlockSum(checkpointKind, uuid, 0, text); got != sum {
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
	if body.Rest() != 0 {
		return p, nil, fmt.Errorf("%d bytes after the end", body.Rest())
	}
	return p, arrays, d.Err()
}

func decodeArray(uuid [16]byte, i uint64, d, body *codec.Dec) (array, error) {
	a := array{name: d.String()}
	values, sum := d.U64(), d.U32()
	if err := d.Err(); err != nil {
		return a, err
	}
	if values > uint64(body.Rest())/4 {
		return a, fmt.Errorf("%s: %d values, the file holds %d bytes more", a.name, values,
			body.Rest())
	}
	b := body.Bytes(int(values) * 4)
	if got := codec.BlockSum(checkpointKind, uuid, i+1, b); got != sum {
		return a, fmt.Errorf("%s: checksum %08x, want %08x", a.name, got, sum)
	}
	a.values = make([]float32, values)
	copy(mem.BytesOf(a.values), b)
	return a, nil
}

// writeCheckpoint writes the next checkpoint, makes it current and removes old ones.
func (r runDir) writeCheckpoint(p position, arrays []array) error {
	numbers, err := r.checkpoints()
	if err != nil {
		return err
	}
	next := 1
	if len(numbers) > 0 {
		next = numbers[len(numbers)-1] + 1
	}
	parts, err := encodeCheckpoint(r.uuid, p, arrays)
	if err != nil {
		return err
	}
	name := checkpointPrefix + strconv.Itoa(next)
	if err := r.fs.MkdirAll(r.path(name), 0o755); err != nil {
		return fmt.Errorf("train: make %s: %w", r.path(name), err)
	}
	if err := atomicfile.Write(r.fs, r.path(name, stateName), parts...); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if err := r.syncDir(r.dir); err != nil {
		return err
	}
	if err := r.replace(currentName, r.currentLine(name)); err != nil {
		return err
	}
	for i := range len(numbers) + 1 - checkpointsKept {
		old := r.path(checkpointPrefix + strconv.Itoa(numbers[i]))
		if err := r.fs.RemoveAll(old); err != nil {
			return fmt.Errorf("train: remove %s: %w", old, err)
		}
	}
	return nil
}

// currentLine is what CURRENT holds.
func (r runDir) currentLine(name string) []byte {
	return fmt.Appendf(nil, "%s %08x\n", name,
		codec.BlockSum(checkpointKind, r.uuid, 0, []byte(name)))
}

// checkpoints lists the numbers of the checkpoints, whole or not, in ascending order.
func (r runDir) checkpoints() ([]int, error) {
	names, err := r.fs.List(r.dir)
	if err != nil {
		return nil, fmt.Errorf("train: list %s: %w", r.dir, err)
	}
	var numbers []int
	for _, name := range names {
		if n, ok := checkpointNumber(name); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// checkpointNumber is the number in the name of a checkpoint.
func checkpointNumber(name string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(name, checkpointPrefix)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0 && strconv.Itoa(n) == digits
}

// errNoCheckpoint says that a run was stopped before its first checkpoint.
var errNoCheckpoint = errors.New("no checkpoint yet")

// readCheckpoint reads the current checkpoint of a model with so many parameters. Damage is a
// layout.CorruptionError. note is for the user: CURRENT was not there.
func (r runDir) readCheckpoint(params int) (p position, arrays []array, note string, err error) {
	name, err := r.current()
	if errors.Is(err, errNotExist) {
		if name, err = r.newestWhole(); err == nil {
			note = fmt.Sprintf("run %s has no %s: %s, its newest checkpoint, is taken", r.name,
				currentName, name)
		}
	}
	if err != nil {
		return p, nil, "", err
	}
	file := name + "/" + stateName
	b, err := r.read(file, stateBytesMax(params))
	if errors.Is(err, errNotExist) {
		return p, nil, "", fmt.Errorf("train: run %s: %w", r.name,
			r.corrupt(file, currentName+" names it, but it is missing"))
	}
	if err != nil {
		return p, nil, "", err
	}
	if p, arrays, err = decodeCheckpoint(r.uuid, b); err != nil {
		return p, nil, "", fmt.Errorf("train: run %s: %w", r.name, r.corrupt(file, err.Error()))
	}
	return p, arrays, note, nil
}

// current reads the name of the current checkpoint.
func (r runDir) current() (name string, err error) {
	line, err := r.read(currentName, currentBytesMax)
	if err != nil {
		return "", err
	}
	name, _, _ = strings.Cut(string(line), " ")
	if _, ok := checkpointNumber(name); !ok || string(line) != string(r.currentLine(name)) {
		return "", fmt.Errorf("train: run %s: %w", r.name,
			r.corrupt(currentName, fmt.Sprintf("%q has another checksum", line)))
	}
	return name, nil
}

// newestWhole names the newest checkpoint that was written to its end, of a run whose CURRENT is
// not there: it was lost, or a crash came before the first one was written.
func (r runDir) newestWhole() (name string, err error) {
	numbers, err := r.checkpoints()
	if err != nil {
		return "", err
	}
	for _, n := range slices.Backward(numbers) {
		name := checkpointPrefix + strconv.Itoa(n)
		_, err := r.fs.Stat(r.path(name, stateName))
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, errNotExist) {
			return "", r.readError(name, err)
		}
	}
	return "", fmt.Errorf("train: run %s: %w", r.name, errNoCheckpoint)
}

// stateBytesMax is the most that a checkpoint of so many parameters takes: weights, the best ones,
// and what the optimizer keeps, beside header and position.
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
