package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout/rowfile"
	"gdb/sample"
	"gdb/sample/cachesim"
	"gdb/sample/rowcache"
)

// DeviceUseOptions configure the benchmark of gathering feature rows of a store.
type DeviceUseOptions struct {
	Workload
	// Batches is how many batches are gathered in a round. Default 3.
	Batches int
	// Rounds is how many rounds are measured, once the cache is full. Default 3.
	Rounds int
	// Caches are the feature caches to gather through, of those that Caches lists. Default none.
	Caches []string
	// CacheBytes is the memory of each. Default a tenth of that of all features.
	CacheBytes int64
	// Threads is how many goroutines copy rows. Default 1.
	Threads int
}

// Caches returns the feature caches that gathering can be measured with. Belady's is not among
// them: it knows the batches of a whole epoch ahead.
func Caches() []string {
	return []string{cachesim.None, staticCache, sieveCache}
}

// Validate reports a cache that is not among Caches.
func (o *DeviceUseOptions) Validate() error {
	for _, name := range o.Caches {
		if slices.Contains(Caches(), name) {
			continue
		}
		hint := simulatedHint(name)
		if name == cachesim.Belady.Name {
			hint = "; bench cache and bench train measure belady"
		}
		return optionErrorf("bench: gather: unknown cache %q: possible are %s%s", name,
			strings.Join(Caches(), ", "), hint)
	}
	return nil
}

// simulatedHint says where a policy is measured that trainings do not have; "" for other names.
func simulatedHint(name string) string {
	if slices.Contains(cachesim.PolicyNames(), name) {
		return "; bench cache compares " + name + " with them"
	}
	return ""
}

func (o *DeviceUseOptions) setDefaults(whole int64) {
	o.Workload.setDefaults()
	if len(o.Caches) == 0 {
		o.Caches = []string{cachesim.None}
	}
	o.Batches = cmp.Or(o.Batches, 3)
	o.Rounds = cmp.Or(o.Rounds, 3)
	o.Threads = cmp.Or(o.Threads, 1)
	o.CacheBytes = cmp.Or(o.CacheBytes, max(1, whole/10))
}

// DeviceUse gathers batches' feature rows as training does, and reads the same again without what
// gathering does besides: the very same reads, in random order, neither verified nor copied. The
// two take turns, round by round; device_use is the median of the rounds' ratios. Before, each
// batch's rows are read once, since a disk, or the host of a virtual one, that remembers what was
// read would favor the second. sector_ratio is what was read, over the sectors of the rows that
// were not cached; more than 1 are small gaps between rows, which are read along. merge_gain is the
// time that those sectors alone take, in apart_ratio times as many reads, over that of what was
// read.
func DeviceUse(ctx context.Context, opt DeviceUseOptions) (r *Report, err error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	whole, err := FeatureBytes(opt.Store)
	if err != nil {
		return nil, err
	}
	opt.setDefaults(whole)
	d := &deviceUse{DeviceUseOptions: opt, budget: opt.budget(),
		rng: rand.New(rand.NewPCG(opt.Seed, 1))}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.open(ctx); err != nil {
		return nil, fmt.Errorf("bench: gather: %w", err)
	}
	r = newReport("gather", "cache", "backend", "depth", "nodes_per_batch", "hit_ratio", "reads",
		"bytes_per_read", "reads_per_s", "bytes_per_s", "raw_reads_per_s", "raw_bytes_per_s",
		"device_use", "sector_ratio", "apart_ratio", "merge_gain")
	for _, cache := range opt.Caches {
		row, err := d.cache(ctx, cache)
		if err != nil {
			return nil, fmt.Errorf("bench: gather with cache %s: %w", cache, err)
		}
		r.Rows = append(r.Rows, row)
	}
	return r, nil
}

// deviceUse is one benchmark under way.
type deviceUse struct {
	DeviceUseOptions
	budget   *mem.Budget
	rng      *rand.Rand
	recorder *recorder
	batches  *trainSampler
	rows     missedRows
	out      *mem.Arena

	next  uint64            // the batch to sample next, over all epochs
	lists [][]sample.NodeID // of the round
	held  mem.Account       // lists

	apart     []extent
	apartHeld mem.Account
}

// open opens the store's features through a device that notes what is read, and a sampler.
func (d *deviceUse) open(ctx context.Context) (err error) {
	meta := d.Store.Meta().Features[0]
	d.held = mem.NewAccount(d.budget, "lists of nodes")
	d.apartHeld = mem.NewAccount(d.budget, "list of sectors")
	d.recorder = newRecorder(d.Device, d.Store.Path(meta.Path), d.budget)
	if d.rows.Reader, err = rowfile.Open(ctx, d.Store, d.recorder, meta, d.budget); err != nil {
		return err
	}
	d.rows.mu.held = mem.NewAccount(d.budget, "lists of missing nodes")
	d.batches, err = d.sampler(ctx, d.budget)
	return err
}

func (d *deviceUse) close() error {
	var err error
	if d.batches != nil {
		err = d.batches.close()
	}
	if d.rows.Reader != nil {
		err = errors.Join(err, d.rows.Close())
	}
	if d.out != nil {
		err = errors.Join(err, d.out.Free())
	}
	return err
}

// useRound is what one round has measured.
type useRound struct {
	nodes, reads, bytes    int64
	runs, sectors          int64 // reads and bytes without any gap
	gather, raw, separated time.Duration
}

// perSecond returns a rate.
func perSecond(n int64, took time.Duration) float64 { return float64(n) / took.Seconds() }

// cache measures gathering through one cache.
func (d *deviceUse) cache(ctx context.Context, name string) (row Row, err error) {
	f, err := d.features(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	d.next = 0 // each cache is asked for the same
	if err := d.warm(ctx, f); err != nil {
		return nil, err
	}
	before, rounds := f.Stats(), make([]useRound, d.Rounds)
	for i := range rounds {
		if rounds[i], err = d.round(ctx, f); err != nil {
			return nil, err
		}
	}
	after, info := f.Stats(), d.Device.Info()
	row = useRow(rounds)
	row["cache"], row["backend"], row["depth"] = name, string(info.Backend), info.QueueDepth
	row["hit_ratio"] = float64(after.Hits-before.Hits) / float64(after.Requests-before.Requests)
	row["nodes_per_batch"] = float64(row["nodes"].(int64)) / float64(d.Batches*d.Rounds)
	return row, nil
}

// warm gathers until the cache is full, or for an epoch: what is measured begins with memory that
// was touched, and with rows that leave for others.
func (d *deviceUse) warm(ctx context.Context, f rowcache.Features) error {
	for {
		used := f.Stats().Used
		if err := d.draw(ctx); err != nil {
			return err
		}
		if _, err := d.gather(ctx, f); err != nil {
			return err
		}
		d.rows.apart(nil)
		if f.Stats().Used == used || d.next >= d.batchesOfEpoch() {
			return nil
		}
	}
}

// gather gathers the batches of the round.
func (d *deviceUse) gather(ctx context.Context, f rowcache.Features) (time.Duration, error) {
	d.recorder.take()
	out, begun := mem.View[float32](d.out.Bytes()), time.Now()
	for _, list := range d.lists {
		if err := f.Gather(ctx, list, out[:len(list)*f.Dim()]); err != nil {
			return 0, err
		}
	}
	return time.Since(begun), nil
}

// useRow sums rounds up.
func useRow(rounds []useRound) Row {
	var sum useRound
	for _, r := range rounds {
		sum.reads, sum.bytes, sum.nodes = sum.reads+r.reads, sum.bytes+r.bytes, sum.nodes+r.nodes
		sum.runs, sum.sectors = sum.runs+r.runs, sum.sectors+r.sectors
	}
	row := Row{"rounds": len(rounds), "nodes": sum.nodes, "reads": sum.reads, "bytes": sum.bytes,
		"sector_bytes": sum.sectors}
	if sum.reads == 0 {
		for _, name := range []string{"bytes_per_read", "reads_per_s", "bytes_per_s",
			"raw_reads_per_s", "raw_bytes_per_s", "device_use", "sector_ratio", "apart_ratio",
			"merge_gain"} {
			row[name] = nil
		}
		row["why"] = "nothing was missing: all rows were cached"
		return row
	}
	of := func(value func(r useRound) float64) float64 { return median(rounds, value) }
	row["bytes_per_read"] = float64(sum.bytes) / float64(sum.reads)
	row["sector_ratio"] = float64(sum.bytes) / float64(sum.sectors)
	row["apart_ratio"] = float64(sum.runs) / float64(sum.reads)
	row["reads_per_s"] = of(func(r useRound) float64 { return perSecond(r.reads, r.gather) })
	row["bytes_per_s"] = of(func(r useRound) float64 { return perSecond(r.bytes, r.gather) })
	row["raw_reads_per_s"] = of(func(r useRound) float64 { return perSecond(r.reads, r.raw) })
	row["raw_bytes_per_s"] = of(func(r useRound) float64 { return perSecond(r.bytes, r.raw) })
	row["device_use"] = of(func(r useRound) float64 { return float64(r.raw) / float64(r.gather) })
	row["merge_gain"] = of(func(r useRound) float64 {
		return float64(r.separated) / float64(r.raw)
	})
	return row
}

// round samples batches, reads their rows, gathers them, and repeats the reads of that.
func (d *deviceUse) round(ctx context.Context, f rowcache.Features) (r useRound, err error) {
	if err := d.draw(ctx); err != nil {
		return r, err
	}
	out := mem.View[float32](d.out.Bytes())
	for _, list := range d.lists {
		if err := d.rows.Reader.Gather(ctx, list, nil, out[:len(list)*f.Dim()]); err != nil {
			return r, err
		}
		r.nodes += int64(len(list))
	}
	if r.gather, err = d.gather(ctx, f); err != nil {
		return r, err
	}
	file, reads := d.recorder.take()
	r.reads, r.bytes = int64(len(reads)), bytesOf(reads)
	if r.raw, err = d.replay(ctx, file, reads); err != nil {
		return r, err
	}
	d.apart = d.rows.apart(d.apart[:0])
	if err := d.apartHeld.AtLeast(8 * int64(cap(d.apart))); err != nil {
		return r, err
	}
	r.runs, r.sectors = int64(len(d.apart)), bytesOf(d.apart)
	r.separated, err = d.replay(ctx, file, d.apart)
	return r, err
}

// replay shuffles reads and issues them.
func (d *deviceUse) replay(ctx context.Context, file blockdev.File,
	reads []extent) (time.Duration, error) {
	d.rng.Shuffle(len(reads), func(i, j int) { reads[i], reads[j] = reads[j], reads[i] })
	return replay(ctx, d.Device, file, reads, d.budget)
}

// draw samples the batches of the next round, and makes room for the rows of the largest.
func (d *deviceUse) draw(ctx context.Context) error {
	var dense sample.Dense
	var seeds []sample.NodeID
	largest, bytes := 0, int64(0)
	d.lists = d.lists[:0]
	for range d.Batches {
		order, err := sample.EpochOrder(d.batches.seeds, d.Seed, d.next/d.batchesOfEpoch(), d.Batch)
		if err != nil {
			return err
		}
		i := d.next % order.Batches()
		seeds = order.Seeds(i, seeds[:0])
		if err := d.batches.Sample(ctx, order.Epoch(), i, seeds, &dense); err != nil {
			return err
		}
		d.lists = append(d.lists, append([]sample.NodeID(nil), dense.NodeIDs...))
		largest, bytes = max(largest, len(dense.NodeIDs)), bytes+4*int64(len(dense.NodeIDs))
		d.next++
	}
	if err := d.held.AtLeast(bytes); err != nil {
		return err
	}
	need := int64(largest) * int64(d.rows.Meta().Dim) * 4
	if d.out != nil && int64(len(d.out.Bytes())) >= need {
		return nil
	}
	if d.out != nil {
		if err := d.out.Free(); err != nil {
			return err
		}
	}
	var err error
	d.out, err = mem.NewArena(d.budget, "features of a batch", need+need/16)
	return err
}

func (d *deviceUse) batchesOfEpoch() uint64 {
	return uint64((len(d.batches.seeds) + d.Batch - 1) / d.Batch)
}

// features returns the rows of the store behind a cache.
func (d *deviceUse) features(ctx context.Context, cache string) (rowcache.Features, error) {
	opt := rowcache.Options{Bytes: d.CacheBytes, Threads: d.Threads, Budget: d.budget}
	switch cache {
	case cachesim.None:
		return rowcache.NewDirect(&d.rows), nil
	case staticCache:
		rows := rowcache.RowsIn(d.CacheBytes, d.rows.Meta().Dim, 0)
		hot, err := rowcache.FindHot(ctx, d.Store, d.Device,
			int(min(uint64(rows), d.Store.Meta().Nodes)), d.budget)
		if err != nil {
			return nil, err
		}
		return rowcache.New(ctx, &d.rows, rowcache.NewStatic(hot), opt)
	}
	return rowcache.New(ctx, &d.rows, rowcache.NewSIEVE(), opt)
}

const (
	// staticCache is the cache of the nodes that stand in the most lists.
	staticCache = "static"
	sieveCache  = "sieve"
)
