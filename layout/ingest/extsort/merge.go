package extsort

import (
	"context"
	"errors"
	"math"

	"gdb/internal/bug"
	"gdb/internal/mem"
)

const (
	// batchWords is the size of the batches that Merge delivers: they stay in the L2 cache.
	batchWords = 100 * 120 // a multiple of every width
	// batches bounds how far the merge may run ahead of its consumer.
	batches = 4
)

const _ uint = -(batchWords % (3 * 4 * 5)) // a batch holds whole records of any width

// fanIn returns how many runs may be merged at once in memory bytes.
func fanIn(memory int64, blockBytes int) int {
	return int(max(2, (memory-batches*batchWords*8)/int64(blockBytes)))
}

// Merge calls fn with all records of the runs in order, in batches that are valid during the call.
// The merge itself goes on in a goroutine while fn works. Options are those the runs were made
// with; Memory bounds the block buffers. If there are more runs than fit, they are first merged to
// longer ones, at PREFIX-m0.run, ….
func Merge(ctx context.Context, opt Options, runs []Run, fn func(words []uint64) error) error {
	opt.ensureDefaults()
	runs, made, err := reduce(opt, runs, func(group []Run, w *RunWriter) error {
		return mergeOnce(ctx, opt, group, func(words []uint64) error {
			return w.words(words, opt.Width)
		})
	})
	if err == nil {
		err = mergeOnce(ctx, opt, runs, fn)
	}
	for _, run := range made {
		err = errors.Join(err, opt.Remove(run))
	}
	return err
}

func mergeOnce(ctx context.Context, opt Options, runs []Run, fn func([]uint64) error) error {
	switch opt.Width {
	case 1:
		return mergeShaped[[1]uint64](ctx, opt, runs, fn)
	case 2:
		return mergeShaped[[2]uint64](ctx, opt, runs, fn)
	case 3:
		return mergeShaped[[3]uint64](ctx, opt, runs, fn)
	case 4:
		return mergeShaped[[4]uint64](ctx, opt, runs, fn)
	}
	return mergeShaped[[5]uint64](ctx, opt, runs, fn)
}

// mergeShaped runs the merge in a goroutine and fn in the caller's.
func mergeShaped[R record](ctx context.Context, opt Options, runs []Run,
	fn func([]uint64) error) error {
	m := &merger[R]{records: make([][]R, len(runs)), nodes: make([]match, len(runs))}
	err := m.open(&opt, runs)
	if err != nil {
		return errors.Join(err, m.close())
	}
	ctx, cancel := context.WithCancel(ctx)
	full, free := make(chan []R, batches), make(chan []R, batches)
	var zero R
	for range batches {
		free <- make([]R, 0, batchWords/len(zero))
	}
	var mergeErr error
	go func() {
		defer bug.Catch()
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

// merger is a tree of losers over the runs: nodes[0] holds the run with the least record, and
// nodes[i] the loser of the match at node i.
type merger[R record] struct {
	openRuns
	records [][]R // what is left of each run's block, its next record first
	nodes   []match
}

// match is a run with the first word of its next record; that mostly decides, and is kept here so
// that a match touches one place in memory. Of a run that has ended, done is 1 and the word is
// above all others.
type match struct {
	key  uint64
	run  int32
	done int32
}

// next returns a match of a run with the record after the one that was delivered.
func (m *merger[R]) next(run int32) (match, error) {
	if rest := m.records[run]; len(rest) > 1 {
		m.records[run] = rest[1:]
		return match{key: rest[1][0], run: run}, nil
	}
	return m.refill(run)
}

func (m *merger[R]) refill(run int32) (match, error) {
	r := m.readers[run]
	block, err := r.next()
	if err != nil {
		return match{}, err
	}
	recs := shaped[R](mem.View[uint64](block))
	if len(flat(recs))*8 != len(block) || block != nil && len(recs) == 0 {
		return match{}, r.damaged("a record is cut off")
	}
	r.records += uint64(len(recs))
	m.records[run] = recs
	if len(recs) == 0 {
		return match{key: math.MaxUint64, run: run, done: 1}, nil
	}
	return match{key: recs[0][0], run: run}, nil
}

// before reports whether x comes before y.
func (m *merger[R]) before(x, y match) bool {
	if x.key != y.key {
		return x.key < y.key
	}
	return m.beforeRest(x, y)
}

// beforeRest decides between records with the same first word.
func (m *merger[R]) beforeRest(x, y match) bool {
	if x.done != y.done {
		return x.done < y.done
	}
	if x.done == 1 {
		return false
	}
	a, b := &m.records[x.run][0], &m.records[y.run][0]
	for k := 1; k < len(*a); k++ {
		if (*a)[k] != (*b)[k] {
			return (*a)[k] < (*b)[k]
		}
	}
	return false
}

// all merges to the end.
func (m *merger[R]) all(ctx context.Context, full chan<- []R, free <-chan []R) (err error) {
	if len(m.readers) == 0 {
		return nil
	}
	if m.nodes[0], err = m.build(1); err != nil {
		return err
	}
	out := <-free
	for m.nodes[0].done == 0 {
		out = append(out, m.records[m.nodes[0].run][0])
		if len(out) == cap(out) {
			full <- out
			if err := ctx.Err(); err != nil {
				return err
			}
			out = <-free
		}
		w, err := m.next(m.nodes[0].run)
		if err != nil {
			return err
		}
		// Play the matches of this run again, up to the root.
		for at := (int(w.run) + len(m.nodes)) / 2; at > 0; at /= 2 {
			if n := &m.nodes[at]; m.before(*n, w) {
				w, *n = *n, w
			}
		}
		m.nodes[0] = w
	}
	if len(out) > 0 {
		full <- out
	}
	return nil
}

// build plays the matches below a node and returns the winner; leaves are the nodes from
// len(readers) on.
func (m *merger[R]) build(at int) (match, error) {
	if at >= len(m.nodes) {
		return m.next(int32(at - len(m.nodes)))
	}
	a, err := m.build(2 * at)
	if err != nil {
		return a, err
	}
	b, err := m.build(2*at + 1)
	if err == nil && m.before(b, a) {
		a, b = b, a
	}
	m.nodes[at] = b
	return a, err
}
