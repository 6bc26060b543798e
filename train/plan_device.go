package train

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"gdb/kv"
	"gdb/sample"
	"gdb/sample/superbatch"

	"golang.org/x/sys/unix"
)

// Profile is what reading rows and computing cost on this machine, measured once per device, way
// of reading and size of rows, and kept in the store's catalog.
type Profile struct {
	RandomReads float64 `json:"random_reads_per_s"` // of RowBytes
	RowBytes    int     `json:"row_read_bytes"`     // of a random read of one row
	Sequential  float64 `json:"sequential_bytes_per_s"`
	// A batch of reads takes ReadSeconds for each and ByteSeconds for each byte, verified and
	// copied; of these the CPU works ReadCPU and ByteCPU.
	ReadSeconds float64 `json:"read_s"`
	ByteSeconds float64 `json:"byte_s"`
	ReadCPU     float64 `json:"read_cpu_s"`
	ByteCPU     float64 `json:"byte_cpu_s"`
	// Write is a byte of a runtime file; as reading in large pieces where that could not be
	// measured, as Unwritten says.
	Write     work    `json:"write_byte"`
	Unwritten string  `json:"unwritten,omitempty"`
	GFLOPS    float64 `json:"gflops"` // of matrix products, all threads
	Cores     float64 `json:"cores"`  // that the process gets

	// Copy is copying a row from anywhere in memory, Hit finding one in a cache and copying it,
	// and Miss what a cache does for one that it has not, besides reading; Decide is planning an
	// access of a superbatch.
	Copy   work `json:"copy_row"`
	Hit    work `json:"hit_row"`
	Miss   work `json:"miss_row"`
	Decide work `json:"plan_access"`

	// Timed are steps and samplings of a batch, by their settings. They are kept so that equal
	// plans are made of equal times.
	Timed map[string]work `json:"timed,omitempty"`
	// Tried is what sampling reads with caches of lists, by settings and sizes.
	Tried map[string]listReads `json:"tried,omitempty"`

	Kept string `json:"kept,omitempty"` // why it could not be kept in the catalog

	news bool // something was timed that the catalog does not have
}

// keptMost bounds what is kept of each: beyond it all is found anew.
const keptMost = 256

// timed returns the work kept under a name, or else keeps what measure returns.
func (p *Profile) timed(name string, measure func() (work, error)) (work, error) {
	return kept(p, &p.Timed, name, measure)
}

// tried returns the reads kept under a name, or else keeps what try returns.
func (p *Profile) tried(name string, try func() (listReads, error)) (listReads, error) {
	return kept(p, &p.Tried, name, try)
}

// kept returns what is kept under a name, or else what find returns, and keeps it.
func kept[T any](p *Profile, in *map[string]T, name string, find func() (T, error)) (T, error) {
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
	(*in)[name], p.news = v, true
	return v, nil
}

const (
	// profileRows are read one by one at random, in all.
	profileRows = 8192
	// profileDense is how many bytes are read in large pieces, and written: some disks do the first
	// ones faster.
	profileDense = 256 << 20
	// profileRounds of each are measured, of which the middle one counts: training meets the
	// machine as it mostly is.
	profileRounds = 3
)

// profile returns the profile of this device: that in the catalog, or a new one.
func (t *trainer) profile(ctx context.Context) (*Profile, error) {
	name := t.profileName()
	if !t.cfg.Remeasure {
		b, err := t.in.store.Catalog().Profile(ctx, name)
		if err == nil {
			p := &Profile{}
			if err := json.Unmarshal(b, p); err != nil {
				return nil, fmt.Errorf("train: profile %s: %w", name, err)
			}
			return p, nil
		}
		if !errors.Is(err, kv.ErrNotFound) {
			return nil, fmt.Errorf("train: read profile %s: %w", name, err)
		}
	}
	p, err := t.measure(ctx)
	if err != nil {
		return nil, fmt.Errorf("train: measure the device: %w", err)
	}
	p.news = true
	return p, nil
}

// keepProfile puts a profile into the catalog if there is something new in it.
func (t *trainer) keepProfile(ctx context.Context, p *Profile) error {
	if !p.news {
		return nil
	}
	b, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("train: encode profile: %w", err)
	}
	if err := t.in.store.Catalog().PutProfile(ctx, t.profileName(), b); err != nil {
		p.Kept = err.Error()
	}
	return nil
}

// profileName tells machines, ways of reading, kinds of rows and numbers of threads apart.
func (t *trainer) profileName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	m := t.in.rows.Meta()
	return fmt.Sprintf("train4/%s/%s/%d-%d-%d/%d", host, t.in.dev.Info().Backend, m.RowBytes,
		m.PageBytes, m.Dim, t.cfg.Threads)
}

// measure takes about two seconds on a disk.
func (t *trainer) measure(ctx context.Context) (*Profile, error) {
	p := &Profile{Cores: coresHad()}
	for _, part := range []func(context.Context, *Profile) error{t.measureReads, t.measureWrites,
		t.measureProducts, t.measureRows, t.measureDeciding} {
		if err := part(ctx, p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// reading is the cost of some reads.
type reading struct{ reads, bytes, seconds, cpu float64 }

// measureReads gathers rows far apart, and sweeps over rows close together, and from both finds
// what a read and a byte cost.
func (t *trainer) measureReads(ctx context.Context, p *Profile) error {
	nodes := t.in.meta.Nodes
	width := uint64(max(1, t.in.rows.Meta().RowBytes))
	apart := max(1, min(nodes/64, max(nodes/profileRows, 64<<10/width)))
	far, err := readRounds(apart/profileRounds, func(start uint64) (reading, error) {
		return t.gather(ctx, start, apart, min(profileRows, nodes/apart))
	})
	if err != nil {
		return err
	}
	close := max(1, min(2048/width, nodes))
	n := min(profileDense/width/close, nodes/close)
	near, err := readRounds(min(n*close, (nodes-n*close)/profileRounds),
		func(start uint64) (reading, error) { return t.sweep(ctx, start, close, n) })
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

// solve finds a and b with a·reads + b·bytes = cost for both, not below 0.
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

// measureWrites writes a runtime file.
func (t *trainer) measureWrites(_ context.Context, p *Profile) error {
	bytes := min(profileDense, int64(t.in.meta.Nodes)*int64(t.in.rows.Meta().RowBytes))
	cpu := cpuTime()
	took, err := superbatch.TimeWriting(t.in.store.FS(), t.in.store.Path("prep"),
		fmt.Sprint("profile-", os.Getpid()), bytes)
	p.Write = work{took.Seconds(), (cpuTime() - cpu).Seconds()}.times(1 / float64(max(1, bytes)))
	if err != nil {
		p.Write, p.Unwritten = work{1 / p.Sequential, p.ByteCPU}, err.Error()
	}
	return nil
}

// readRounds is the middle one of some rounds, each further on in the file, by so many rows: a
// device may hold what it read before.
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

// gather gathers n rows from one on, apart from each other by so many rows.
func (t *trainer) gather(ctx context.Context, start, apart, n uint64) (reading, error) {
	var r reading
	dim := t.in.rows.Meta().Dim
	part := uint64(max(1, min(2048, 1<<18/dim))) // rows of a gather
	out := make([]float32, min(part, n)*uint64(dim))
	ids := make([]sample.NodeID, 0, part)
	for first := uint64(0); first < n; first += part {
		ids = ids[:0]
		for i := first; i < min(first+part, n); i++ {
			ids = append(ids, sample.NodeID(start+i*apart))
		}
		reads, bytes, err := t.in.reader.Cost(ctx, ids)
		if err != nil {
			return r, err
		}
		cpu, begun := cpuTime(), time.Now()
		if err := t.in.rows.Gather(ctx, ids, nil, out); err != nil {
			return r, err
		}
		r.seconds += time.Since(begun).Seconds()
		r.cpu += (cpuTime() - cpu).Seconds()
		r.reads, r.bytes = r.reads+float64(reads), r.bytes+float64(bytes)
	}
	r.seconds = max(r.seconds, 1e-9)
	return r, nil
}

// sweep sweeps over n rows from one on, apart from each other by so many rows.
func (t *trainer) sweep(ctx context.Context, start, apart, n uint64) (reading, error) {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = (start + uint64(i)*apart) << 32
	}
	cost, _ := t.in.reader.SweepCost(slices.Values([][]uint64{keys}), 1)
	out := make([]float32, t.in.rows.Meta().Dim)
	cpu, begun := cpuTime(), time.Now()
	err := t.in.reader.Sweep(ctx, keys, nil, func(_ uint32, row []byte) error {
		return t.in.reader.Decode(out, row)
	})
	return reading{reads: float64(cost.Reads), bytes: float64(cost.Bytes),
		seconds: max(time.Since(begun).Seconds(), 1e-9), cpu: (cpuTime() - cpu).Seconds()}, err
}

// cpuTime is the time that the process has computed.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
