package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/kv"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/sample/rowcache"
	"gdb/sample/superbatch"
	"gdb/train/plan"
)

// Model is what a probe needs of the model that is trained on the batches.
type Model interface {
	// Size returns the memory of a step on the largest batch, which has inner nodes with neighbors.
	// d is the largest batch that was sampled; no batch is more than scale times as large. inPlace
	// says that rows are read where they are kept.
	Size(d *sample.Dense, inner, scale int64, inPlace bool) StepSize
	// Products returns how many billion operations matrix products do in a second.
	Products() (gflops float64, err error)
}

// StepSize is the memory of a step in bytes. Device is what it computes on a device with memory of
// its own, Given the inputs of the steps under way there, and Prepared what is prepared of a batch
// beside its sampling.
type StepSize struct{ Host, Device, Given, Prepared int64 }

// Timer measures what a batch takes.
type Timer interface {
	// TimeStep returns what a step on a batch takes.
	TimeStep(ctx context.Context, d *sample.Dense, inPlace bool) (plan.Work, error)
	// TimePrepare returns what preparing a batch beside its sampling takes; nothing where batches
	// are not prepared.
	TimePrepare(d *sample.Dense) (plan.Work, error)
	// TimeLaunches returns how a device is given operations best; nil where there is no choice.
	TimeLaunches(ctx context.Context, d *sample.Dense) (*plan.LaunchWay, error)
}

// profiler finds how fast the device and this machine are.
type profiler struct {
	src     *loader.Source
	model   Model  // nil where batches are loaded and no model is trained
	threads int    // that compute
	dim     int    // of the features
	again   bool   // the device is measured again, although the catalog has a profile of it
	kept    string // see Config.Profiles

	device *plan.Profile // nil until it is known
	news   bool          // the catalog lacks something that is known
	// measured says that the device was measured and other stores do not have the result yet.
	measured bool
}

const (
	// profileRows is how many rows are read at random, one by one, in all.
	profileRows = 8192
	// profileDense is how many bytes are read in large pieces, and how many are written. It is
	// large because some disks are faster at first.
	profileDense = 128 << 20
	// profileRounds is how often each measurement is made. The median counts, since training meets
	// the machine as it usually is.
	profileRounds = 3
)

// measure measures a new profile; it takes about two seconds on a disk.
func (m *profiler) measure(ctx context.Context) (*plan.Profile, error) {
	p := &plan.Profile{Cores: coresHad()}
	for _, part := range []func(context.Context, *plan.Profile) error{m.measureReads,
		m.measureWrites,
		m.measureProducts, m.measureRows, m.measureDeciding} {
		if err := part(ctx, p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// measureProducts times the model's matrix products, if there is a model.
func (m *profiler) measureProducts(_ context.Context, p *plan.Profile) (err error) {
	if m.model != nil {
		p.GFLOPS, err = m.model.Products()
	}
	return err
}

// reading is what some reads cost together. Times are seconds.
type reading struct{ reads, bytes, seconds, cpu float64 }

// measureReads gathers rows that lie far apart and sweeps over rows that lie close together, and
// works out from both what each read and each byte costs.
func (m *profiler) measureReads(ctx context.Context, p *plan.Profile) error {
	nodes := m.src.RowCount()
	width := uint64(max(1, m.src.AnyRows().Meta().RowBytes))
	apart := max(1, min(nodes/64, max(nodes/profileRows, 64<<10/width)))
	far, err := readRounds(apart/profileRounds, func(start uint64) (reading, error) {
		return m.gather(ctx, start, apart, min(profileRows, nodes/apart))
	})
	if err != nil {
		return err
	}
	close := max(1, min(2048/width, nodes))
	n := min(profileDense/width/close, nodes/close)
	near, err := readRounds(min(n*close, (nodes-n*close)/profileRounds),
		func(start uint64) (reading, error) { return m.sweep(ctx, start, close, n) })
	if err != nil {
		return err
	}
	p.RowBytes = int(far.bytes / max(1, far.reads))
	p.RandomReads = far.reads / far.seconds
	p.Sequential = near.bytes / near.seconds
	p.ReadSeconds, p.ByteSeconds = solve(far, near, far.seconds, near.seconds)
	p.ReadCPU, p.ByteCPU = solve(far, near, far.cpu, near.cpu)
	return nil
}

// solve returns the a and b, neither below 0, for which a·reads + b·bytes is the cost of
// both measurements.
func solve(far, near reading, costFar, costNear float64) (a, b float64) {
	det := far.reads*near.bytes - near.reads*far.bytes
	if det <= 0 { // all in one read
		return 0, costNear / max(1, near.bytes)
	}
	a = (costFar*near.bytes - costNear*far.bytes) / det
	b = (costNear*far.reads - costFar*near.reads) / det
	if a < 0 {
		return 0, costNear / near.bytes
	}
	if b < 0 {
		return costFar / far.reads, 0
	}
	return a, b
}

// measureWrites times writing a runtime file.
func (m *profiler) measureWrites(_ context.Context, p *plan.Profile) error {
	bytes := min(profileDense, int64(m.src.RowCount())*int64(m.src.AnyRows().Meta().RowBytes))
	cpu := cpuTime()
	took, err := superbatch.TimeWriting(m.src.Store.FS(), m.src.Store.Path("prep"),
		fmt.Sprint("profile-", os.Getpid()), bytes)
	p.Write = plan.Work{Seconds: took.Seconds(),
		CPU: (cpuTime() - cpu).Seconds()}.Times(1 / float64(max(1, bytes)))
	if err != nil {
		p.Write, p.Unwritten = plan.Work{Seconds: 1 / p.Sequential, CPU: p.ByteCPU}, err.Error()
	}
	return nil
}

// readRounds returns the median of some rounds of read. Each round begins further rows after the
// one before, because a device may cache what it read.
func readRounds(further uint64, read func(start uint64) (reading, error)) (reading, error) {
	var all []reading
	for i := range uint64(profileRounds) {
		r, err := read(i * further)
		if err != nil {
			return r, err
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b reading) int { return cmp.Compare(a.seconds, b.seconds) })
	return all[len(all)/2], nil
}

// gather gathers n rows from start on, one in apart.
func (m *profiler) gather(ctx context.Context, start, apart, n uint64) (reading, error) {
	var r reading
	dim := m.rowFloats()
	part := uint64(max(1, min(2048, 1<<18/dim))) // rows of a gather
	out := make([]float32, min(part, n)*uint64(dim))
	ids := make([]sample.NodeID, 0, part)
	for first := uint64(0); first < n; first += part {
		ids = ids[:0]
		for i := first; i < min(first+part, n); i++ {
			ids = append(ids, sample.NodeID(start+i*apart))
		}
		reads, bytes, err := m.src.AnyRows().Cost(ctx, ids)
		if err != nil {
			return r, err
		}
		cpu, begun := cpuTime(), time.Now()
		if err := m.gatherRows(ctx, ids, out); err != nil {
			return r, err
		}
		r.seconds += time.Since(begun).Seconds()
		r.cpu += (cpuTime() - cpu).Seconds()
		r.reads, r.bytes = r.reads+float64(reads), r.bytes+float64(bytes)
	}
	r.seconds = max(r.seconds, 1e-9)
	return r, nil
}

// rowFloats returns how many floats a buffer needs for a row that is read to measure the device.
func (m *profiler) rowFloats() int {
	meta := m.src.AnyRows().Meta()
	return max(meta.Dim, (meta.RowBytes+3)/4)
}

// gatherRows gathers the features of nodes, or their labels, undecoded, where the store
// has no features.
func (m *profiler) gatherRows(ctx context.Context, ids []sample.NodeID, out []float32) error {
	if m.src.Rows != nil {
		return m.src.Rows.Gather(ctx, ids, nil, out)
	}
	labels := m.src.AnyRows()
	return labels.GatherRaw(ctx, ids, nil, mem.BytesOf(out)[:len(ids)*labels.Meta().RowBytes])
}

// sweep sweeps over n rows from start on, one in apart.
func (m *profiler) sweep(ctx context.Context, start, apart, n uint64) (reading, error) {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = (start + uint64(i)*apart) << 32
	}
	cost, _ := m.src.AnyRows().SweepCost(slices.Values([][]uint64{keys}), 1)
	out := make([]float32, m.rowFloats())
	cpu, begun := cpuTime(), time.Now()
	err := m.src.AnyRows().Sweep(ctx, keys, nil, func(_ uint32, row []byte) error {
		if m.src.Rows == nil {
			copy(mem.BytesOf(out), row)
			return nil
		}
		return m.src.Rows.Decode(out, row)
	})
	return reading{reads: float64(cost.Reads), bytes: float64(cost.Bytes),
		seconds: max(time.Since(begun).Seconds(), 1e-9), cpu: (cpuTime() - cpu).Seconds()}, err
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
func (m *profiler) measureRows(ctx context.Context, p *plan.Profile) (err error) {
	dim, threads := max(1, m.dim), plan.CopyThreads(m.threads)
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
func (m *profiler) measureDeciding(ctx context.Context, p *plan.Profile) error {
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
