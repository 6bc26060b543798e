package nearest

import (
	"context"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/train/ivf"
	"gdb/train/link/triples"

	"github.com/RoaringBitmap/roaring/v2"
)

// Options say which index is made.
type Options struct {
	Of      triples.VectorsOf
	By      string // one of vectors.Closenesses, or "" for what fits the vectors
	Recall  float64
	Threads int
	Seed    uint64
	Budget  *mem.Budget
	// Progress, if not nil, is called with what is under way and the share that is done.
	Progress func(stage string, share float64)
}

// Build makes the index of vectors, or makes it again, and records it in the catalog.
func Build(ctx context.Context, st *layout.Store, dev blockdev.Device, opt Options) (m kv.IndexMeta,
	err error) {
	rows, err := openSource(ctx, st, dev, opt.Of, opt.Budget)
	if err != nil {
		return m, err
	}
	defer func() {
		if err2 := rows.Close(); err == nil {
			err = err2
		}
	}()
	tag := rows.tag()
	if opt.By == "" {
		opt.By = rows.closeness()
	}
	deleted, err := st.Deleted(ctx)
	if err != nil {
		return m, err
	}
	_, sums := rows.(*learned)
	made, err := ivf.Build(ctx, there(rows, deleted), ivf.Options{Budget: opt.Budget,
		Place: ivf.Place{Store: st, Dev: dev, Path: pathOf(opt.Of), Of: tag}, By: opt.By,
		Recall: opt.Recall, Sums: sums, Threads: opt.Threads, Seed: opt.Seed,
		Progress: opt.Progress})
	if err != nil {
		return m, err
	}
	m = kv.IndexMeta{Property: opt.Of.String(), Type: IndexType, Snapshot: st.Meta().Snapshot,
		Created: time.Now().UTC().Truncate(time.Second), Path: pathOf(opt.Of), Bytes: made.Bytes,
		Values: made.Vectors, Of: tag, By: opt.By, Lists: made.Lists, Probes: made.Probes,
		Rerank: made.Rerank, Recall: made.Recall}
	return m, st.Catalog().PutIndex(ctx, m)
}

// there returns the vectors of the nodes that were not deleted; deleted may be nil.
func there(rows source, deleted *roaring.Bitmap) ivf.Rows {
	if deleted == nil {
		deleted = roaring.New()
	}
	count, dim := rows.shape()
	r := ivf.Rows{Count: count - int(deleted.GetCardinality()), Dim: dim}
	r.Each = func(ctx context.Context, fn func(nodes []uint32, rows []float32) error) error {
		var nodes []uint32
		var kept []float32
		return rows.each(ctx, scanRows, func(first int, rows []float32) error {
			nodes, kept = nodes[:0], kept[:0]
			for i := range len(rows) / dim {
				if node := uint32(first + i); !deleted.Contains(node) {
					nodes = append(nodes, node)
				}
			}
			if len(nodes) == len(rows)/dim {
				return fn(nodes, rows)
			}
			for _, node := range nodes {
				kept = append(kept, rows[(int(node)-first)*dim:][:dim]...)
			}
			return fn(nodes, kept)
		})
	}
	return r
}
