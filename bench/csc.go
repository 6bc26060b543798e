package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"gdb/blockdev"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// cscFiles are the in-lists of a store as a program without a store format has them: the plain
// arrays of compressed sparse columns in prep/csc, made for the mmap baseline. indptr has N+1
// uint64, indices E uint32 (half of what such programs use, in favor of the baseline).
type cscFiles struct {
	UUID  kv.UUID `json:"store"`
	Nodes uint64  `json:"nodes"`
	Edges uint64  `json:"edges"`
}

const (
	cscDir     = "prep/csc"
	cscIndptr  = "indptr.u64"
	cscIndices = "indices.u32"
	cscDone    = "csc.json" // written last
)

// makeCSC writes the arrays if they are not there, in one sequential pass with buffers of 2 MiB,
// and returns their paths.
func makeCSC(ctx context.Context, s *layout.Store, dev blockdev.Device) ([]string, error) {
	m, fs := s.Meta(), s.FS()
	paths := []string{s.Path(cscDir, cscIndptr), s.Path(cscDir, cscIndices)}
	want := cscFiles{UUID: m.UUID, Nodes: m.Nodes, Edges: m.Edges}
	if have, err := readCSC(fs, s.Path(cscDir, cscDone)); err == nil && have == want {
		return paths, nil
	}
	if err := fs.MkdirAll(s.Path(cscDir), 0o755); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if err := writeCSC(ctx, s, dev, paths); err != nil {
		return nil, fmt.Errorf("bench: write plain arrays of the graph: %w", err)
	}
	b, err := json.Marshal(want)
	if err != nil {
		return nil, err
	}
	return paths, files.WriteAtomic(fs, s.Path(cscDir, cscDone), b)
}

func readCSC(fs vfs.FS, path string) (c cscFiles, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := io.ReadAll(f)
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(b, &c)
}

func writeCSC(ctx context.Context, s *layout.Store, dev blockdev.Device,
	paths []string) (err error) {
	var w [2]*bufio.Writer
	for i, path := range paths {
		f, err := s.FS().Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		w[i] = bufio.NewWriterSize(f, 1<<20)
		defer func() { err = errors.Join(err, w[i].Flush(), f.Sync(), f.Close()) }()
	}
	total := uint64(0)
	var ptr []uint64
	err = listfile.Scan(ctx, s, dev, layout.In, func(_ layout.NodeID, cont bool,
		l *listfile.Lists) error {
		ptr = ptr[:0]
		for i := range len(l.Off) - 1 {
			if !cont || i > 0 {
				ptr = append(ptr, total+l.Off[i])
			}
		}
		total += l.Off[len(l.Off)-1]
		return errors.Join(writeCopy(w[0], mem.BytesOf(ptr)),
			writeCopy(w[1], mem.BytesOf(l.Nbrs)))
	})
	ptr = append(ptr[:0], total)
	return errors.Join(err, writeCopy(w[0], mem.BytesOf(ptr)))
}

// writeCopy writes b by way of the buffer: a file may change what it is given to write.
func writeCopy(w *bufio.Writer, b []byte) error {
	for len(b) > 0 {
		if w.Available() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		n, err := w.Write(b[:min(len(b), w.Available())])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
