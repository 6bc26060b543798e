package partition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"

	"github.com/cockroachdb/errors/oserror"
)

// The kinds of the files, in headers.
const (
	BucketsKind      = "GEBK"
	BucketsKindIndex = "GEBI"
)

// The paths of the files, relative to the store.
const (
	edgesPath = "prep/buckets.edges"
	indexPath = "prep/buckets.idx"
	lockPath  = "prep/buckets.lock"
)

// bucketsLayout is the version of the files and of the order. Files of other versions are made
// again.
const bucketsLayout = 1

// errStale is returned for files that are intact, but of other partitions or another graph.
var errStale = errors.New("made for other partitions or another version")

// Buckets holds the buckets of a store's train edges open. Any goroutine may call its methods.
type Buckets struct {
	m       Map
	file    *edgefile.File
	offsets []uint64
	account mem.Account
}

// own returns the header fields that say what files were made from.
func own(m *kv.Meta, p *Map) []byte {
	spec := p.Spec()
	e := codec.Enc{}
	e.U32(bucketsLayout)
	e.U32(uint32(spec.Parts))
	random := uint32(0)
	if spec.Random {
		random = 1
	}
	e.U32(random)
	e.U64(spec.Seed)
	for _, f := range m.Files {
		if f.Kind == edgefile.Kind("train") {
			e.U64(uint64(f.Size))
			e.U32(f.Checksum)
		}
	}
	return e.B
}

// OpenBuckets opens the buckets of a partitioning, and makes them if they do not exist, are of
// another partitioning, or are damaged. note says what was made and why, "" if nothing was. It
// takes 8 bytes of memory per bucket while it is open, and Options.Memory while buckets are made.
// The caller calls Close.
func OpenBuckets(ctx context.Context, s *layout.Store, dev blockdev.Device,
	opt BucketOptions) (b *Buckets,
	note string, err error) {
	if err := edgefile.Check(s.Meta()); err != nil {
		return nil, "", err
	}
	opt.Partition.Nodes = s.Meta().Nodes
	m, err := New(opt.Partition)
	if err != nil {
		return nil, "", err
	}
	account := mem.NewAccount(opt.Budget, "places of edge buckets")
	places := 8 * int64(m.Parts()*m.Parts()+1)
	if err := account.Add(2 * places); err != nil { // twice while they are made or read
		return nil, "", fmt.Errorf("layout: %w", err)
	}
	b = &Buckets{m: m, account: account}
	err = b.open(ctx, s, dev)
	if oserror.IsNotExist(err) || errors.Is(err, errStale) || errors.Is(err, layout.ErrCorrupt) {
		note = fmt.Sprintf("the edges of train were sorted into %d x %d buckets, which are kept "+
			"in %s", m.Parts(), m.Parts(), edgesPath)
		if !oserror.IsNotExist(err) {
			note += fmt.Sprintf(" in place of others (%v)", err)
		}
		if err = build(ctx, s, dev, opt, m); err == nil {
			err = b.open(ctx, s, dev)
		}
	}
	b.account.Release()
	if err == nil {
		err = b.account.Add(places)
	}
	if err != nil {
		return nil, "", err
	}
	return b, note, nil
}

// open opens the files, which must exist.
func (b *Buckets) open(ctx context.Context, s *layout.Store, dev blockdev.Device) error {
	if err := b.readIndex(ctx, s, dev); err != nil {
		return err
	}
	f, err := edgefile.OpenFile(ctx, s, dev, edgesPath, edgefile.SpecOf(s.Meta(), BucketsKind))
	if err != nil {
		return err
	}
	switch {
	case !bytes.Equal(f.Own(), own(s.Meta(), &b.m)):
		err = errStale
	case f.Count() != b.offsets[len(b.offsets)-1]:
		err = &layout.CorruptionError{Path: edgesPath, Block: -1, What: fmt.Sprintf(
			"it has %d edges, the index %d", f.Count(), b.offsets[len(b.offsets)-1])}
	default:
		b.file = f
		return nil
	}
	return errors.Join(err, f.Close())
}

// readIndex reads where buckets begin.
func (b *Buckets) readIndex(ctx context.Context, s *layout.Store, dev blockdev.Device) (err error) {
	f, err := s.OpenFile(dev, indexPath)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	n := b.m.Parts()*b.m.Parts() + 1
	size := int64(8*n+layout.PageBytes-1) / layout.PageBytes * layout.PageBytes
	arena, err := mem.NewArena(nil, "index of buckets", size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, arena.Free()) }()
	h, err := f.ReadHeader(ctx, BucketsKindIndex, s.Meta().UUID)
	if err != nil {
		return err
	}
	want := own(s.Meta(), &b.m)
	if !bytes.HasPrefix(h.Fields, want) || len(h.Fields) != len(want)+4 {
		return errStale
	}
	if err := f.CheckSize(layout.PageBytes + size); err != nil {
		return err
	}
	sum := codec.NewDec(h.Fields[len(want):]).U32()
	data := arena.Bytes()[:size]
	if err := f.Read(ctx, layout.PageBytes, data); err != nil {
		return fmt.Errorf("layout: read %s: %w", indexPath, err)
	}
	if got := codec.BlockSum(BucketsKindIndex, s.Meta().UUID, 1, data[:8*n]); got != sum {
		return f.Damage(1, layout.PageBytes, "checksum is %08x, its bytes give %08x", sum, got)
	}
	b.offsets = slices.Clone(mem.View[uint64](data[:8*n]))
	if !slices.IsSorted(b.offsets) {
		return f.Damage(1, layout.PageBytes, "the places of its buckets do not ascend")
	}
	return nil
}

// Close closes the file and gives the memory back.
func (b *Buckets) Close() error {
	b.account.Release()
	return b.file.Close()
}

// Map returns the partitioning.
func (b *Buckets) Map() Map { return b.m }

// Count returns the number of edges of a bucket.
func (b *Buckets) Count(k Bucket) uint64 {
	first, end := b.span(k)
	return end - first
}

// Edges returns the number of edges of all buckets.
func (b *Buckets) Edges() uint64 { return b.file.Count() }

// stretch is a range of edges that is read together.
type stretch struct {
	first, end uint64 // edges
	of         []Bucket
}

// stretches returns the ranges of some buckets, in the order of the file. Ranges that follow each
// other are joined.
func (b *Buckets) stretches(want []Bucket) (out []stretch) {
	sorted := slices.Clone(want)
	slices.SortFunc(sorted, func(x, y Bucket) int {
		return b.place(x) - b.place(y)
	})
	for _, k := range sorted {
		first, end := b.span(k)
		if n := len(out); n > 0 && out[n-1].end == first {
			out[n-1].end = end
			out[n-1].of = append(out[n-1].of, k)
			continue
		}
		out = append(out, stretch{first, end, []Bucket{k}})
	}
	return out
}

// Read calls fn with the edges of each of these buckets, which must differ, in the order of the
// file. A bucket may come in several parts. Edges are valid during the call.
func (b *Buckets) Read(ctx context.Context, want []Bucket,
	fn func(k Bucket, e edgefile.Edges) error) error {
	for _, r := range b.stretches(want) {
		i := 0
		err := b.file.Stream(ctx, r.first, r.end, func(at uint64, e edgefile.Edges) error {
			for e.Len() > 0 {
				_, end := b.span(r.of[i])
				if at == end {
					i++
					continue
				}
				n := int(min(uint64(e.Len()), end-at))
				if err := fn(r.of[i], e.Slice(0, n)); err != nil {
					return err
				}
				e, at = e.Slice(n, e.Len()), at+uint64(n)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// place returns the place of a bucket in the order.
func (b *Buckets) place(k Bucket) int {
	return place(int(k.From), int(k.To), b.m.Parts())
}

// span returns the range of a bucket's edges in the file.
func (b *Buckets) span(k Bucket) (first, end uint64) {
	at := b.place(k)
	return b.offsets[at], b.offsets[at+1]
}

// Bucket (i, j) has the train edges of a store from partition i to partition j (Waleffe et al.,
// "Marius++", section 5.1).
//
// # Order
//
// A partition buffer holds some partitions and, for each pair of them, both buckets, (i, j) and (j,
// i). So these two are next to each other in the file, and a pair is one stretch of twice the size
// of a bucket; where partitions are many and buckets small, that halves the reads. Pairs are
// ordered by the lower partition, then by the higher:
//
//	(0,0) (0,1)(1,0) (0,2)(2,0) … (1,1) (1,2)(2,1) … (p-1,p-1)
//
// So all pairs of partition i with higher ones are one stretch as well. A partition that enters a
// buffer of c is read in at most c stretches: one for each pair with another, or fewer where these
// follow each other. If buckets were ordered by rows, (i, 0) (i, 1) …, the buckets from i would be
// one stretch, but those to i as many stretches as there are partitions.
//
// # Files
//
// prep/buckets.edges is a file of edges (edgefile) of the kind GEBK, sorted by bucket, destination,
// source and type. prep/buckets.idx holds where each bucket begins, as u64, and at the end the
// number of edges. The headers of both say what they were made from, so that files of other
// partitions or of another graph are made again.

// place returns the place of bucket (i, j) of p partitions in the order.
func place(i, j, p int) int {
	low, high := min(i, j), max(i, j)
	first := low * (2*p - low) // place after the pairs of partitions below low
	switch {
	case i == j:
		return first
	case i < j:
		return first + 2*(high-low) - 1
	}
	return first + 2*(high-low)
}
