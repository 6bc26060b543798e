package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"gdb/blockdev"
	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/sample/rowcache"
	"gdb/train"
	"gdb/train/model"
	"gdb/train/plan"
	"gdb/train/probe"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TrainJob is one system to measure, as it is handed to the process that does.
type TrainJob struct {
	Store, System, Model string
	Config               train.Config
	Pace                 blockdev.Pace
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
	store, err := layout.OpenLive(ctx, vfs.Default, job.Store)
	if err != nil {
		return nil, err
	}
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Backend(job.Config.IO)})
	if err != nil {
		return nil, err
	}
	dev = blockdev.Paced(dev, job.Pace)
	defer func() { err = errors.Join(err, dev.Close()) }()
	m := &measurement{job: job, row: Row{}}
	if system.mapped {
		return m.row, m.runMapped(ctx, store, dev)
	}
	cfg := job.Config
	cfg.NeighborsAhead = true // the time of opening is apart
	opening := m.begin()
	l, err := openFeed(ctx, store, dev, cfg, job.Model != "none")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	m.opened(opening)
	if err := m.planned(l.plan, system.unbounded); err != nil {
		return nil, err
	}
	return m.row, m.epochs(ctx, l, nil)
}

// planned notes what was planned, which for a system without a bound must hold all features.
func (m *measurement) planned(p *plan.Plan, unbounded bool) error {
	if unbounded && p.Cache != "all" {
		return fmt.Errorf("bench: this machine has no room for all features: %s", p)
	}
	m.row["plan"], m.row["feature_cache_bytes"] = p.String(), p.Features
	asked := m.job.Config.FeatureCache
	if p.Features < asked && p.Cache != "all" && p.Cache != "none" {
		m.why(fmt.Sprintf("the feature cache has %s of the %s asked for: the plan gives the "+
			"rest to batches", mem.FormatSize(p.Features), mem.FormatSize(asked)))
	}
	if f := p.Forecast; f != nil {
		m.row["planned_s"], m.row["planned_read_bytes"] = f.Time, f.Read
		m.row["planned_hit_ratio"], m.row["chosen"] = f.Hit, p.Why()
	}
	return nil
}

// measurement fills the row of one system.
type measurement struct {
	job TrainJob
	row Row
	crc uint32 // of all batches so far
}

// began is where the counters stood when something began.
type began struct {
	at            time.Time
	read, written int64
	err           error // if the kernel does not count
}

func (m *measurement) begin() began {
	b := began{at: time.Now()}
	b.read, b.written, b.err = storageBytes()
	return b
}

// opened ends what comes before the first epoch.
func (m *measurement) opened(from began) {
	now := m.begin()
	m.row["open_s"] = now.at.Sub(from.at).Seconds()
	if now.err == nil {
		m.row["open_read_bytes"] = now.read - from.read
	}
}

// runMapped measures the mmap baseline. Its first epoch finds how many goroutines are best.
func (m *measurement) runMapped(ctx context.Context, store *layout.Store,
	dev blockdev.Device) (err error) {
	opening := m.begin()
	most := mappedWorkers[len(mappedWorkers)-1]
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(most + m.job.Config.Threads))
	g, err := openMapped(store, mappedWorkers[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	l, err := openMappedFeed(ctx, store, dev, g, m.job.Config, m.job.Model != "none")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	m.opened(opening)
	if err := m.epochs(ctx, l, newTuner(mappedWorkers, g.workers.Store)); err != nil {
		return err
	}
	m.row["readers"] = g.workers.Load()
	m.why("io_wait_s, hit_ratio: page faults are the kernel's")
	if m.job.Config.Epochs == 1 {
		m.why("the one epoch is also that which finds the number of readers")
	}
	return nil
}

func (m *measurement) why(reason string) { m.row["why"] = joinWhy(m.row["why"], reason) }

// epochs runs all epochs and fills in the figures: means of all epochs, since what a system does
// ahead or only once is in one of them, and in "epochs" those of each.
func (m *measurement) epochs(ctx context.Context, l *feed, tune *tuner) error {
	var all []Row
	var sum epochStats
	mapped := tune != nil
	first := m.begin()
	for range m.job.Config.Epochs {
		from := m.begin()
		st, loss, err := m.epoch(ctx, l, tune)
		if err != nil {
			return err
		}
		if tune != nil {
			tune.choose()
			tune = nil
		}
		one := m.figures(&st, 1, from, mapped)
		if m.job.Model != "none" {
			one["loss"] = loss
		}
		all = append(all, one)
		add(&sum, &st)
	}
	n := len(all)
	maps.Copy(m.row, m.figures(&sum, n, first, mapped))
	_, peak := mem.RSS()
	m.row["peak_rss_bytes"], m.row["epochs"] = peak, all
	m.row["last_epoch_s"], m.row["batches"] = all[n-1]["epoch_s"], sum.Batches/n
	m.row["batch_s"] = sum.Time.Seconds() / float64(sum.Batches)
	m.row["total_s"] = m.row["open_s"].(float64) + sum.Time.Seconds()
	m.row["batches_crc"] = fmt.Sprintf("%08x", m.crc)
	if first.err != nil {
		m.why("bytes_read, bytes_written: " + first.err.Error())
	}
	if m.job.Model == "none" {
		m.why("compute_s: no model")
	}
	return nil
}

// epochStats are the figures of an epoch.
type epochStats struct {
	loader.Sums
	Batches      int
	Nodes, Edges uint64
}

// add adds the figures of an epoch up.
func add(sum, st *epochStats) {
	sum.Batches, sum.Time = sum.Batches+st.Batches, sum.Time+st.Time
	sum.Nodes, sum.Edges = sum.Nodes+st.Nodes, sum.Edges+st.Edges
	sum.Requests, sum.Hits = sum.Requests+st.Requests, sum.Hits+st.Hits
	sum.Sample, sum.Gather = sum.Sample+st.Sample, sum.Gather+st.Gather
	sum.Compute, sum.IOWait = sum.Compute+st.Compute, sum.IOWait+st.IOWait
}

// figures returns the means of an epoch over n epochs. What cannot be known is nil.
func (m *measurement) figures(st *epochStats, n int, from began, mapped bool) Row {
	mean := func(d time.Duration) float64 { return d.Seconds() / float64(n) }
	row := Row{"epoch_s": mean(st.Time), "sample_s": mean(st.Sample), "gather_s": mean(st.Gather),
		"compute_s": nil, "io_wait_s": nil, "hit_ratio": nil, "bytes_read": nil,
		"bytes_written": nil, "nodes": st.Nodes / uint64(n), "edges": st.Edges / uint64(n)}
	if m.job.Model != "none" {
		row["compute_s"] = mean(st.Compute)
	}
	if !mapped {
		row["io_wait_s"] = mean(st.IOWait)
		if st.Requests > 0 {
			row["hit_ratio"] = float64(st.Hits) / float64(st.Requests)
		}
	}
	if now := m.begin(); now.err == nil {
		row["bytes_read"] = (now.read - from.read) / int64(n)
		row["bytes_written"] = (now.written - from.written) / int64(n)
	}
	return row
}

// epoch loads the batches of one epoch, and trains on them if there is a model.
func (m *measurement) epoch(ctx context.Context, l *feed, tune *tuner) (st epochStats,
	loss float64, err error) {
	e, err := l.epoch(ctx)
	if err != nil {
		return st, 0, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for {
		b, err := e.Next(ctx)
		if errors.Is(err, io.EOF) {
			e.Lap(&st.Sums)
			return st, loss / float64(max(st.Batches, 1)), nil
		}
		if err != nil {
			return st, 0, err
		}
		m.sum(b)
		st.Batches++
		st.Nodes += uint64(len(b.Dense.NodeIDs))
		st.Edges += uint64(len(b.Dense.Nbrs))
		if l.step != nil {
			var of float64
			of, err = l.step(b)
			loss += of
		}
		b.Release()
		if err != nil {
			return st, 0, err
		}
		if tune != nil {
			tune.next()
		}
	}
}

// sumEvery is how many edges there are to one whose neighbor's features are looked at: few enough
// that the look takes no time.
const sumEvery = 1024

// sum adds a batch to the checksum of all: its nodes, edges and labels, and some of its features if
// steps are computed on the CPU.
// Systems that were given the same work have the same sum.
func (m *measurement) sum(b *sample.Batch) {
	d := &b.Dense
	for _, part := range [][]byte{mem.BytesOf(b.Seeds), mem.BytesOf(d.NodeIDs),
		mem.BytesOf(d.NbrOffsets), mem.BytesOf(d.ReprMap), mem.BytesOf(b.Labels),
		mem.BytesOf(b.Multi), mem.BytesOf(b.Targets)} {
		m.crc = crc32.Update(m.crc, castagnoli, part)
	}
	if m.job.Model != "none" && m.job.Config.Backend != backend.CPU {
		// Rows may be on the device, or on their way to it.
		return
	}
	for k := 0; k < len(d.ReprMap); k += sumEvery { // Nbrs may be rows of the table
		table, row := b.X, int(d.ReprMap[k])
		if b.Table != nil {
			table, row = b.Table, int(b.TableRows[k])
		}
		m.crc = crc32.Update(m.crc, castagnoli, mem.BytesOf(table[row*b.Dim:(row+1)*b.Dim]))
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// tuner finds the best of some settings: they take turns, one batch each, so that a cache that
// fills up favors none.
type tuner struct {
	settings []int
	apply    func(int32)
	took     []time.Duration
	used     []int
	batch    int
	since    time.Time
	now      func() time.Time
}

func newTuner(settings []int, apply func(int32)) *tuner {
	return &tuner{settings: settings, apply: apply, took: make([]time.Duration, len(settings)),
		used: make([]int, len(settings)), since: time.Now(), now: time.Now}
}

// next ends a batch. The first turn of each setting does not count: the next batch was sampled
// with the setting before.
func (t *tuner) next() {
	now, n := t.now(), len(t.settings)
	if t.batch >= n {
		t.took[t.batch%n] += now.Sub(t.since)
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
		if mean := t.took[i] / time.Duration(n); least == 0 || mean < least {
			best, least = i, mean
		}
	}
	t.apply(int32(t.settings[best]))
}

// storageBytes returns what this process had read from storage so far, page faults included, what
// the page cache had not, and what it had written.
func storageBytes() (read, written int64, err error) {
	f, err := os.Open("/proc/self/io") //lint:os the kernel's file
	if err != nil {
		return 0, 0, fmt.Errorf("the kernel does not count: %w", err)
	}
	defer f.Close()
	found := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		for name, to := range map[string]*int64{"read_bytes: ": &read, "write_bytes: ": &written} {
			if v, ok := strings.CutPrefix(s.Text(), name); ok {
				if *to, err = strconv.ParseInt(v, 10, 64); err != nil {
					return 0, 0, err
				}
				found++
			}
		}
	}
	if found != 2 {
		return 0, 0, errors.New("the kernel does not count what a process reads and writes")
	}
	return read, written, nil
}

// epochOf is the batches of an epoch, and what they took: a loader.Epoch, or the like.
type epochOf interface {
	sample.Batches
	Lap(s *loader.Sums)
}

// feed is what feeds a system: batches, and where there is a model the steps on them.
type feed struct {
	plan  *plan.Plan // nil for the mmap baseline
	epoch func(ctx context.Context) (epochOf, error)
	step  func(b *sample.Batch) (loss float64, err error) // nil without a model
	close func() error
}

// openFeed opens the batches that a training would have, with or without a model.
func openFeed(ctx context.Context, store *layout.Store, dev blockdev.Device, cfg train.Config,
	withModel bool) (*feed, error) {
	if !withModel {
		return openBatches(ctx, store, dev, cfg)
	}
	t, err := train.Open(ctx, store, dev, cfg)
	if err != nil {
		return nil, err
	}
	return &feed{plan: t.Plan(), step: t.Step, close: t.Close,
		epoch: func(ctx context.Context) (epochOf, error) { return t.Epoch(ctx) }}, nil
}

// openBatches opens batches that no step follows. Rows that the first layer of the model would read
// where they are kept stay there.
func openBatches(ctx context.Context, store *layout.Store, dev blockdev.Device,
	cfg train.Config) (f *feed, err error) {
	if cfg.Threads == 0 {
		cfg.Threads = runtime.NumCPU()
	}
	if cfg.Memory == 0 {
		cfg.Memory = mem.Available() / 2
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := store.Meta()
	if len(m.Features) == 0 || m.Labels == nil {
		return nil, fmt.Errorf("bench: %s has no features or no labels: there is nothing to load",
			store.Path())
	}
	dims := model.Of(&cfg).Dims(m.Features[0].Dim, len(m.Labels.Classes))
	src := loader.NewSource(store, dev, mem.NewProcessBudget(cfg.Memory))
	defer func() {
		if err != nil {
			err = errors.Join(err, src.Close())
		}
	}()
	src.LayerSize, src.PackRows = cfg.LayerSize, cfg.PacksFeatures()
	byRelation, err := sample.RelationFanouts(cfg.FanoutBy, m)
	if err != nil {
		return nil, err
	}
	c := probe.Config{Fanout: cfg.Fanout, ByRelation: byRelation, Seed: cfg.Seed,
		Remeasure: cfg.Remeasure, Profiles: cfg.Profiles,
		StepName: fmt.Sprint("none", cfg.Fanout, cfg.LayerSize, dims,
			cfg.Batch, cfg.Threads, cfg.Split, cfg.Precision)}
	c.Memory, c.Settings = cfg.Memory, plan.SettingsOf(&cfg)
	c.EntryBytes, c.InPlaceResident = src.EntryBytes(), model.Of(&cfg).InPlaceResident(dims)
	opened, p, err := probe.Open(ctx, src, cfg.Split, c)
	if err != nil {
		return nil, err
	}
	epoch := uint64(0)
	return &feed{plan: p,
		epoch: func(ctx context.Context) (epochOf, error) {
			epoch++
			return opened.Epoch(ctx, epoch-1, 0)
		},
		close: func() error { return errors.Join(opened.Close(), src.Close()) }}, nil
}

// openMappedFeed opens batches of mapped files, whose memory is not bounded. Features are gathered
// when a batch is asked for, into one buffer, so that the page cache has all that is left.
func openMappedFeed(ctx context.Context, store *layout.Store, dev blockdev.Device, g *mapped,
	cfg train.Config, withModel bool) (f *feed, err error) {
	src := loader.NewSource(store, dev, mem.NewBudget(0))
	src.Topology, src.Features, src.LayerSize = g, mappedRows{g}, cfg.LayerSize
	r := &gatherer{rows: src.Features, budget: src.Budget}
	f = &feed{}
	steps := func() error { return nil }
	f.close = func() error { return errors.Join(steps(), r.free(), src.Close()) }
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	seeds, err := loader.TrainNodes(ctx, store, cfg.Split, src.Budget)
	if err != nil {
		return nil, err
	}
	if err := src.OpenLabels(ctx); err != nil {
		return nil, err
	}
	if withModel {
		src.Extras = model.Of(&cfg).Spec(model.Of(&cfg).Dims(store.Meta().Features[0].Dim,
			1)).Extras()
		s, err := train.NewStepper(cfg, store.Meta(), src.Budget)
		if err != nil {
			return nil, err
		}
		steps, f.step = s.Close, s.Step
	}
	batches := loader.New(src, loader.Config{Seeds: seeds, Batch: cfg.Batch, Fanout: cfg.Fanout,
		Seed: cfg.Seed, Ready: plan.ReadyLeast, Later: true})
	epoch := uint64(0)
	f.epoch = func(ctx context.Context) (epochOf, error) {
		epoch++
		e, err := batches.Epoch(ctx, epoch-1, 0)
		return &gathered{Epoch: e, by: r}, err
	}
	return f, nil
}

// gatherer gathers the features of batches into one buffer.
type gatherer struct {
	rows   rowcache.Features
	budget *mem.Budget
	arena  *mem.Arena
	took   time.Duration // since the last lap
}

// gather fills in the features of a batch that came without.
func (r *gatherer) gather(ctx context.Context, b *sample.Batch) error {
	begun, n := time.Now(), len(b.Dense.NodeIDs)*r.rows.Dim()
	if r.arena == nil || len(r.arena.Bytes()) < 4*n {
		err := r.free()
		if err == nil {
			r.arena, err = mem.NewArena(r.budget, "features of a batch", int64(4*n+n/2))
		}
		if err != nil {
			return err
		}
	}
	b.Dim, b.X = r.rows.Dim(), mem.View[float32](r.arena.Bytes())[:n:n]
	err := r.rows.Gather(ctx, b.Dense.NodeIDs, b.X)
	r.took += time.Since(begun)
	return err
}

func (r *gatherer) free() error {
	a := r.arena
	if r.arena = nil; a == nil {
		return nil
	}
	return a.Free()
}

// gathered is an epoch whose batches are gathered when they are asked for.
type gathered struct {
	*loader.Epoch
	by *gatherer
}

// Next returns the next batch with its features.
func (g *gathered) Next(ctx context.Context) (*sample.Batch, error) {
	b, err := g.Epoch.Next(ctx)
	if err != nil {
		return nil, err
	}
	return b, g.by.gather(ctx, b)
}

// Lap counts the time of gathering as such: the loader takes it for the consumer's.
func (g *gathered) Lap(s *loader.Sums) {
	g.Epoch.Lap(s)
	s.Gather, s.Compute = s.Gather+g.by.took, s.Compute-g.by.took
	g.by.took = 0
}
