package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/internal/sparse"
	"gdb/sample"
	"gdb/train/plan"
	"gdb/train/probe"
)

// Products times a matrix product on all threads.
func (s *shape) Products() (gflops float64, err error) {
	const m, k, n, rounds = 2048, 256, 256, 4
	if err := s.backend.Begin(); err != nil {
		return 0, err
	}
	var x [3]backend.Tensor
	for i, shape := range [][2]int{{m, k}, {k, n}, {m, n}} {
		x[i] = s.backend.Scratch(shape[0], shape[1])
		backend.Zero(s.backend, x[i])
	}
	var some [n]float32
	product := program.Named("matmul")
	w, err := probe.Clocked(rounds, func() error {
		s.backend.Run(product, &backend.Operands{Out: x[2], In: [4]backend.Tensor{x[0], x[1]}})
		s.backend.Read(some[:], x[2].Slice(0, 1)) // a device has computed it then
		return s.backend.Err()
	})
	return 2 * m * k * n / (1e9 * w.Seconds), err
}

const (
	// stepRounds is the least number of steps that are run to time one, unless they take longer
	// than stepLong together. More are run, up to stepMost, until they took stepTime together.
	stepRounds, stepMost = 3, 9
	stepTime, stepLong   = 250 * time.Millisecond, time.Second
	// tableMost bounds the memory of the table whose rows a timed step reads in place.
	tableMost = 256 << 20
	// tableShare bounds it to one part in tableShare of what is free.
	tableShare = 4
	// pageFloats is the number of float32 values in a page of memory.
	pageFloats = 4096 / 4
)

// TimeStep returns what a training step on a sampled batch takes, with all that training does. Rows
// that are used in place lie anywhere in memory. It changes the weights.
func (s *stepper) TimeStep(ctx context.Context, d *sample.Dense, inPlace bool) (w plan.Work,
	err error) {
	dim, rows := s.features, len(d.NodeIDs)
	seeds := d.NodeIDs[d.NodeIDOffsets[d.Layers()]:]
	if n := len(d.Ends) / 2; n > 0 {
		seeds = make([]sample.NodeID, n)
	}
	b := &sample.Batch{Dense: *d, Dim: dim, Seeds: seeds}
	s.task.Blank(b)
	if inPlace {
		a, err := s.placeRows(b)
		if err != nil {
			return w, err
		}
		defer func() { err = errors.Join(err, a.Free()) }()
		rows -= int(d.NodeIDOffsets[1])
	}
	a, err := mem.NewArena(s.budget, "features of a batch", 4*int64(rows*dim))
	if err != nil {
		return w, err
	}
	defer func() {
		b.Free()
		err = errors.Join(err, a.Free(), s.be.Trim())
	}()
	b.X = mem.View[float32](a.Bytes())
	err = s.untrained(func() (err error) {
		w, err = s.timeSteps(b)
		return err
	})
	return w, errors.Join(err, ctx.Err())
}

// untrained has steps be taken of which none leads to another, from initial weights.
func (s *stepper) untrained(steps func() error) error {
	rate := s.opt.Base
	s.begin()
	s.opt.Base = 0
	err := steps()
	s.opt.Base = rate
	s.opt.Reset()
	if s.vectors != nil {
		s.vectors.Reset()
		err = errors.Join(err, s.vectors.Trim())
	}
	return err
}

// timeSteps returns the median of some steps. The first does not count, since its memory is new.
func (s *stepper) timeSteps(b *sample.Batch) (plan.Work, error) {
	var all []plan.Work
	enough := func(took time.Duration) bool {
		switch n := len(all) - 1; {
		case n < 1:
			return false
		case n < stepRounds:
			return took > stepLong
		default:
			return n == stepMost-1 || took > stepTime
		}
	}
	for begun := time.Now(); !enough(time.Since(begun)); {
		for i := range b.X { // a step leaves its own results there
			b.X[i] = 1
		}
		if s.cfg.SparseWords > 0 {
			sparse.Fill(mem.View[uint32](mem.BytesOf(b.X)), s.features, s.dims[0])
		}
		if err := s.prepare(b); err != nil {
			return plan.Work{}, fmt.Errorf("time a step of %d nodes: %w", len(b.Dense.NodeIDs), err)
		}
		w, err := probe.Clocked(1, func() error { return s.stepAlone(b) })
		if err != nil {
			return w, fmt.Errorf("time a step of %d nodes: %w", len(b.Dense.NodeIDs), err)
		}
		all = append(all, w)
	}
	return probe.Middle(all[1:]), nil
}

// TimePrepare returns the median of what preparing a batch takes, which begins where its lists are
// in the caches of the processor, as behind its sampling.
func (s *stepper) TimePrepare(d *sample.Dense) (plan.Work, error) {
	b := &sample.Batch{Dense: *d}
	defer b.Free()
	if s.be.Device() == nil { // it is only planned for
		return plan.Work{}, nil
	}
	var all []plan.Work
	for range 1 + stepRounds { // the memory of the first is new
		w, err := probe.Clocked(1, func() error { return s.prepare(b) })
		if err != nil {
			return w, fmt.Errorf("prepare a batch of %d nodes: %w", len(d.NodeIDs), err)
		}
		all = append(all, w)
	}
	return probe.Middle(all[1:]), nil
}

// placeRows makes a table and gives the rows of a batch random places in it.
func (s *stepper) placeRows(b *sample.Batch) (*mem.Arena, error) {
	row := 4 * int64(b.Dim)
	free := s.budget.Limit() - s.budget.Used()
	rows := max(1, min(tableMost, free/tableShare)/row)
	a, err := mem.NewArena(s.budget, "rows of a table", rows*row)
	if err != nil {
		return nil, err
	}
	b.Table = mem.View[float32](a.Bytes())
	for i := 0; i < len(b.Table); i += pageFloats { // memory never written to is read faster
		b.Table[i] = 1
	}
	for _, r := range b.Dense.ReprMap {
		b.TableRows = append(b.TableRows, uint32(rng.Key(uint64(r))%uint64(rows)))
	}
	return a, nil
}

// tuneGain is the share of the time that a new order may take to be chosen: smaller
// gains are noise.
const tuneGain = 0.97

// tune times steps on a sampled batch d with orders of aggregation and product, place by place, and
// keeps the fastest for the whole run. The run then depends on what was measured, so the order is
// kept in run.json and used again when the run is resumed.
func (s *stepper) tune(ctx context.Context, d *sample.Dense) error {
	order := uint64(0)
	least, err := s.timeOrder(ctx, d, order)
	for place := 0; err == nil && place < s.model.Places(); place++ {
		var took float64
		if took, err = s.timeOrder(ctx, d, order|1<<place); err == nil && took < tuneGain*least {
			order, least = order|1<<place, took
		}
	}
	var full *mem.LimitError
	if errors.As(err, &full) { // there is no room to measure in: what is known so far
		err = nil
	}
	if err != nil {
		return fmt.Errorf("train: measure the order of operations: %w", err)
	}
	s.setOrder(order)
	return nil
}

// timeOrder returns how long a step takes with an order, in seconds.
func (s *stepper) timeOrder(ctx context.Context, d *sample.Dense,
	order uint64) (seconds float64, err error) {
	s.setOrder(order)
	w, err := s.TimeStep(ctx, d, false)
	return w.Seconds, err
}

// setOrder makes the model compute all batches with an order.
func (s *stepper) setOrder(order uint64) {
	s.cfg.Order = &order
	s.model.Spec().Order = s.cfg.Order
}
