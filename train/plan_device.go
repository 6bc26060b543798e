package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/sample"
	"gdb/train/backend"

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
	CopyBytes   float64 `json:"copy_bytes_per_s"`
	GFLOPS      float64 `json:"gflops"` // of matrix products, all threads

	// Timed are seconds of a batch: of steps, and of the cores that sample, by their settings.
	// They are kept so that equal plans are made of equal times.
	Timed map[string]float64 `json:"timed_s,omitempty"`

	Kept string `json:"kept,omitempty"` // why it could not be kept in the catalog

	news bool // something was timed that the catalog does not have
}

// timedMost bounds what is kept: beyond it all is timed anew.
const timedMost = 256

// timed returns the seconds kept under a name, or else keeps those that measure returns.
func (p *Profile) timed(name string, measure func() (float64, error)) (float64, error) {
	if v, ok := p.Timed[name]; ok {
		return v, nil
	}
	v, err := measure()
	if err != nil {
		return 0, err
	}
	if p.Timed == nil || len(p.Timed) >= timedMost {
		p.Timed = map[string]float64{}
	}
	p.Timed[name], p.news = v, true
	return v, nil
}

const (
	// profileRows are read one by one at random, in all.
	profileRows = 8192
	// profileDense is how many bytes are read in large pieces.
	profileDense = 64 << 20
	// profileRounds of each are measured: the fastest counts, the others shared the machine.
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
	return fmt.Sprintf("train/%s/%s/%d-%d-%d/%d", host, t.in.dev.Info().Backend, m.RowBytes,
		m.PageBytes, m.Dim, t.cfg.Threads)
}

// measure takes about a second on a disk.
func (t *trainer) measure(ctx context.Context) (*Profile, error) {
	p := &Profile{}
	if err := t.measureReads(ctx, p); err != nil {
		return nil, err
	}
	return p, t.measureCores(p)
}

// reading is the cost of some reads.
type reading struct{ reads, bytes, seconds, cpu float64 }

// measureReads reads rows far apart and rows close together, and from both finds what a read and
// a byte cost.
func (t *trainer) measureReads(ctx context.Context, p *Profile) error {
	nodes := t.in.meta.Nodes
	width := uint64(max(1, t.in.rows.Meta().RowBytes))
	apart := max(1, min(nodes/64, max(nodes/profileRows, 64<<10/width)))
	far, err := t.readBest(ctx, apart, min(profileRows, nodes/apart))
	if err != nil {
		return err
	}
	close := max(1, 2048/width)
	near, err := t.readBest(ctx, close, min(profileDense/width/close, nodes/close))
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

// readBest is the fastest of some rounds.
func (t *trainer) readBest(ctx context.Context, apart, n uint64) (best reading, err error) {
	for i := range profileRounds {
		r, err := t.read(ctx, apart, n)
		if err != nil {
			return r, err
		}
		if i == 0 || r.seconds < best.seconds {
			best = r
		}
	}
	return best, nil
}

// read gathers n rows, apart from each other by so many rows, in an order that is no one's.
func (t *trainer) read(ctx context.Context, apart, n uint64) (reading, error) {
	var r reading
	dim := t.in.rows.Meta().Dim
	part := uint64(max(1, min(2048, 1<<18/dim))) // rows of a gather
	out := make([]float32, min(part, n)*uint64(dim))
	ids := make([]sample.NodeID, 0, part)
	for first := uint64(0); first < n; first += part {
		ids = ids[:0]
		for i := first; i < min(first+part, n); i++ {
			ids = append(ids, sample.NodeID(i*apart))
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

// cpuTime is the time that the process has computed.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measureCores times copies of rows by one core and a matrix product by all.
func (t *trainer) measureCores(p *Profile) (err error) {
	const m, k, n, wide, rounds = 2048, 256, 256, 1024, 4
	if err := t.be.Begin(); err != nil {
		return err
	}
	var x [4]backend.Tensor
	for i, shape := range [][2]int{{m, k}, {k, n}, {m, n}, {m, wide}} {
		var err error
		if x[i], err = t.be.Scratch(shape[0], shape[1]); err != nil {
			return err
		}
		t.be.Zero(x[i])
	}
	to, err := mem.NewArena(t.in.budget, "copies of rows", 4*m*wide)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Free()) }()
	values := mem.View[float32](to.Bytes())
	best := [2]time.Duration{time.Hour, time.Hour}
	for range rounds {
		begun := time.Now()
		t.be.MatMul(x[2], x[0], x[1], false)
		best[0] = min(best[0], time.Since(begun))
		begun = time.Now()
		t.be.Read(values, x[3])
		best[1] = min(best[1], time.Since(begun))
	}
	p.GFLOPS = 2 * m * k * n / float64(best[0].Nanoseconds())
	p.CopyBytes = float64(len(to.Bytes())) / best[1].Seconds()
	return nil
}
