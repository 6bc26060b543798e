// Package nearest finds the nodes whose vectors are closest to that of a node: vectors that a run
// has learned, or rows of features. It does so by an index of package ivf, whose candidates it
// compares exactly, or by comparing with all.
package nearest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	"gdb/blockdev"
	"gdb/compute/decoder"
	"gdb/compute/kernel"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/train/ivf"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
	"gdb/train/runs/vectors"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/errors/oserror"
)

// IndexType is the type of an index of vectors in its record.
const IndexType = "vectors"

// path returns the path of the file of the index, relative to the store.
func pathOf(o triples.VectorsOf) string {
	h := fnv.New64a()
	h.Write([]byte(o.String()))
	return fmt.Sprintf("%s/vectors-%016x.ivf", layout.PrepDir, h.Sum64())
}

// Vectors are vectors of nodes, with their index. Any goroutine may use them.
type Vectors struct {
	of     triples.VectorsOf
	store  *layout.Store
	dev    blockdev.Device
	budget *mem.Budget
	pool   *kernel.Pool
	rows   source
	meta   kv.IndexMeta
	index  *ivf.Index // nil without
	// deleted are nodes that are no answers; nil for none.
	deleted *roaring.Bitmap
	why     string // why an index that exists is not used
}

// Open opens vectors, and their index if there is one that fits.
func Open(ctx context.Context, st *layout.Store, dev blockdev.Device, of triples.VectorsOf,
	budget *mem.Budget) (*Vectors, error) {
	v := &Vectors{of: of, store: st, dev: dev, budget: budget, pool: kernel.NewPool(1)}
	var err error
	if v.rows, err = openSource(ctx, st, dev, of, budget); err != nil {
		return nil, err
	}
	if v.deleted, err = st.Deleted(ctx); err == nil {
		err = v.openIndex(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// openIndex opens the index, or finds out why it is not used.
func (v *Vectors) openIndex(ctx context.Context) error {
	all, err := v.store.Catalog().Indexes(ctx)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.Type != IndexType || m.Name() != v.of.String() {
			continue
		}
		v.meta = m
		if v.why = staleOf(m, v.store, v.rows.tag()); v.why != "" {
			return nil
		}
		cache := m.Bytes
		if limit := v.budget.Limit(); limit > 0 {
			cache = min(cache, (limit-v.budget.Used())/cacheShare)
		}
		v.index, err = ivf.Open(ctx, ivf.Place{Store: v.store, Dev: v.dev, Path: m.Path, Of: m.Of},
			v.budget, cache)
		if oserror.IsNotExist(err) {
			v.why = "its file is gone"
			return nil
		}
		return v.advised(err)
	}
	return nil
}

// candidatesMost is the most candidates of a search.
const candidatesMost = 1 << 16

// cacheShare is the divisor of the memory that is left that gives the blocks of an index.
const cacheShare = 2

// Stale says why the index does not fit the vectors as they are now; "" if it does. It reads what
// the run is at.
func (v *Vectors) Stale() string { return Stale(v.meta, v.store) }

// Stale says why an index of vectors does not fit a store as it is open, and vectors as they are
// now; "" if it does.
func Stale(m kv.IndexMeta, st *layout.Store) string {
	run, learned := strings.CutPrefix(m.Property, "run ")
	if !learned || m.Snapshot != st.Meta().Snapshot {
		return staleOf(m, st, m.Of)
	}
	now, err := vectors.OpenRows(st, run)
	if err != nil {
		return err.Error()
	}
	if err := now.Close(); err != nil {
		return err.Error()
	}
	return staleOf(m, st, now.Tag)
}

// staleOf is Stale for vectors that have a tag now.
func staleOf(m kv.IndexMeta, st *layout.Store, tag string) string {
	if now := st.Meta().Snapshot; m.Snapshot != now {
		return fmt.Sprintf("it is of snapshot %d, and this is %d", m.Snapshot, now)
	}
	if tag != m.Of {
		return "the run was trained on since it was made"
	}
	return ""
}

// advised adds to the error of a damaged index what to do.
func (v *Vectors) advised(err error) error {
	if errors.Is(err, layout.ErrCorrupt) {
		return fmt.Errorf("index of %s: %w; %s makes it again", v.of, err, commandFor(v.of))
	}
	return err
}

// command returns the command that makes the index.
func commandFor(o triples.VectorsOf) string {
	if o.Run != "" {
		return message.Program + " index STORE vectors --run " + o.Run
	}
	return message.Program + " index STORE vectors --features " + o.Features
}

// Close closes the files and gives the memory back.
func (v *Vectors) Close() (err error) {
	if v.index != nil {
		err = v.index.Close()
	}
	return errors.Join(err, v.rows.Close())
}

// Closeness returns the way to compare that fits the vectors: that of the index, if there is one.
func (v *Vectors) Closeness() string { return cmp.Or(v.meta.By, v.rows.closeness()) }

// Index returns what is searched for n answers by a way to compare; "" if there is no index that
// can be used, and then why an index that exists is not used.
func (v *Vectors) Index(by string, n int) (what, why string) {
	switch {
	case v.index == nil && v.why != "":
		return "", v.why + "; " + commandFor(v.of) + " makes it again"
	case v.index == nil:
		return "", ""
	case by != v.meta.By:
		return "", "it is by " + v.meta.By
	case tuning(v.meta).Candidates(n) > candidatesMost:
		return "", fmt.Sprintf("%d answers want more than %d candidates", n, candidatesMost)
	}
	t := tuning(v.meta)
	return fmt.Sprintf("index of %s: %d of %d lists, %d candidates", v.of, t.Probes,
		v.index.Lists, t.Candidates(n)), ""
}

func tuning(m kv.IndexMeta) ivf.Tuning {
	return ivf.Tuning{Probes: m.Probes, Rerank: m.Rerank, Recall: m.Recall}
}

// Nearest returns the nodes whose vectors are closest to that of a node, the closest first, by the
// index, which Index must have named. The node itself is left out.
func (v *Vectors) Nearest(ctx context.Context, a triples.Nearest) ([]triples.Answer, error) {
	own := make([]float32, v.index.Dim)
	if err := v.rows.node(ctx, v.index, a.Node, own); err != nil {
		return nil, v.advised(err)
	}
	nodes, sums, err := v.candidates(ctx, a, own)
	if err != nil {
		return nil, v.advised(err)
	}
	once := min(scanRows, len(nodes))
	bytes := 4 * int64(once) * int64(v.index.Dim+1)
	if err := v.budget.Reserve("vectors of candidates", bytes); err != nil {
		return nil, err
	}
	defer v.budget.Release(bytes)
	best, rows, scores := rank.NewBest(a.Top), make([]float32, once*v.index.Dim),
		make([]float32, once)
	for lo := 0; lo < len(nodes); lo += once {
		hi := min(lo+once, len(nodes))
		some, to := nodes[lo:hi], rows[:(hi-lo)*v.index.Dim]
		if err := v.rows.gather(ctx, some, sums[lo:hi], to); err != nil {
			return nil, v.advised(err)
		}
		v.score(scores[:hi-lo], own, to, a.By)
		best.Block(scores[:hi-lo], func(i int) uint32 { return some[i] }, nil)
	}
	return best.Answers(), nil
}

// candidates returns nodes that may be among the answers. Where few nodes are allowed, more lists
// are looked at.
func (v *Vectors) candidates(ctx context.Context, a triples.Nearest,
	own []float32) (nodes, sums []uint32, err error) {
	t := tuning(v.meta)
	if a.Rerank > 0 {
		t.Rerank = a.Rerank
	}
	probes := cmp.Or(a.Probes, t.Probes)
	if a.Among != nil {
		share := float64(max(1, a.Allowed)) / float64(max(1, v.index.Vectors))
		probes = int(min(float64(v.index.Lists), math.Ceil(float64(probes)/share)))
	}
	found, err := v.index.Candidates(ctx, ivf.Query{Row: own, Probes: probes,
		Most: min(t.Candidates(a.Top), int(v.index.Vectors)),
		Allow: func(node uint32) bool {
			return v.allows(&a, node)
		}})
	for _, c := range found {
		nodes, sums = append(nodes, c.Node), append(sums, c.Sum)
	}
	return nodes, sums, err
}

// allows reports whether a node may be an answer.
func (v *Vectors) allows(a *triples.Nearest, node uint32) bool {
	return node != a.Node && (v.deleted == nil || !v.deleted.Contains(node)) &&
		(a.Among == nil || a.Among(node))
}

// score compares a vector with some rows.
func (v *Vectors) score(to, own, rows []float32, by string) {
	m := decoder.Matrices{Pool: v.pool, Measure: decoder.Dot, D: len(own)}
	if by == ivf.Euclid {
		m.Measure = decoder.Euclid
	}
	m.Scores(to, own, rows, 1, len(to))
	if by != ivf.Cosine {
		return
	}
	square := kernel.SquareSum(own)
	for i, s := range to {
		product := square * kernel.SquareSum(rows[i*len(own):][:len(own)])
		if to[i] = 0; product > 0 {
			to[i] = s / float32(math.Sqrt(float64(product)))
		}
	}
}

// scanRows is how many rows are compared together.
const scanRows = 4096

// Exact compares with the vectors of all nodes.
func (v *Vectors) Exact(ctx context.Context, a triples.Nearest) ([]triples.Answer, error) {
	count, dim := v.rows.shape()
	n := min(scanRows, count)
	bytes := 4 * int64(n) * int64(dim+1)
	if err := v.budget.Reserve("vectors that are compared", bytes); err != nil {
		return nil, err
	}
	defer v.budget.Release(bytes)
	own := make([]float32, dim)
	if err := v.rows.node(ctx, nil, a.Node, own); err != nil {
		return nil, err
	}
	best, scores := rank.NewBest(a.Top), make([]float32, n)
	err := v.rows.each(ctx, n, func(first int, rows []float32) error {
		some := scores[:len(rows)/dim]
		v.score(some, own, rows, a.By)
		for i := range some {
			node := uint32(first + i)
			if !v.allows(&a, node) {
				some[i] = float32(math.NaN()) // never among the best
			}
		}
		best.Block(some, func(i int) uint32 { return uint32(first + i) }, nil)
		return ctx.Err()
	})
	return best.Answers(), err
}

// Drop takes the index of vectors away.
func Drop(ctx context.Context, st *layout.Store, of triples.VectorsOf) error {
	if err := st.Catalog().DropIndex(ctx, of.String()); err != nil {
		return err
	}
	path := st.Path(pathOf(of))
	if err := st.FS().Remove(path); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("remove %s: %w", path, files.Cause(err))
	}
	return nil
}
