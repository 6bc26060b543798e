package loader

import (
	"slices"
	"time"

	"gdb/blockdev"
	"gdb/layout/neighborcache"
	"gdb/sample"
	"gdb/sample/rowcache"
)

// Sums add up what batches took. Stages overlap, so their times may sum to more than Time.
type Sums struct {
	Time     time.Duration `json:"time"`
	Read     uint64        `json:"read"` // bytes read by the device
	Requests uint64        `json:"requests"`
	Hits     uint64        `json:"hits"`
	Lists    uint64        `json:"lists"`     // requests to the neighbor cache
	ListHits uint64        `json:"list_hits"` // requests that it answered
	Sample   time.Duration `json:"sample"`
	Gather   time.Duration `json:"gather"`
	Compute  time.Duration `json:"compute"`
	Wait     time.Duration `json:"wait"`    // time the step waited for batches
	IO       time.Duration `json:"io"`      // time in which reads were under way
	IOWait   time.Duration `json:"io_wait"` // the part of Wait in which reads were under way

	Stages []sample.StageStats `json:"stages"`
}

// Epoch hands out the batches of an epoch, or the rest of them, and measures what they take from
// the counters of the device, the caches and the pipeline.
type Epoch struct {
	sample.Batches
	loader *Loader
	begun  time.Time
	dev    blockdev.Stats
	cache  rowcache.Stats
	nbrs   neighborcache.Stats
	stats  sample.PipelineStats
}

// With returns an epoch that hands out other batches, and measures as much as this one.
func (e *Epoch) With(b sample.Batches) *Epoch {
	other := *e
	other.Batches = b
	return &other
}

// measure starts to measure. It comes before batches are started, because a pipeline works before
// it is asked for a batch, and all of that counts.
func (l *Loader) measure() *Epoch {
	return &Epoch{loader: l, begun: time.Now(), dev: l.src.Device.Stats(), cache: l.CacheStats(),
		nbrs: l.src.Neighbors()}
}

// Lap adds what was measured since the last lap to s.
func (e *Epoch) Lap(s *Sums) {
	src := e.loader.src
	now, dev, cache := time.Now(), src.Device.Stats(), e.loader.CacheStats()
	stats, nbrs := e.Stats(), src.Neighbors()
	s.Time += now.Sub(e.begun)
	s.Read += dev.Bytes - e.dev.Bytes
	s.IO += dev.Wait - e.dev.Wait
	s.Requests += cache.Requests - e.cache.Requests
	s.Hits += cache.Hits - e.cache.Hits
	s.Lists += nbrs.Requests - e.nbrs.Requests
	s.ListHits += nbrs.Hits - e.nbrs.Hits
	wait := stage(stats, "step").Starved - stage(e.stats, "step").Starved
	s.Wait += wait
	s.IOWait += min(wait, dev.Wait-e.dev.Wait)
	for _, name := range []string{"sample", "plan"} {
		s.Sample += stage(stats, name).Busy - stage(e.stats, name).Busy
	}
	for _, name := range []string{"read", "gather", "sweep"} {
		s.Gather += stage(stats, name).Busy - stage(e.stats, name).Busy
	}
	s.Compute += stage(stats, "step").Busy - stage(e.stats, "step").Busy
	for _, st := range stats.Stages {
		s.addStage(st, stage(e.stats, st.Name))
	}
	e.begun, e.dev, e.cache, e.nbrs, e.stats = now, dev, cache, nbrs, stats
}

// stage returns a stage's statistics, or zeros if there is no stage of this name.
func stage(s sample.PipelineStats, name string) sample.StageStats {
	for _, st := range s.Stages {
		if st.Name == name {
			return st
		}
	}
	return sample.StageStats{}
}

// addStage adds what a stage did between the statistics before and now.
func (s *Sums) addStage(now, before sample.StageStats) {
	i := slices.IndexFunc(s.Stages, func(st sample.StageStats) bool { return st.Name == now.Name })
	if i < 0 {
		i = len(s.Stages)
		s.Stages = append(s.Stages, sample.StageStats{Name: now.Name})
	}
	st := &s.Stages[i]
	st.Workers = now.Workers
	st.Done += now.Done - before.Done
	st.Busy += now.Busy - before.Busy
	st.Starved += now.Starved - before.Starved
	st.Blocked += now.Blocked - before.Blocked
}
