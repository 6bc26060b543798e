package paged

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/layout/partition"
	"gdb/train/link/entities"
)

// frames is the partition buffer of the entities' vectors, with the memory of its frames.
type frames struct {
	*partition.Buffer
	files  *entities.Files
	spec   entities.FileSpec
	count  int
	arenas []*mem.Arena
	arrays [][]float32 // vectors, and the optimizer's: each (count * FrameRows, Columns)
}

// framesBytes returns the memory of a number of frames.
func framesBytes(s *entities.FileSpec, count int) int64 {
	return int64(1+s.State) * mem.ArenaBytes(int64(count)*arrayBytes(s))
}

// arrayBytes returns the bytes of one array of a frame.
func arrayBytes(s *entities.FileSpec) int64 { return int64(s.FrameRows()) * int64(s.Columns) * 4 }

// newFrames returns an empty buffer of that many partitions with its memory taken. The caller
// closes it.
func newFrames(files *entities.Files, count int, budget *mem.Budget) (*frames, error) {
	f := &frames{files: files, spec: files.Spec(), count: count}
	f.Buffer = partition.NewBuffer(f, f.spec.Map.Parts(), count)
	for range 1 + f.spec.State {
		a, err := mem.NewArena(budget, "partition buffer", int64(count)*arrayBytes(&f.spec))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("train: %w", err), f.Close())
		}
		f.arenas = append(f.arenas, a)
		f.arrays = append(f.arrays, mem.View[float32](a.Bytes()))
	}
	return f, nil
}

// Close waits for the work under way and frees the memory. Changes since Flush are lost.
func (f *frames) Close() error {
	err := f.Drop()
	for _, a := range f.arenas {
		err = errors.Join(err, a.Free())
	}
	f.arenas = nil
	return err
}

// Fill reads a partition into a frame.
func (f *frames) Fill(ctx context.Context, part, frame int) (int64, error) {
	return f.files.Read(ctx, part, f.pieces(frame))
}

// Store writes the partition of a frame.
func (f *frames) Store(part, frame int) (int64, error) {
	return f.spec.PartBytes(part), f.files.Write(part, f.pieces(frame))
}

// pieces returns the arrays of a frame.
func (f *frames) pieces(frame int) (out [][]float32) {
	n := f.spec.FrameRows() * f.spec.Columns
	for _, a := range f.arrays {
		out = append(out, a[frame*n:(frame+1)*n:(frame+1)*n])
	}
	return out
}

// vectors returns the vectors of each frame, (FrameRows, Columns).
func (f *frames) vectors() (out [][]float32) {
	for frame := range f.count {
		out = append(out, f.pieces(frame)[0])
	}
	return out
}

// first returns the row in the arrays of the first node of a resident partition. Its other nodes
// follow.
func (f *frames) first(part int) uint32 { return uint32(f.Frame(part) * f.spec.FrameRows()) }
