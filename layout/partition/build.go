package partition

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/ingest/extsort"

	"github.com/cockroachdb/errors/oserror"
)

// BucketOptions say how buckets are built.
type BucketOptions struct {
	Partition Spec // Nodes is set from the store
	// Memory bounds the memory of building, in bytes, counted in Budget. Less than
	// bucketsLeastMemory counts as that.
	Memory int64
	Budget *mem.Budget
}

// bucketsLeastMemory is the least memory with which buckets are built, in bytes.
const bucketsLeastMemory = 4 << 20

// ErrBuildingBuckets is returned while another process builds buckets of this store.
var ErrBuildingBuckets = errors.New("another training sorts the edges of this store now: wait " +
	"until it has begun its first epoch")

// Edges are sorted as two words: place and destination, then source and type.
const (
	wordsPerEdge = 2
	runsDir      = "prep/buckets.part"
)

// builder sorts the edges of train by bucket.
type builder struct {
	s       *layout.Store
	dev     blockdev.Device
	opt     BucketOptions
	m       Map
	offsets []uint64 // where each bucket begins, by place
	extsort.Options
}

// build makes the files. It takes Options.Memory to sort, then as much to merge, and 8 bytes per
// bucket, which the caller has reserved. It takes 16 bytes per edge on disk in prep/ while it
// sorts.
func build(ctx context.Context, s *layout.Store, dev blockdev.Device, opt BucketOptions,
	m Map) (err error) {
	fs := s.FS()
	if err := fs.MkdirAll(s.Path("prep"), 0o755); err != nil {
		return fmt.Errorf("layout: make %s: %w", s.Path("prep"), err)
	}
	lock, err := files.Lock(fs, s.Path(lockPath))
	if errors.Is(err, files.ErrLockHeld) {
		return fmt.Errorf("layout: %w", ErrBuildingBuckets)
	}
	if err != nil {
		return fmt.Errorf("layout: %w", err)
	}
	runs := s.Path(runsDir)
	defer func() {
		err = errors.Join(err, fs.RemoveAll(runs), fs.Remove(s.Path(lockPath)), lock.Close())
	}()
	if err := fs.RemoveAll(runs); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("layout: clean up %s: %w", runs, err) // of a killed builder
	}
	if err := fs.MkdirAll(runs, 0o755); err != nil {
		return fmt.Errorf("layout: make %s: %w", runs, err)
	}
	b := &builder{s: s, dev: dev, opt: opt, m: m,
		offsets: make([]uint64, m.Parts()*m.Parts()+1),
		Options: extsort.Options{FS: fs, Dir: runs, Prefix: "edges", Width: wordsPerEdge,
			Memory: max(opt.Memory, bucketsLeastMemory), Budget: opt.Budget}}
	sorted, err := b.sort(ctx)
	if err != nil {
		return err
	}
	if err := b.write(ctx, sorted); err != nil {
		return err
	}
	path := s.Path(edgesPath)
	if err := fs.Rename(files.PartPath(path), path); err != nil {
		return fmt.Errorf("layout: rename %s: %w", path, err)
	}
	return b.writeIndex()
}

// sort reads the edges of train into sorted runs.
func (b *builder) sort(ctx context.Context) (runs []extsort.Run, err error) {
	f, err := edgefile.Open(ctx, b.s, b.dev, "train")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sorter, err := extsort.NewWords(b.Options)
	if err != nil {
		return nil, fmt.Errorf("layout: sort edges by bucket: %w", err)
	}
	var words []uint64
	err = f.Stream(ctx, 0, f.Count(), func(_ uint64, e edgefile.Edges) error {
		words = words[:0]
		for i, src := range e.Src {
			from, _ := b.m.Place(layout.NodeID(src))
			to, _ := b.m.Place(layout.NodeID(e.Dst[i]))
			rel := uint64(0)
			if e.Rel != nil {
				rel = uint64(e.Rel[i])
			}
			words = append(words, uint64(place(from, to, b.m.Parts()))<<32|uint64(e.Dst[i]),
				uint64(src)<<16|rel)
		}
		return sorter.Add(words)
	})
	if err != nil {
		return nil, errors.Join(err, sorter.Abort())
	}
	return sorter.Finish()
}

// write merges the runs into the file of edges, under a temporary name.
func (b *builder) write(ctx context.Context, runs []extsort.Run) (err error) {
	part := files.PartPath(b.s.Path(edgesPath))
	out, err := layout.CreateFile(b.s.FS(), part)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Abort(), b.s.FS().Remove(part))
		}
	}()
	w, err := edgefile.NewWriter(out, edgefile.SpecOf(b.s.Meta(), BucketsKind),
		own(b.s.Meta(), &b.m))
	if err != nil {
		return err
	}
	err = extsort.Merge(ctx, b.Options, runs, func(words []uint64) error {
		for i := 0; i < len(words); i += wordsPerEdge {
			b.offsets[words[i]>>32+1]++
			err := w.Add(uint32(words[i+1]>>16), uint32(words[i]), uint16(words[i+1]))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = w.Finish()
	}
	if err == nil {
		_, err = out.Finish(edgesPath, BucketsKind)
	}
	if err != nil {
		return fmt.Errorf("layout: sort edges by bucket: %w", err)
	}
	for i := range len(b.offsets) - 1 {
		b.offsets[i+1] += b.offsets[i]
	}
	return nil
}

// writeIndex writes where buckets begin, after the file of edges is in place. Files of different
// partitions do not open together.
func (b *builder) writeIndex() error {
	m := b.s.Meta()
	data := mem.BytesOf(b.offsets)
	e := codec.Enc{B: own(m, &b.m)}
	e.U32(codec.BlockSum(BucketsKindIndex, m.UUID, 1, data))
	h := codec.Header{Kind: BucketsKindIndex, UUID: m.UUID, Fields: e.B}
	padding := make([]byte, -len(data)&(layout.PageBytes-1))
	return b.s.WritePrep(indexPath, h.Encode(), data, padding)
}
