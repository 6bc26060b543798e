package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// StateFile is a checkpoint file whose arrays are read in parts: they may be larger than memory.
// Read may be called from any goroutine.
type StateFile struct {
	dir    Dir
	file   vfs.File
	name   string // for messages
	size   int64
	arrays []storedArray
}

// storedArray says where an array of a checkpoint is.
type storedArray struct {
	name   string
	values uint64
	sum    uint32
	number uint64 // of its block sum
	offset int64
}

// stateTextMax bounds the position of a checkpoint that is opened.
const stateTextMax = 16 << 20

// OpenState opens the file of a checkpoint, and decodes the position in it. Arrays are not checked
// yet: see Check.
func (r Dir) OpenState(checkpoint string, position any) (*StateFile, error) {
	s := &StateFile{dir: r, name: checkpoint + "/" + StateName}
	var err error
	if s.file, err = r.fs.Open(r.Path(checkpoint, StateName)); err != nil {
		return nil, fmt.Errorf("train: run %s: %w", r.name, err)
	}
	if err := s.readHeader(position); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close closes the file.
func (s *StateFile) Close() error { return s.file.Close() }

// damaged returns the error for a file whose content is not what was written.
func (s *StateFile) damaged(format string, args ...any) error {
	return fmt.Errorf("train: run %s: %w", s.dir.name, s.dir.Corrupt(s.name,
		fmt.Sprintf(format, args...)))
}

// readAt reads bytes at an offset. A file that ends before them is damaged.
func (s *StateFile) readAt(b []byte, offset int64) error {
	if len(b) == 0 { // there may be nothing behind it
		return nil
	}
	_, err := io.ReadFull(io.NewSectionReader(s.file, offset, int64(len(b))), b)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return s.damaged("it ends within the %d bytes at offset %d", len(b), offset)
	case err != nil:
		return fmt.Errorf("train: run %s: read %s at offset %d: %w", s.dir.name, s.name, offset,
			err)
	}
	return nil
}

// readHeader reads the header and the position, and finds the arrays.
func (s *StateFile) readHeader(position any) error {
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("train: run %s: %s: %w", s.dir.name, s.name, err)
	}
	if s.size = info.Size(); s.size < codec.HeaderBytes {
		return s.damaged("it has %d bytes", s.size)
	}
	b := make([]byte, codec.HeaderBytes)
	if err := s.readAt(b, 0); err != nil {
		return err
	}
	h, err := codec.DecodeHeader(b, CheckpointKind, s.dir.uuid)
	if err != nil {
		return s.damaged("%v", err)
	}
	d := codec.NewDec(h.Fields)
	size, sum, n := d.U32(), d.U32(), d.U32()
	if d.Err() != nil || n > stateArraysMax || size > stateTextMax {
		return s.damaged("a header of %d arrays and %d bytes of text", n, size)
	}
	end := codec.HeaderBytes + int64(size)
	for i := range n {
		a := storedArray{name: d.String(), values: d.U64(), sum: d.U32(), number: uint64(i) + 1,
			offset: end}
		if d.Err() != nil || a.values > uint64(s.size) {
			return s.damaged("array %d is not described", i)
		}
		s.arrays = append(s.arrays, a)
		end += 4 * int64(a.values)
	}
	if end != s.size {
		return s.damaged("it has %d bytes, want %d", s.size, end)
	}
	text := make([]byte, size)
	if err := s.readAt(text, codec.HeaderBytes); err != nil {
		return err
	}
	if got := codec.BlockSum(CheckpointKind, s.dir.uuid, 0, text); got != sum {
		return s.damaged("position: checksum %08x, want %08x", got, sum)
	}
	if err := json.Unmarshal(text, position); err != nil {
		return s.damaged("position: %v", err)
	}
	return nil
}

// find returns an array by its name.
func (s *StateFile) find(name string) (*storedArray, error) {
	for i := range s.arrays {
		if s.arrays[i].name == name {
			return &s.arrays[i], nil
		}
	}
	return nil, fmt.Errorf("train: run %s: its checkpoint has no %s: %w", s.dir.name, name,
		layout.ErrCorrupt)
}

// Check reads an array, which must have that many values, once from beginning to end in pieces of
// buf, and compares its checksum.
func (s *StateFile) Check(ctx context.Context, name string, values int, buf []float32) error {
	a, err := s.find(name)
	if err != nil {
		return err
	}
	if a.values != uint64(values) {
		return s.damaged("%s has %d values, the run %d", name, a.values, values)
	}
	sum := codec.BlockSum(CheckpointKind, s.dir.uuid, a.number)
	for at := 0; at < values; {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buf[:min(len(buf), values-at)]
		if err := s.readAt(mem.BytesOf(part), a.offset+4*int64(at)); err != nil {
			return err
		}
		sum = codec.ChecksumUpdate(sum, mem.BytesOf(part))
		at += len(part)
	}
	if sum != a.sum {
		return s.damaged("%s: checksum %08x, want %08x", name, sum, a.sum)
	}
	return nil
}

// Load fills to with an array, and compares its checksum.
func (s *StateFile) Load(name string, to []float32) error {
	a, err := s.find(name)
	if err != nil {
		return err
	}
	if a.values != uint64(len(to)) {
		return s.damaged("%s has %d values, the run %d", name, a.values, len(to))
	}
	if err := s.readAt(mem.BytesOf(to), a.offset); err != nil {
		return err
	}
	sum := codec.BlockSum(CheckpointKind, s.dir.uuid, a.number, mem.BytesOf(to))
	if sum != a.sum {
		return s.damaged("%s: checksum %08x, want %08x", name, sum, a.sum)
	}
	return nil
}

// Sum returns the number of values of an array, and their checksum, as the header has it.
func (s *StateFile) Sum(name string) (values uint64, sum uint32, err error) {
	a, err := s.find(name)
	if err != nil {
		return 0, 0, err
	}
	return a.values, a.sum, nil
}

// Read fills to with the values of an array from value at on.
func (s *StateFile) Read(name string, at int, to []float32) error {
	a, err := s.find(name)
	if err != nil {
		return err
	}
	if uint64(at)+uint64(len(to)) > a.values {
		return s.damaged("%s has %d values, no %d from %d on", name, a.values, len(to), at)
	}
	return s.readAt(mem.BytesOf(to), a.offset+4*int64(at))
}
