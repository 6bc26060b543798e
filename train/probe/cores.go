package probe

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
	"gdb/sample/rowcache"
	"gdb/sample/superbatch"
	"gdb/train/plan"
)

// Clocked runs do a number of times and returns the round of median duration.
func Clocked(rounds int, do func() error) (plan.Work, error) {
	var all []plan.Work
	for range rounds {
		cpu, begun := cpuTime(), time.Now()
		if err := do(); err != nil {
			return plan.Work{}, err
		}
		all = append(all, plan.Work{Seconds: time.Since(begun).Seconds(),
			CPU: (cpuTime() - cpu).Seconds()})
	}
	return Middle(all), nil
}

// Middle returns the work of median duration. It sorts all.
func Middle(all []plan.Work) plan.Work {
	slices.SortFunc(all, func(a, b plan.Work) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return all[len(all)/2]
}

// coresHad returns how many cores the process gets while other processes use some: from 0.01 to the
// number there are.
func coresHad() float64 {
	const spin = 30 * time.Millisecond
	w, _ := Clocked(1, func() error { // cannot fail
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
	return min(max(w.Demand(), 1e-2), float64(runtime.NumCPU()))
}

const (
	// copiedBytes is the memory in which copying rows is timed: more than the caches of most
	// processors hold. It is at most one part in copiedShare of the memory that is free.
	copiedBytes, copiedShare = 96 << 20, 4
	// copiedMost is how many rows are copied at most: enough where rows are narrow.
	copiedMost = 1 << 17
)

// measureRows times what training does with rows that are in memory, with the code that
// training runs.
func (m *Probe) measureRows(ctx context.Context, p *plan.Profile) (err error) {
	dim, threads := max(1, m.facts.Dim), plan.CopyThreads(m.facts.Threads)
	free := (m.src.Budget.Limit() - m.src.Budget.Used()) / copiedShare
	rows, policy := int(min(copiedBytes, free)/4)/(4*dim), rowcache.NewSIEVE()
	n := max(1, min(copiedMost, 3*rows))
	meter := &rowMeter{rows: blankRows{dim}, nodes: make([]sample.NodeID, n)}
	out, err := mem.NewArena(m.src.Budget, "copies of rows", 4*int64(max(1, min(rows, n))*dim))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Free()) }()
	meter.out = mem.View[float32](out.Bytes())
	all, err := rowcache.NewResident(ctx, meter.rows, uint64(n), threads, m.src.Budget)
	if err != nil {
		return err
	}
	meter.shuffle(0, 1)
	p.Copy, err = meter.gather(ctx, all, profileRounds)
	if err = errors.Join(err, all.Close()); err != nil {
		return err
	}
	cache, err := rowcache.New(ctx, meter.rows, policy, rowcache.Options{Threads: threads,
		Bytes: rowcache.Bytes(n, dim, policy.SlotBytes()), Budget: m.src.Budget})
	if err != nil {
		return err
	}
	for round := range uint64(profileRounds) { // the first fills the cache
		meter.shuffle(round*uint64(n), round)
		if err == nil {
			p.Miss, err = meter.gather(ctx, cache, 1)
		}
	}
	meter.shuffle((profileRounds-1)*uint64(n), profileRounds)
	if err == nil {
		p.Hit, err = meter.gather(ctx, cache, profileRounds)
	}
	return errors.Join(err, cache.Close())
}

// rowMeter times gathering the rows of nodes.
type rowMeter struct {
	rows  rowcache.Rows
	nodes []sample.NodeID
	out   []float32
}

// shuffle sets the nodes to consecutive numbers from first on, in an order that key determines.
func (m *rowMeter) shuffle(first, key uint64) {
	draw := rng.NewPermutation(uint64(len(m.nodes)), key)
	for i := range m.nodes {
		m.nodes[i] = sample.NodeID(first + draw.At(uint64(i)))
	}
}

// gather returns what gathering one node's row takes.
func (m *rowMeter) gather(ctx context.Context, f rowcache.Features, rounds int) (plan.Work, error) {
	w, err := Clocked(rounds, func() error {
		for part := range slices.Chunk(m.nodes, len(m.out)/f.Dim()) {
			if err := f.Gather(ctx, part, m.out[:len(part)*f.Dim()]); err != nil {
				return err
			}
		}
		return nil
	})
	return w.Times(1 / float64(len(m.nodes))), err
}

// blankRows are rows that take no time to read.
type blankRows struct{ dim int }

// Meta returns a description of the rows.
func (r blankRows) Meta() kv.RowsMeta { return kv.RowsMeta{Name: "blank", Dim: r.dim} }

// GatherParts leaves the output as it is.
func (blankRows) GatherParts(context.Context, []sample.NodeID, []uint32, []float32,
	func([]uint64)) error {
	return nil
}

// GatherStored returns false: nothing asks for rows as they are stored.
func (blankRows) GatherStored(context.Context, []sample.NodeID, []uint32,
	func(read, bytes int64) ([]byte, error)) (bool, error) {
	return false, nil
}

// Scan writes values, because memory that was never written to is copied faster.
func (blankRows) Scan(_ context.Context, _ sample.NodeID, _ int, out []float32) error {
	for i := range out {
		out[i] = 1
	}
	return nil
}

// BytesRead returns 0.
func (blankRows) BytesRead() uint64 { return 0 }

// measureDeciding times planning the accesses of a superbatch.
func (m *Probe) measureDeciding(ctx context.Context, p *plan.Profile) error {
	const nodes, batches, size, slots = 1 << 17, 16, 1 << 13, 1 << 15
	all := make([][]sample.NodeID, batches)
	for i := range all {
		draw := rng.NewPermutation(nodes, uint64(i))
		for k := range uint64(size) {
			all[i] = append(all[i], sample.NodeID(draw.At(k)))
		}
	}
	w, err := Clocked(profileRounds, func() error {
		_, err := superbatch.Rehearse(ctx, all, nodes, slots, 1, m.src.Budget)
		return err
	})
	p.Decide = w.Times(1 / float64(batches*size))
	return err
}
