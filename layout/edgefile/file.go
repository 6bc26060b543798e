package edgefile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
)

// File is an opened file of edges. Its methods may be called from any goroutine.
type File struct {
	f     *layout.File
	spec  Spec
	own   []byte
	count uint64
}

// Open opens the edges of a split: train, val or test. The error wraps ErrNoSplits if the store has
// no splits of edges, and then says how to get them.
func Open(ctx context.Context, s *layout.Store, dev blockdev.Device, split string) (*File, error) {
	at := slices.IndexFunc(s.Meta().EdgeSplits, func(m kv.EdgeSplitMeta) bool {
		return m.Name == split
	})
	if err := Check(s.Meta()); err != nil {
		return nil, err
	}
	if at < 0 {
		return nil, fmt.Errorf("layout: the edges have no split %q: there are %s", split,
			strings.Join(names(s.Meta()), ", "))
	}
	f, err := OpenFile(ctx, s, dev, Path(split), SpecOf(s.Meta(), Kind(split)))
	if err != nil {
		return nil, err
	}
	if want := s.Meta().EdgeSplits[at].Count; f.count != want {
		return nil, errors.Join(f.f.Damage(-1, 0, "it has %d edges, want %d", f.count, want),
			f.Close())
	}
	return f, nil
}

// Check returns nil if a store has splits of its edges, else an error that wraps ErrNoSplits and
// says what to do.
func Check(m *kv.Meta) error {
	switch listed := slices.ContainsFunc(m.Files, func(f kv.FileMeta) bool {
		return SplitOf(f.Kind) != ""
	}); {
	case listed:
		return nil
	case len(m.EdgeSplits) > 0:
		return fmt.Errorf("layout: %w in files: it was made before they were, and its lists have "+
			"the edges of all splits; ingest it again", ErrNoSplits)
	}
	return fmt.Errorf("layout: %w: ingest it again, with %s ingest … --edge-split "+
		"random=85/5/10 (and --rel-col COLUMN, if edges have types), or from files of train, "+
		"valid and test triples",
		ErrNoSplits, message.Program)
}

func names(m *kv.Meta) (out []string) {
	for _, e := range m.EdgeSplits {
		out = append(out, e.Name)
	}
	return out
}

// OpenFile opens a file of edges at a path of the store.
func OpenFile(ctx context.Context, s *layout.Store, dev blockdev.Device, path string,
	spec Spec) (*File, error) {
	f, err := s.OpenFile(dev, path)
	if err != nil {
		return nil, err
	}
	e := &File{f: f, spec: spec}
	if err := e.open(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return e, nil
}

// open reads the header and the last block.
func (f *File) open(ctx context.Context) error {
	h, err := f.f.ReadHeader(ctx, f.spec.Kind, f.spec.UUID)
	if err != nil {
		return err
	}
	f.own, err = f.spec.checkFields(h.Fields)
	if errors.Is(err, kv.ErrFormat) {
		return fmt.Errorf("layout: %s: %w", f.f.Path, err)
	}
	if err != nil {
		return f.f.Damage(0, 0, "header: %v", err)
	}
	if f.f.Size()%layout.PageBytes != 0 {
		return f.f.Damage(-1, 0, "file is %d bytes long, not a whole number of blocks",
			f.f.Size())
	}
	last := f.blocks()
	if last == 0 {
		return nil
	}
	page := blockdev.AlignedBuffer(layout.PageBytes)
	if err := f.f.Read(ctx, last*layout.PageBytes, page); err != nil {
		return fmt.Errorf("layout: read %s: %w", f.f.Path, err)
	}
	rows, err := f.spec.verify(page, uint64(last))
	if err != nil {
		return f.f.Damage(last, last*layout.PageBytes, "%v", err)
	}
	f.count = uint64(last-1)*uint64(f.spec.PerBlock()) + uint64(rows)
	return nil
}

// blocks returns the number of blocks after the header.
func (f *File) blocks() int64 { return f.f.Size()/layout.PageBytes - 1 }

// Count returns the number of edges.
func (f *File) Count() uint64 { return f.count }

// Own returns the header fields that the user of the file added.
func (f *File) Own() []byte { return f.own }

// Close closes the file.
func (f *File) Close() error { return f.f.Close() }

// Stream calls fn with the edges [first, end) in the order of the file, in batches that are valid
// during the call; at is the number of a batch's first edge. It reads only the blocks that hold
// them, in pieces of 4 MiB, the next piece while fn works. It takes 8 MiB of buffers, and the edges
// of a block.
func (f *File) Stream(ctx context.Context, first, end uint64,
	fn func(at uint64, e Edges) error) error {
	if first > end || end > f.count {
		return fmt.Errorf("layout: %s: edges %d to %d of %d", f.f.Path, first, end, f.count)
	}
	if first == end {
		return nil
	}
	per := uint64(f.spec.PerBlock())
	from, to := int64(first/per)+1, int64((end-1)/per)+2
	var e Edges
	return f.f.Stream(ctx, from*layout.PageBytes, to*layout.PageBytes, layout.PageBytes,
		func(off int64, data []byte) error {
			for ; len(data) > 0; data = data[layout.PageBytes:] {
				n := off / layout.PageBytes
				e.Clear()
				if err := f.decode(data[:layout.PageBytes], n, &e); err != nil {
					return err
				}
				at := uint64(n-1) * per
				lo, hi := max(first, at), min(end, at+uint64(e.Len()))
				if err := fn(lo, e.Slice(int(lo-at), int(hi-at))); err != nil {
					return err
				}
				off += layout.PageBytes
			}
			return nil
		})
}

// decode decodes block n, which is full unless it is the last.
func (f *File) decode(b []byte, n int64, e *Edges) error {
	err := f.spec.DecodeBlock(b, uint64(n), e)
	if err == nil && n < f.blocks() && e.Len() != f.spec.PerBlock() {
		err = fmt.Errorf("it has %d edges, want %d", e.Len(), f.spec.PerBlock())
	}
	if err != nil {
		return f.f.Damage(n, n*layout.PageBytes, "%v", err)
	}
	return nil
}

// Read appends the edges [first, end) to out. It reads only the blocks that hold them.
func (f *File) Read(ctx context.Context, first, end uint64, out *Edges) error {
	if first <= end && end <= f.count {
		n := int(end - first)
		out.Src, out.Dst = slices.Grow(out.Src, n), slices.Grow(out.Dst, n)
		if f.spec.Types > 0 {
			out.Rel = slices.Grow(out.Rel, n)
		}
	}
	return f.Stream(ctx, first, end, func(_ uint64, e Edges) error {
		out.Src, out.Dst = append(out.Src, e.Src...), append(out.Dst, e.Dst...)
		out.Rel = append(out.Rel, e.Rel...)
		return nil
	})
}

// Bytes returns the memory of all edges of a split, in bytes, or 0 if the store has no such split.
func Bytes(m *kv.Meta, split string) int64 {
	return int64(m.SplitEdges(split)) * int64(EdgeBytes(len(m.EdgeTypes) > 0))
}

// Writer writes edges in the order in which they come. It takes two blocks of memory, and what its
// output takes.
type Writer struct {
	out    *layout.FileWriter
	spec   Spec
	per    int
	edges  Edges // edges of the block being filled
	block  []byte
	blocks uint64
	count  uint64
}

// NewWriter starts a file of edges. own are header fields of the user of the file, nil for none.
func NewWriter(out *layout.FileWriter, spec Spec, own []byte) (*Writer, error) {
	w := &Writer{out: out, spec: spec, per: spec.PerBlock(), block: make([]byte, layout.PageBytes)}
	return w, out.Write(codec.Header{Kind: spec.Kind, UUID: spec.UUID,
		Fields: append(spec.fields(), own...)}.Encode())
}

// Add appends an edge. rel is ignored if edges have no type.
func (w *Writer) Add(src, dst uint32, rel uint16) error {
	w.edges.Src = append(w.edges.Src, src)
	w.edges.Dst = append(w.edges.Dst, dst)
	if w.spec.Types > 0 {
		w.edges.Rel = append(w.edges.Rel, rel)
	}
	w.count++
	if w.edges.Len() == w.per {
		return w.flush()
	}
	return nil
}

// Count returns the number of edges so far.
func (w *Writer) Count() uint64 { return w.count }

// Finish writes the last block. The caller finishes the output.
func (w *Writer) Finish() error {
	if w.edges.Len() == 0 {
		return nil
	}
	return w.flush()
}

func (w *Writer) flush() error {
	w.blocks++
	w.spec.encodeBlock(w.block, w.blocks, &w.edges)
	w.edges.Clear()
	return w.out.Write(w.block)
}
