package rowcache

import (
	"context"
	"fmt"

	"gdb/internal/bug"
	"gdb/layout"
	"gdb/layout/rowfile"
)

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
