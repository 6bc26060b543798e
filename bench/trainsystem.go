package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/train"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TrainJob is one system to measure, as it is handed to the process that does.
type TrainJob struct {
	Store, System, Model string
	Config               train.Config
}

// mappedWorkers are the numbers of goroutines that the mmap baseline tries: each has one page fault
// under way.
var mappedWorkers = []int{16, 32, 64}

// TrainSystem measures one system in this process, which does nothing else.
func TrainSystem(ctx context.Context, job TrainJob) (row Row, err error) {
	system, err := findSystem(job.System)
	if err != nil {
		return nil, err
	}
	store, err := layout.Open(ctx, vfs.Default, job.Store)
	if err != nil {
		return nil, err
	}
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Backend(job.Config.IO)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	m := &measurement{job: job, row: Row{}}
	if system.mapped {
		return m.row, m.runMapped(ctx, store, dev)
	}
	cfg := job.Config
	cfg.LoadOnly = job.Model == "none"
	cfg.NeighborsAhead = true // the time of opening is apart
	begun := time.Now()
	l, err := train.OpenLoader(ctx, store, dev, cfg)
	if err != nil {
		return nil, err
	}
	m.row["open_s"] = time.Since(begun).Seconds()
	defer func() { err = errors.Join(err, l.Close()) }()
	if p := l.Plan(); system.unbounded && p.Cache != "all" {
		return nil, fmt.Errorf("bench: this machine has no room for all features: %s", p)
	}
	m.row["plan"] = l.Plan().String()
	if f := l.Plan().Forecast; f != nil {
		m.row["planned_s"], m.row["planned_read_bytes"] = f.Time, f.Read
		m.row["planned_hit_ratio"], m.row["chosen"] = f.Hit, l.Plan().Why()
	}
	if err := m.epochs(ctx, l, nil); err != nil {
		return nil, err
	}
	st := l.Stats()
	m.row["io_wait_s"] = st.IOWait.Seconds()
	if st.Requests > 0 {
		m.row["hit_ratio"] = float64(st.Hits) / float64(st.Requests)
	}
	return m.row, nil
}

// measurement fills the row of one system.
type measurement struct {
	job TrainJob
	row Row
}

// runMapped measures the mmap baseline. Its first epoch finds how many goroutines are best.
func (m *measurement) runMapped(ctx context.Context, store *layout.Store,
	dev blockdev.Device) (err error) {
	most := mappedWorkers[len(mappedWorkers)-1]
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(most + m.job.Config.Threads))
	g, err := openMapped(store, mappedWorkers[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	l, err := train.OpenLoaderFrom(ctx, store, dev, m.job.Config,
		train.Readers{Topology: g, Features: mappedRows{g}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if err := m.epochs(ctx, l, newTuner(mappedWorkers, g.workers.Store)); err != nil {
		return err
	}
	m.row["readers"] = g.workers.Load()
	m.row["io_wait_s"], m.row["hit_ratio"] = nil, nil
	m.why("io_wait_s, hit_ratio: page faults are the kernel's")
	if m.job.Config.Epochs == 1 {
		m.why("the one epoch is also that which finds the number of readers")
	}
	return nil
}

func (m *measurement) why(reason string) { m.row["why"] = joinWhy(m.row["why"], reason) }

// epochs runs all epochs and fills in the figures: the mean time of all, since what a system does
// ahead or only once is in one of them, and what else the last one has.
func (m *measurement) epochs(ctx context.Context, l *train.Loader, tune *tuner) error {
	var all []float64
	var total time.Duration
	var before, read int64
	var counted error
	for range m.job.Config.Epochs {
		before, counted = storageRead()
		if err := m.epoch(ctx, l, tune); err != nil {
			return err
		}
		if tune != nil {
			tune.choose()
			tune = nil
		}
		read, _ = storageRead()
		all = append(all, l.Stats().Time.Seconds())
		total += l.Stats().Time
	}
	st := l.Stats()
	_, peak := mem.RSS()
	mean := total.Seconds() / float64(len(all))
	m.row["epoch_s"], m.row["last_epoch_s"], m.row["epochs_s"] = mean, st.Time.Seconds(), all
	m.row["batches"], m.row["batch_s"] = st.Batches, mean/float64(st.Batches)
	m.row["sample_s"], m.row["gather_s"] = st.Sample.Seconds(), st.Gather.Seconds()
	m.row["nodes"], m.row["edges"] = st.Nodes, st.Edges
	m.row["peak_rss_bytes"], m.row["bytes_read"] = peak, read-before
	if counted != nil {
		m.row["bytes_read"] = nil
		m.why("bytes_read: " + counted.Error())
	}
	if m.job.Model == "none" {
		m.row["compute_s"] = nil
		m.why("compute_s: no model")
		return nil
	}
	m.row["compute_s"] = st.Compute.Seconds()
	return nil
}

// epoch loads the batches of one epoch, and trains on them if there is a model.
func (m *measurement) epoch(ctx context.Context, l *train.Loader, tune *tuner) error {
	for {
		b, err := l.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if m.job.Model != "none" {
			_, err = l.Step(b)
		}
		b.Release()
		if err != nil {
			return err
		}
		if tune != nil {
			tune.next()
		}
	}
}

// tuner finds the best of some settings: they take turns, one batch each, so that a cache that
// fills meanwhile favors none.
type tuner struct {
	settings []int
	apply    func(int32)
	spent    []time.Duration
	used     []int
	batch    int
	since    time.Time
	now      func() time.Time
}

func newTuner(settings []int, apply func(int32)) *tuner {
	return &tuner{settings: settings, apply: apply, spent: make([]time.Duration, len(settings)),
		used: make([]int, len(settings)), since: time.Now(), now: time.Now}
}

// next ends a batch. The first turn of each setting does not count: the next batch was sampled
// with the setting before.
func (t *tuner) next() {
	now, n := t.now(), len(t.settings)
	if t.batch >= n {
		t.spent[t.batch%n] += now.Sub(t.since)
		t.used[t.batch%n]++
	}
	t.batch++
	t.since = now
	t.apply(int32(t.settings[t.batch%n]))
}

// choose applies the setting with the least mean time, the first if nothing was measured.
func (t *tuner) choose() {
	best, least := 0, time.Duration(0)
	for i, n := range t.used {
		if n == 0 {
			continue
		}
		if mean := t.spent[i] / time.Duration(n); least == 0 || mean < least {
			best, least = i, mean
		}
	}
	t.apply(int32(t.settings[best]))
}

// storageRead is how many bytes this process had read from storage so far, page faults included,
// what the page cache had not.
func storageRead() (n int64, err error) {
	f, err := os.Open("/proc/self/io") //lint:os the kernel's file
	if err != nil {
		return 0, fmt.Errorf("the kernel does not count reads: %w", err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), "read_bytes: "); ok {
			return strconv.ParseInt(v, 10, 64)
		}
	}
	return 0, errors.New("the kernel does not count reads")
}
