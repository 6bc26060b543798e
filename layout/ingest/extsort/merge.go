package extsort

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
)

const (
	// batchWords is the size of the batches that Merge delivers: they stay in the L2 cache.
	batchWords = 12 << 10 // a multiple of every width
	// batches bounds how far the merge may run ahead of its consumer.
	batches = 4
)

const _ uint = -(batchWords % (2 * 3 * 4)) // a batch holds whole records of any width

// FanIn is the number of runs that may be merged at once in memory bytes.
func FanIn(memory int64, blockBytes int) int {
	if blockBytes == 0 {
		blockBytes = DefaultBlockBytes
	}
	return int(max(2, (memory-batches*batchWords*8)/int64(blockBytes)))
}

// Merge calls fn with all records of the runs in order, in batches that are valid during the call.
// The merge itself goes on in a goroutine while fn works. Options are those the runs were made
// with; Memory bounds the block buffers. If there are more runs than fit, they are first merged to
// longer ones, at PREFIX-m0.run, ….
func Merge(ctx context.Context, opt Options, runs []Run, fn func(words []uint64) error) error {
	opt.ensureDefaults()
	runs, err := reduce(ctx, opt, runs)
	if err != nil {
		return err
	}
	return mergeOnce(ctx, opt, runs, fn)
}

// reduce merges runs until they can be merged at once. The runs that it was given stay; those
// that it made itself and needs no more are removed.
func reduce(ctx context.Context, opt Options, runs []Run) ([]Run, error) {
	fan, made := FanIn(opt.Memory, opt.BlockBytes), 0
	ours := map[string]bool{}
	for len(runs) > fan {
		// Merge no more than needed: what is left is merged once only.
		n := min(fan, len(runs)-fan+1)
		group := runs[:n]
		w, err := newRunWriter(&opt, fmt.Sprintf("%s-m%d.run", opt.Prefix, made))
		if err != nil {
			return nil, err
		}
		err = mergeOnce(ctx, opt, group, func(words []uint64) error {
			return w.words(words, opt.Width)
		})
		run, err2 := w.finish()
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		made++
		for _, r := range group {
			if ours[r.Name] {
				if err := opt.Remove(r); err != nil {
					return nil, err
				}
			}
		}
		ours[run.Name] = true
		runs = append(append([]Run{}, runs[n:]...), run)
	}
	return runs, nil
}

func mergeOnce(ctx context.Context, opt Options, runs []Run, fn func([]uint64) error) error {
	switch opt.Width {
	case 1:
		return mergeShaped[[1]uint64](ctx, opt, runs, fn)
	case 2:
		return mergeShaped[[2]uint64](ctx, opt, runs, fn)
	case 3:
		return mergeShaped[[3]uint64](ctx, opt, runs, fn)
	}
	return mergeShaped[[4]uint64](ctx, opt, runs, fn)
}

// mergeShaped runs the merge in a goroutine and fn in the caller's.
func mergeShaped[R record](ctx context.Context, opt Options, runs []Run,
	fn func([]uint64) error) error {
	m, err := newMerger[R](opt, runs)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	full, free := make(chan []R, batches), make(chan []R, batches)
	var zero R
	for range batches {
		free <- make([]R, 0, batchWords/len(zero))
	}
	var mergeErr error
	go func() {
		defer close(full)
		mergeErr = m.all(ctx, full, free)
	}()
	for b := range full {
		if err == nil {
			if err = fn(flat(b)); err != nil {
				cancel()
			}
		}
		free <- b[:0]
	}
	cancel()
	if err == nil {
		err = mergeErr
	}
	return errors.Join(err, m.close())
}

// merger is a tree of losers over the runs: inner[0] is the run with the least record, and
// inner[i] the loser of the match at node i.
type merger[R record] struct {
	blocks  *mem.Arena
	readers []*runReader
	heads   []R // the next record of each run
	rest    [][]R
	live    []bool
	inner   []int32
}

func newMerger[R record](opt Options, runs []Run) (*merger[R], error) {
	m := &merger[R]{heads: make([]R, len(runs)), rest: make([][]R, len(runs)),
		live: make([]bool, len(runs)), inner: make([]int32, len(runs))}
	var err error
	if m.blocks, err = blockArena(&opt, len(runs)); err != nil {
		return nil, err
	}
	for i, run := range runs {
		r, err := openRun(&opt, run, blockOf(m.blocks, &opt, i))
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		m.readers = append(m.readers, r)
	}
	for i := range runs {
		if err := m.advance(int32(i)); err != nil {
			return nil, errors.Join(err, m.close())
		}
	}
	return m, nil
}

func (m *merger[R]) close() error {
	var errs []error
	for _, r := range m.readers {
		errs = append(errs, r.close())
	}
	return errors.Join(append(errs, m.blocks.Free())...)
}

// advance takes the next record of a run to its head.
func (m *merger[R]) advance(i int32) error {
	if rest := m.rest[i]; len(rest) > 0 {
		m.heads[i], m.rest[i] = rest[0], rest[1:]
		return nil
	}
	return m.refill(i)
}

func (m *merger[R]) refill(i int32) error {
	r := m.readers[i]
	block, err := r.next()
	if err != nil {
		return err
	}
	recs := shaped[R](mem.View[uint64](block))
	if len(flat(recs))*8 != len(block) || block != nil && len(recs) == 0 {
		return r.damaged("a record is cut off")
	}
	r.records += uint64(len(recs))
	if m.live[i] = len(recs) > 0; m.live[i] {
		m.heads[i], m.rest[i] = recs[0], recs[1:]
	}
	return nil
}

// before says whether run a delivers before run b.
func (m *merger[R]) before(a, b int32) bool {
	if !m.live[a] || !m.live[b] {
		return m.live[a] && !m.live[b] || m.live[a] == m.live[b] && a < b
	}
	return less(m.heads[a], m.heads[b])
}

func less[R record](x, y R) bool {
	for k := 0; k < len(x); k++ {
		if x[k] != y[k] {
			return x[k] < y[k]
		}
	}
	return false
}

// all merges to the end.
func (m *merger[R]) all(ctx context.Context, full chan<- []R, free <-chan []R) error {
	if len(m.readers) == 0 {
		return nil
	}
	m.inner[0] = m.build(1)
	out := <-free
	for w := m.inner[0]; m.live[w]; w = m.inner[0] {
		out = append(out, m.heads[w])
		if len(out) == cap(out) {
			full <- out
			if err := ctx.Err(); err != nil {
				return err
			}
			out = <-free
		}
		if err := m.advance(w); err != nil {
			return err
		}
		m.replay(w)
	}
	if len(out) > 0 {
		full <- out
	}
	return nil
}

// build plays the matches below a node and returns the winner; leaves are the nodes from
// len(readers) on.
func (m *merger[R]) build(node int) int32 {
	n := len(m.readers)
	if node >= n {
		return int32(node - n)
	}
	a, b := m.build(2*node), m.build(2*node+1)
	if m.before(b, a) {
		a, b = b, a
	}
	m.inner[node] = b
	return a
}

// replay plays the matches of the last winner again, up to the root.
func (m *merger[R]) replay(w int32) {
	for node := (int(w) + len(m.readers)) / 2; node > 0; node /= 2 {
		if m.before(m.inner[node], w) {
			w, m.inner[node] = m.inner[node], w
		}
	}
	m.inner[0] = w
}
