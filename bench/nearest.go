package bench

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"gdb/blockdev"
	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout"
	"gdb/train/link/triples"
	"gdb/train/nearest"
)

// NearestOptions configure the benchmark of an index of vectors.
type NearestOptions struct {
	Store  *layout.Store
	Device blockdev.Device
	Budget *mem.Budget
	Of     triples.VectorsOf
	// Top is the number of answers. Default 10.
	Top int
	// Queries is how many random nodes are asked for, and Exact for how many of them the answers
	// are compared with those among all vectors. Default 2000, and 20.
	Queries, Exact int
	// Probes and Rerank change what is looked at; 0 for what the index was measured to need.
	Probes, Rerank int
	// Threads is how many ask at a time. Default 1.
	Threads int
	Seed    uint64
}

// Nearest measures searches by an index: how many a second, by the clock and by CPU time, and which
// share of the true answers they find. All queries are asked once before, so that blocks of the
// index are in memory as far as they fit.
func Nearest(ctx context.Context, opt NearestOptions) (_ *Report, err error) {
	opt.Top, opt.Queries = cmp.Or(opt.Top, 10), cmp.Or(opt.Queries, 2000)
	opt.Exact, opt.Threads = cmp.Or(opt.Exact, 20), max(1, opt.Threads)
	v, err := nearest.Open(ctx, opt.Store, opt.Device, opt.Of, opt.Budget)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	what, why := v.Index(v.Closeness(), opt.Top)
	if what == "" {
		return nil, optionErrorf("bench: nearest: %s has no index that can be used%s", opt.Of,
			cmp.Or(why, ": make one with the command index"))
	}
	nodes, err := queried(ctx, opt.Store, opt.Queries, opt.Seed)
	if err != nil {
		return nil, err
	}
	opt.Queries = len(nodes)
	ask := func(i int) triples.Nearest {
		return triples.Nearest{Node: nodes[i], By: v.Closeness(), Top: opt.Top,
			Probes: opt.Probes, Rerank: opt.Rerank}
	}
	if err := opt.all(ctx, v, ask); err != nil {
		return nil, err
	}
	begun, cpu, reads := time.Now(), processCPU(), opt.Device.Stats()
	if err := opt.all(ctx, v, ask); err != nil {
		return nil, err
	}
	seconds, used, after := time.Since(begun).Seconds(), processCPU()-cpu, opt.Device.Stats()
	recall, err := opt.recall(ctx, v, ask)
	if err != nil {
		return nil, err
	}
	n := float64(opt.Queries)
	r := newReport("nearest", "vectors", "queries", "threads", "queries_per_s",
		"queries_per_cpu_s", "recall", "reads_per_query", "read_bytes_per_query")
	r.Rows = append(r.Rows, Row{"vectors": opt.Of.String(), "queries": opt.Queries,
		"threads": opt.Threads, "queries_per_s": n / seconds,
		"queries_per_cpu_s": n / used.Seconds(), "recall": recall,
		"reads_per_query":      float64(after.Reads-reads.Reads) / n,
		"read_bytes_per_query": float64(after.Bytes-reads.Bytes) / n})
	r.Notes = append(r.Notes, what)
	return r, nil
}

// queried draws some nodes that were not deleted.
func queried(ctx context.Context, st *layout.Store, most int, seed uint64) ([]uint32, error) {
	deleted, err := st.Deleted(ctx)
	if err != nil {
		return nil, err
	}
	var nodes []uint32
	all := rng.NewPermutation(st.Meta().Nodes, rng.Key(seed, 99))
	for i := uint64(0); i < st.Meta().Nodes && len(nodes) < most; i++ {
		if v := uint32(all.At(i)); deleted == nil || !deleted.Contains(v) {
			nodes = append(nodes, v)
		}
	}
	return nodes, nil
}

// all asks all queries.
func (o *NearestOptions) all(ctx context.Context, v *nearest.Vectors,
	ask func(i int) triples.Nearest) error {
	errs := make([]error, o.Threads)
	var all sync.WaitGroup
	for t := range o.Threads {
		all.Add(1)
		go func() {
			defer bug.Catch()
			defer all.Done()
			for i := t; i < o.Queries && errs[t] == nil; i += o.Threads {
				_, errs[t] = v.Nearest(ctx, ask(i))
			}
		}()
	}
	all.Wait()
	return errors.Join(errs...)
}

// recall returns which share of the true answers is found.
func (o *NearestOptions) recall(ctx context.Context, v *nearest.Vectors,
	ask func(i int) triples.Nearest) (float64, error) {
	found, all := 0, 0
	for i := range min(o.Exact, o.Queries) {
		want, err := v.Exact(ctx, ask(i))
		if err != nil {
			return 0, err
		}
		got, err := v.Nearest(ctx, ask(i))
		if err != nil {
			return 0, err
		}
		has := map[uint32]bool{}
		for _, a := range got {
			has[a.Entity] = true
		}
		for _, a := range want {
			all++
			if has[a.Entity] {
				found++
			}
		}
	}
	return float64(found) / float64(max(1, all)), nil
}
