package train

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/kv"
	"gdb/sample"
	"gdb/sample/superbatch"
	"gdb/train/backend"
)

// clocked does something some times, and returns the middle one of what it took.
func clocked(rounds int, do func() error) (work, error) {
	var all []work
	for range rounds {
		cpu, begun := cpuTime(), time.Now()
		if err := do(); err != nil {
			return work{}, err
		}
		all = append(all, work{time.Since(begun).Seconds(), (cpuTime() - cpu).Seconds()})
	}
	return middle(all), nil
}

// middle is the one that half of all take no longer than.
func middle(all []work) work {
	slices.SortFunc(all, func(a, b work) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return all[len(all)/2]
}

// coresHad is how many cores the process gets of those there are, while others use some.
func coresHad() float64 {
	const spin = 30 * time.Millisecond
	w, _ := clocked(1, func() error { // which cannot fail
		var all sync.WaitGroup
		for range runtime.NumCPU() {
			all.Go(func() {
				defer bug.Catch()
				for begun := time.Now(); time.Since(begun) < spin; {
				}
			})
		}
		all.Wait()
		return nil
	})
	return min(max(w.demand(), 1e-2), float64(runtime.NumCPU()))
}

// measureProducts times a matrix product by all threads.
func (t *trainer) measureProducts(_ context.Context, p *Profile) error {
	const m, k, n, rounds = 2048, 256, 256, 4
	if err := t.be.Begin(); err != nil {
		return err
	}
	var x [3]backend.Tensor
	for i, shape := range [][2]int{{m, k}, {k, n}, {m, n}} {
		var err error
		if x[i], err = t.be.Scratch(shape[0], shape[1]); err != nil {
			return err
		}
		t.be.Zero(x[i])
	}
	w, err := clocked(rounds, func() error {
		t.be.MatMul(x[2], x[0], x[1], false)
		return nil
	})
	p.GFLOPS = 2 * m * k * n / (1e9 * w.Seconds)
	return err
}

const (
	// copiedBytes is the memory with which rows are copied to time that, if there is room: more
	// than the caches of most processors. It is copiedShare of what is free at most.
	copiedBytes, copiedShare = 96 << 20, 4
	// copiedMost are enough of narrow rows.
	copiedMost = 1 << 17
)

// measureRows times what training does with rows that are in memory, by the code that does it.
func (t *trainer) measureRows(ctx context.Context, p *Profile) (err error) {
	dim, threads := t.in.rows.Meta().Dim, ioThreads(t.cfg.Threads)
	free := (t.in.budget.Limit() - t.in.budget.Used()) / copiedShare
	rows, policy := int(min(copiedBytes, free)/4)/(4*dim), sample.NewLRU()
	n := max(1, min(copiedMost, 3*rows))
	m := &rowMeter{rows: blankRows{dim}, nodes: make([]sample.NodeID, n)}
	out, err := mem.NewArena(t.in.budget, "copies of rows", 4*int64(max(1, min(rows, n))*dim))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Free()) }()
	m.out = mem.View[float32](out.Bytes())
	all, err := sample.NewResident(ctx, m.rows, uint64(n), threads, t.in.budget)
	if err != nil {
		return err
	}
	m.shuffle(0, 1)
	p.Copy, err = m.gather(ctx, all, profileRounds)
	if err = errors.Join(err, all.Close()); err != nil {
		return err
	}
	cache, err := sample.NewCached(ctx, m.rows, policy, sample.CacheOptions{Threads: threads,
		Bytes: sample.CacheBytes(n, dim, policy.SlotBytes()), Budget: t.in.budget})
	if err != nil {
		return err
	}
	for round := range uint64(profileRounds) { // the first fills the cache
		m.shuffle(round*uint64(n), round)
		if err == nil {
			p.Miss, err = m.gather(ctx, cache, 1)
		}
	}
	m.shuffle((profileRounds-1)*uint64(n), profileRounds)
	if err == nil {
		p.Hit, err = m.gather(ctx, cache, profileRounds)
	}
	return errors.Join(err, cache.Close())
}

// rowMeter times gathering nodes.
type rowMeter struct {
	rows  sample.Rows
	nodes []sample.NodeID
	out   []float32
}

// shuffle takes the nodes from the first on, in an order of its own.
func (m *rowMeter) shuffle(first, key uint64) {
	draw := rng.NewPermutation(uint64(len(m.nodes)), key)
	for i := range m.nodes {
		m.nodes[i] = sample.NodeID(first + draw.At(uint64(i)))
	}
}

// gather is what a node takes.
func (m *rowMeter) gather(ctx context.Context, f sample.Features, rounds int) (work, error) {
	w, err := clocked(rounds, func() error {
		for part := range slices.Chunk(m.nodes, len(m.out)/f.Dim()) {
			if err := f.Gather(ctx, part, m.out[:len(part)*f.Dim()]); err != nil {
				return err
			}
		}
		return nil
	})
	return w.times(1 / float64(len(m.nodes))), err
}

// blankRows are rows that are read in no time.
type blankRows struct{ dim int }

// Meta describes them.
func (r blankRows) Meta() kv.RowsMeta { return kv.RowsMeta{Name: "blank", Dim: r.dim} }

// Gather leaves the rows as they are.
func (blankRows) Gather(context.Context, []sample.NodeID, []uint32, []float32) error { return nil }

// Scan writes values: memory that was never written to is copied faster.
func (blankRows) Scan(_ context.Context, _ sample.NodeID, _ int, out []float32) error {
	for i := range out {
		out[i] = 1
	}
	return nil
}

// BytesRead is 0.
func (blankRows) BytesRead() uint64 { return 0 }

// measureDeciding times the planning of a superbatch.
func (t *trainer) measureDeciding(ctx context.Context, p *Profile) error {
	const nodes, batches, size, slots = 1 << 17, 16, 1 << 13, 1 << 15
	all := make([][]sample.NodeID, batches)
	for i := range all {
		draw := rng.NewPermutation(nodes, uint64(i))
		for k := range uint64(size) {
			all[i] = append(all[i], sample.NodeID(draw.At(k)))
		}
	}
	w, err := clocked(profileRounds, func() error {
		_, err := superbatch.Rehearse(ctx, all, nodes, slots, 1, t.in.budget)
		return err
	})
	p.Decide = w.times(1 / float64(batches*size))
	return err
}

const (
	// stepRounds are run to time a step at least, and up to stepMost until they took stepTime.
	stepRounds, stepMost = 3, 9
	stepTime             = 500 * time.Millisecond
	// tableMost is the memory of a cache whose rows a step reads in place when it is timed.
	tableMost = 256 << 20
	// pageFloats are those of a page of memory.
	pageFloats = 4096 / 4
)

// timeStep is what a training step on a sampled batch takes, with all that training does. If rows
// are used in place they are anywhere in memory. The weights are not what they were then.
func (t *trainer) timeStep(ctx context.Context, d *sample.Dense, inPlace bool) (w work, err error) {
	dim, rows := t.dims[0], len(d.NodeIDs)
	seeds := d.NodeIDs[d.NodeIDOffsets[d.Layers()]:]
	b := &sample.Batch{Dense: *d, Dim: dim, Seeds: seeds}
	if t.in.multi {
		b.Multi = make([]float32, len(seeds)*t.in.classes)
	} else {
		b.Labels = make([]int32, len(seeds))
	}
	if inPlace {
		a, err := t.placeRows(b)
		if err != nil {
			return w, err
		}
		defer func() { err = errors.Join(err, a.Free()) }()
		rows -= int(d.NodeIDOffsets[1])
	}
	a, err := mem.NewArena(t.in.budget, "features of a batch", 4*int64(rows*dim))
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, a.Free(), t.be.Trim()) }()
	b.X = mem.View[float32](a.Bytes())
	sums, rate := t.pos.Sums, t.opt.rate
	t.model.Params().Init(t.be, t.cfg.Seed)
	t.opt.rate = 0 // no step leads to another
	w, err = t.timeSteps(b)
	t.pos.Sums, t.opt.rate = sums, rate
	t.opt.reset()
	return w, errors.Join(err, ctx.Err())
}

// timeSteps is the middle one of some steps. The first finds its memory new.
func (t *trainer) timeSteps(b *sample.Batch) (work, error) {
	var all []work
	for begun := time.Now(); len(all) < 1+stepRounds ||
		len(all) < stepMost && time.Since(begun) < stepTime; {
		for i := range b.X { // a step leaves its own results there
			b.X[i] = 1
		}
		w, err := clocked(1, func() error {
			_, err := t.step(b)
			return err
		})
		if err != nil {
			return w, err
		}
		all = append(all, w)
	}
	return middle(all[1:]), nil
}

// placeRows gives the rows of a batch places in a table, in no order.
func (t *trainer) placeRows(b *sample.Batch) (*mem.Arena, error) {
	row := 4 * int64(b.Dim)
	free := t.in.budget.Limit() - t.in.budget.Used()
	rows := max(1, min(tableMost, free/copiedShare)/row)
	a, err := mem.NewArena(t.in.budget, "rows of a table", rows*row)
	if err != nil {
		return nil, err
	}
	b.Table = mem.View[float32](a.Bytes())
	for i := 0; i < len(b.Table); i += pageFloats { // what was never written to is read faster
		b.Table[i] = 1
	}
	for _, r := range b.Dense.ReprMap {
		b.TableRows = append(b.TableRows, uint32(rng.Key(uint64(r))%uint64(rows)))
	}
	return a, nil
}
