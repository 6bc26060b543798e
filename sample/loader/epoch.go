package loader

import (
	"slices"
	"time"

	"gdb/blockdev"
	"gdb/layout/neighborcache"
	"gdb/sample"
	"gdb/sample/rowcache"
	"gdb/sample/stages"
)

// Sums are what batches took, added up. Stages overlap, so their times add up to more than Time.
type Sums struct {
	Time     time.Duration `json:"time"`
	Read     uint64        `json:"read"` // bytes, by the device
	Requests uint64        `json:"requests"`
	Hits     uint64        `json:"hits"`
	Lists    uint64        `json:"lists"`     // asked of the neighbor cache
	ListHits uint64        `json:"list_hits"` // found there
	Sample   time.Duration `json:"sample"`
	Gather   time.Duration `json:"gather"`
	Compute  time.Duration `json:"compute"`
	Wait     time.Duration `json:"wait"` // for batches
	IO       time.Duration `json:"io"`
	IOWait   time.Duration `json:"io_wait"` // of Wait, while reads were under way

	Stages []stages.StageStats `json:"stages"`
}

// Epoch is the batches of an epoch, or what is left of it. It measures them from the counters of
// all that makes them.
type Epoch struct {
	sample.Batches
	loader *Loader
	begun  time.Time
	dev    blockdev.Stats
	cache  rowcache.Stats
	nbrs   neighborcache.Stats
	stats  sample.PipelineStats
}

// measure begins to measure, before the batches do: a pipeline works before it is asked for one,
// and all of that counts.
func (l *Loader) measure() *Epoch {
	return &Epoch{loader: l, begun: time.Now(), dev: l.src.Device.Stats(), cache: l.CacheStats(),
		nbrs: l.src.Neighbors()}
}

// Lap adds what was measured since the last lap to sums.
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

// stage is a stage's statistics: nothing if there is none of that name.
func stage(s sample.PipelineStats, name string) stages.StageStats {
	for _, st := range s.Stages {
		if st.Name == name {
			return st
		}
	}
	return stages.StageStats{}
}

// addStage adds what a stage did since before.
func (s *Sums) addStage(now, before stages.StageStats) {
	i := slices.IndexFunc(s.Stages, func(st stages.StageStats) bool { return st.Name == now.Name })
	if i < 0 {
		i = len(s.Stages)
		s.Stages = append(s.Stages, stages.StageStats{Name: now.Name})
	}
	st := &s.Stages[i]
	st.Workers = now.Workers
	st.Done += now.Done - before.Done
	st.Busy += now.Busy - before.Busy
	st.Starved += now.Starved - before.Starved
	st.Blocked += now.Blocked - before.Blocked
}
