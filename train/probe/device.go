package probe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/sample"
	"gdb/sample/superbatch"
	"gdb/train/plan"

	"golang.org/x/sys/unix"
)

// keptMost bounds the entries of each table of the profile: when a table is full it is emptied.
const keptMost = 256

// timed returns the work recorded under a name in the profile, or else measures and records it.
func (m *Probe) timed(name string, measure func() (plan.Work, error)) (plan.Work, error) {
	return kept(m, &m.device.Timed, name, measure)
}

// tried returns the reads recorded under a name in the profile, or else tries and records them.
func (m *Probe) tried(name string, try func() (plan.ListReads, error)) (plan.ListReads, error) {
	return kept(m, &m.device.Tried, name, try)
}

// kept returns the entry of a table under a name, or else finds and records it.
func kept[T any](m *Probe, in *map[string]T, name string, find func() (T, error)) (T, error) {
	if v, ok := (*in)[name]; ok {
		return v, nil
	}
	v, err := find()
	if err != nil {
		return v, err
	}
	if *in == nil || len(*in) >= keptMost {
		*in = map[string]T{}
	}
	(*in)[name], m.news = v, true
	return v, nil
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

// profile finds the profile of the device and of this machine: in the catalog, or as it was
// measured for another store; else it measures a new one.
func (m *Probe) profile(ctx context.Context) error {
	if m.device != nil {
		return nil
	}
	name := m.profileName()
	if !m.cfg.Remeasure {
		b, err := m.src.Store.Catalog().Profile(ctx, name)
		if err == nil {
			p := &plan.Profile{}
			if err := json.Unmarshal(b, p); err != nil {
				return fmt.Errorf("probe: profile %s: %w", name, err)
			}
			m.device = p
			return nil
		}
		if !errors.Is(err, kv.ErrNotFound) {
			return fmt.Errorf("probe: read profile %s: %w", name, err)
		}
		if m.device = m.ofMachine(time.Now()); m.device != nil {
			m.news = true
			return nil
		}
	}
	p, err := m.measure(ctx)
	if err != nil {
		return fmt.Errorf("probe: measure the device: %w", err)
	}
	m.device, m.news, m.measured = p, true, true
	return nil
}

// keepProfile writes the profile to the catalog if anything in it is new, and what was measured to
// the file where other stores find it.
func (m *Probe) keepProfile(ctx context.Context) error {
	if !m.news {
		return nil
	}
	b, err := json.Marshal(m.device)
	if err != nil {
		return fmt.Errorf("probe: encode profile: %w", err)
	}
	if err := m.src.Store.Catalog().PutProfile(ctx, m.profileName(), b); err != nil {
		m.device.Kept = err.Error()
	}
	m.news = false
	if !m.measured {
		return nil
	}
	m.measured = false
	if err := m.keepForMachine(time.Now()); err != nil {
		m.device.Kept = fmt.Sprintf("for other stores: %v", err)
	}
	return nil
}

// ProfileName returns the name of a profile in a catalog. It differs by machine, way of reading,
// kind of rows and number of threads.
func ProfileName(dev blockdev.Device, rows kv.RowsMeta, threads int) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("train4/%s/%s/%d-%d-%d/%d", host, dev.Info().Backend, rows.RowBytes,
		rows.PageBytes, rows.Dim, threads)
}

func (m *Probe) profileName() string {
	return ProfileName(m.src.Device, m.src.AnyRows().Meta(), m.facts.Threads)
}

// measure measures a new profile; it takes about two seconds on a disk.
func (m *Probe) measure(ctx context.Context) (*plan.Profile, error) {
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
func (m *Probe) measureProducts(_ context.Context, p *plan.Profile) (err error) {
	if m.model != nil {
		p.GFLOPS, err = m.model.Products()
	}
	return err
}

// reading is what some reads cost together. Times are seconds.
type reading struct{ reads, bytes, seconds, cpu float64 }

// measureReads gathers rows that lie far apart and sweeps over rows that lie close together, and
// works out from both what each read and each byte costs.
func (m *Probe) measureReads(ctx context.Context, p *plan.Profile) error {
	nodes := m.src.Meta.Nodes
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
func (m *Probe) measureWrites(_ context.Context, p *plan.Profile) error {
	bytes := min(profileDense, int64(m.src.Meta.Nodes)*int64(m.src.AnyRows().Meta().RowBytes))
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
func (m *Probe) gather(ctx context.Context, start, apart, n uint64) (reading, error) {
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
func (m *Probe) rowFloats() int {
	meta := m.src.AnyRows().Meta()
	return max(meta.Dim, (meta.RowBytes+3)/4)
}

// gatherRows gathers the features of nodes, or their labels, undecoded, where the store
// has no features.
func (m *Probe) gatherRows(ctx context.Context, ids []sample.NodeID, out []float32) error {
	if m.src.Rows != nil {
		return m.src.Rows.Gather(ctx, ids, nil, out)
	}
	labels := m.src.AnyRows()
	return labels.GatherRaw(ctx, ids, nil, mem.BytesOf(out)[:len(ids)*labels.Meta().RowBytes])
}

// sweep sweeps over n rows from start on, one in apart.
func (m *Probe) sweep(ctx context.Context, start, apart, n uint64) (reading, error) {
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

// cpuTime returns the core time that the process has used; 0 if the system does not tell.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
