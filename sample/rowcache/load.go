package rowcache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/rowfile"
)

const (
	// loadBytes is how much of a feature file is read together when it is loaded.
	loadBytes = 8 << 20
	// loaders is the number of goroutines that load: one reads while the other verifies and
	// converts.
	loaders = 2
	// preloadLeast is the least number of rows that are sorted in the order of the file together.
	preloadLeast = 1 << 10
)

// load calls part with consecutive parts of n rows of dim values, some of them at the same time.
func load(ctx context.Context, n, dim int,
	part func(ctx context.Context, first, n int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	step := int64(max(1, loadBytes/(4*dim)))
	var next atomic.Int64
	var work sync.WaitGroup
	for range loaders {
		work.Go(func() {
			defer bug.Catch()
			for ctx.Err() == nil {
				first := next.Add(step) - step
				if first >= int64(n) {
					return
				}
				if err := part(ctx, int(first), int(min(step, int64(n)-first))); err != nil {
					cancel(err)
				}
			}
		})
	}
	work.Wait()
	return context.Cause(ctx)
}

// preload fills the first slots with the rows of nodes: before it returns or, if there is a
// sweeper, in the background.
func (f *Cache) preload(ctx context.Context, nodes []layout.NodeID, sweeper *rowfile.Reader) error {
	mark := uint32(0)
	if sweeper != nil {
		mark = slotPending
	}
	for s, v := range nodes {
		if _, twice := f.mu.index.Find(v); twice {
			return fmt.Errorf("node %d stands twice in the list of rows to load", v)
		}
		f.mu.index.Put(v, uint32(s)|mark)
		f.mu.held[s] = v
	}
	f.mu.used = len(nodes)
	if len(nodes) == 0 {
		return nil
	}
	if sweeper != nil {
		f.beginBackground(sweeper, nodes)
		return nil
	}
	stop := f.arena.Populate()
	defer stop()
	return f.loadAll(nodes, func(keys []uint64) error { return f.loadKeys(ctx, keys) })
}

// loadAll calls load with keys of nodes, node<<32 | slot, sorted in the order of the file, so that
// neighboring rows are read together. It sorts all keys together if there is memory for 8 bytes per
// row, else some at a time.
func (f *Cache) loadAll(nodes []layout.NodeID, load func(keys []uint64) error) error {
	held := mem.NewAccount(f.budget, "rows to load")
	defer held.Release()
	part := len(nodes)
	for {
		err := held.AtLeast(8 * int64(part))
		if err == nil {
			break
		}
		if part <= preloadLeast {
			return err
		}
		part = max(preloadLeast, part/2)
	}
	keys := make([]uint64, 0, part)
	for first := 0; first < len(nodes); first += part {
		keys = keys[:0]
		for s, v := range nodes[first:min(first+part, len(nodes))] {
			keys = append(keys, uint64(v)<<32|uint64(first+s))
		}
		pace.RadixSort(keys)
		if err := load(keys); err != nil {
			return err
		}
	}
	return nil
}

// loadKeys reads the rows of nodes to slots. A key is node<<32 | slot; keys ascend.
func (f *Cache) loadKeys(ctx context.Context, keys []uint64) error {
	return load(ctx, len(keys), f.dim, func(ctx context.Context, first, n int) error {
		nodes, slots := make([]layout.NodeID, n), make([]uint32, n)
		for i, k := range keys[first : first+n] {
			nodes[i], slots[i] = layout.NodeID(k>>32), uint32(k)
		}
		return f.rows.GatherParts(ctx, nodes, slots, f.values, nil)
	})
}

// background fills a cache while rows are already gathered from it. Its slots begin as pending.
// Whoever has a slot's row first, a gather that missed it or the pass over the file, copies it
// there.
type background struct {
	cancel context.CancelFunc
	done   chan struct{} // closed once err is set
	err    error
}

// beginBackground starts a goroutine that fills pending slots with the rows of nodes, read in the
// order of the file.
func (f *Cache) beginBackground(rows *rowfile.Reader, nodes []layout.NodeID) {
	ctx, cancel := context.WithCancel(context.Background())
	b := &background{cancel: cancel, done: make(chan struct{})}
	f.background = b
	go func() {
		defer bug.Catch()
		defer close(b.done)
		b.err = f.loadAll(nodes, func(keys []uint64) error {
			return rows.Sweep(ctx, keys, nil, func(slot uint32, row []byte) error {
				return f.settle(slot, row, rows.Decode)
			})
		})
	}()
}

// settle copies a row to its slot, if the slot is still pending.
func (f *Cache) settle(slot uint32, row []byte, decode func([]float32, []byte) error) error {
	f.content.RLock()
	defer f.content.RUnlock()
	f.filling.Lock()
	defer f.filling.Unlock()
	f.mu.Lock()
	v := f.mu.held[slot]
	s, ok := f.mu.index.Find(v)
	f.mu.Unlock()
	if !ok || s != slot|slotPending {
		return nil
	}
	to := int(slot) * f.dim
	if err := decode(f.values[to:to+f.dim], row); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.index.Fill(v, slot)
	return nil
}

// failed returns the error of loading rows, if loading has ended with one. A nil background has
// none.
func (b *background) failed() error {
	if b == nil {
		return nil
	}
	select {
	case <-b.done:
	default:
		return nil
	}
	if b.err != nil {
		return fmt.Errorf("sample: load feature cache: %w", b.err)
	}
	return nil
}

// stop stops the loading and waits for it. It does nothing for a nil background.
func (b *background) stop() {
	if b != nil {
		b.cancel()
		<-b.done
	}
}
