package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/rowcache"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// mapped is a graph read through memory maps: topology and features, advised for random access, by
// enough goroutines to keep the disk busy with page faults. It is what the mmap baseline of the
// comparison reads with; the page cache of the kernel is its cache. It is a topology.Reader; rows
// makes its features.
type mapped struct {
	maps    [][]byte
	ptr     []uint64
	nbrs    []layout.NodeID
	workers atomic.Int32

	meta     kv.RowsMeta
	features []byte // the pages of the feature file
	requests atomic.Uint64
}

// openMapped maps the arrays that makeCSC made and the default features of a store.
func openMapped(s *layout.Store, workers int) (*mapped, error) {
	if err := s.WithoutLevels(); err != nil {
		return nil, fmt.Errorf("bench: the mmap baseline maps one file of features: %w", err)
	}
	m := &mapped{meta: s.Meta().Features[0]}
	if m.meta.DType != "f32" {
		return nil, fmt.Errorf("bench: the mmap baseline reads features of f32, these are %s",
			m.meta.DType)
	}
	m.workers.Store(int32(workers))
	for _, path := range []string{s.Path(cscDir, cscIndptr), s.Path(cscDir, cscIndices),
		s.Path(m.meta.Path)} {
		b, err := mapRandom(s.FS(), path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("bench: map %s: %w", path, err), m.Close())
		}
		m.maps = append(m.maps, b)
	}
	m.ptr, m.nbrs = mem.View[uint64](m.maps[0]), mem.View[layout.NodeID](m.maps[1])
	m.features = m.maps[2][codec.HeaderBytes:]
	return m, nil
}

// mapRandom maps a file. With the default advice a fault reads as much as read-ahead allows, and an
// epoch does not end.
func mapRandom(fs vfs.FS, path string) (b []byte, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return nil, err
	}
	b, err = unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return b, unix.Madvise(b, unix.MADV_RANDOM)
}

// spreadChunk is how many nodes a goroutine takes at a time: faults make some chunks slow.
const spreadChunk = 32

// spread calls work with parts of [0, n), on all workers.
func (m *mapped) spread(n int, work func(first, end int)) {
	workers := min(int(m.workers.Load()), (n+spreadChunk-1)/spreadChunk)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				first := int(next.Add(spreadChunk)) - spreadChunk
				if first >= n {
					return
				}
				work(first, min(first+spreadChunk, n))
			}
		})
	}
	wg.Wait()
}

// Nodes returns the number of lists.
func (m *mapped) Nodes() uint64 { return uint64(len(m.ptr)) - 1 }

// Edges returns the number of entries.
func (m *mapped) Edges() uint64 { return uint64(len(m.nbrs)) }

// Stats knows no more than the kind: hits and misses are the kernel's.
func (m *mapped) Stats() topology.Stats { return topology.Stats{Kind: "mmap"} }

// NewSession returns a reader.
func (m *mapped) NewSession() topology.Session { return &mappedSession{m: m} }

// Close unmaps the files.
func (m *mapped) Close() error {
	var err error
	for _, b := range m.maps {
		if b != nil {
			err = errors.Join(err, unix.Munmap(b))
		}
	}
	m.maps = nil
	return err
}

type mappedSession struct {
	m     *mapped
	start []uint64
	lists listfile.Lists
}

// Degrees reads two pointers a node.
func (s *mappedSession) Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	if cap(s.start) < len(nodes) {
		s.start = make([]uint64, len(nodes)+len(nodes)/4)
	}
	s.start = s.start[:len(nodes)]
	for _, v := range nodes {
		if uint64(v) >= s.m.Nodes() {
			return fmt.Errorf("bench: node %d is not below the %d nodes", v, s.m.Nodes())
		}
	}
	s.m.spread(len(nodes), func(first, end int) {
		for i := first; i < end; i++ {
			p := s.m.ptr[nodes[i] : nodes[i]+2 : nodes[i]+2]
			s.start[i], deg[i] = p[0], uint32(p[1]-p[0])
		}
	})
	return ctx.Err()
}

// Gather copies entries.
func (s *mappedSession) Gather(ctx context.Context, off, pos []uint32, out []layout.NodeID) error {
	s.m.spread(len(s.start), func(first, end int) {
		for i := first; i < end; i++ {
			list := s.m.nbrs[s.start[i]:]
			for k := off[i]; k < off[i+1]; k++ {
				out[k] = list[pos[k]]
			}
		}
	})
	return ctx.Err()
}

// Lists copies whole lists.
func (s *mappedSession) Lists(ctx context.Context, nodes []layout.NodeID) (*listfile.Lists, error) {
	l := &s.lists
	l.Off, l.Nbrs = append(l.Off[:0], 0), l.Nbrs[:0]
	for _, v := range nodes {
		if uint64(v) >= s.m.Nodes() {
			return nil, fmt.Errorf("bench: node %d is not below the %d nodes", v, s.m.Nodes())
		}
		l.Nbrs = append(l.Nbrs, s.m.nbrs[s.m.ptr[v]:s.m.ptr[v+1]]...)
		l.Off = append(l.Off, uint64(len(l.Nbrs)))
	}
	return l, ctx.Err()
}

// Release does nothing.
func (s *mappedSession) Release() {}

// mappedRows are the features of a mapped graph: a rowcache.Features.
type mappedRows struct{ *mapped }

// Dim returns the number of values in a row.
func (m mappedRows) Dim() int { return m.meta.Dim }

// Gather copies rows out of the map.
func (m mappedRows) Gather(ctx context.Context, nodes []sample.NodeID, out []float32) error {
	m.requests.Add(uint64(len(nodes)))
	perPage := int64(m.meta.PageBytes / m.meta.RowBytes)
	page, row := int64(m.meta.PageBytes), int64(m.meta.RowBytes)
	to := mem.BytesOf(out)
	m.spread(len(nodes), func(first, end int) {
		for i := first; i < end; i++ {
			v := int64(nodes[i])
			at := v/perPage*page + v%perPage*row
			copy(to[int64(i)*row:int64(i+1)*row], m.features[at:at+row])
		}
	})
	return ctx.Err()
}

// Lent returns nil: rows are copied out of the map.
func (m mappedRows) Lent() []float32 { return nil }

// Stats counts requests; what the page cache held cannot be known.
func (m mappedRows) Stats() rowcache.Stats {
	return rowcache.Stats{Policy: "page cache", Requests: m.requests.Load()}
}

// Close does nothing: the map is closed as a whole.
func (m mappedRows) Close() error { return nil }

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
	err = topology.Scan(ctx, s, dev, layout.In, func(_ layout.NodeID, cont bool,
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
