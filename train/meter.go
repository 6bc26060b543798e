package train

import (
	"slices"
	"time"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/sample"
	"gdb/train/runs"
	"gdb/train/task"
)

// meter measures an epoch, or what is left of it, from the counters of its parts.
type meter struct {
	in    *inputs
	pipe  sample.Batches
	cache func() sample.CacheStats
	begun time.Time
	dev   blockdev.Stats
	feat  sample.CacheStats
	nbrs  layout.NeighborStats
	stats sample.PipelineStats
}

// startMeter begins to measure, before the batches do: see follow.
func (t *trainer) startMeter() *meter {
	return &meter{in: t.in, cache: t.cacheStats, begun: time.Now(), dev: t.in.dev.Stats(),
		feat: t.cacheStats(), nbrs: t.in.neighbors()}
}

// follow takes the batches that are measured. A new pipeline works before it is asked for a batch,
// and all of that counts; superbatches have figures of epochs before, and wait to be asked.
func (m *meter) follow(pipe sample.Batches) {
	m.pipe = pipe
	if _, ok := pipe.(*sample.Pipeline); !ok {
		m.feat, m.stats = m.cache(), pipe.Stats()
	}
}

// lap adds what was measured since the last lap to sums.
func (m *meter) lap(s *epochSums) {
	now, dev, feat, stats := time.Now(), m.in.dev.Stats(), m.cache(), m.pipe.Stats()
	nbrs := m.in.neighbors()
	s.Time += now.Sub(m.begun)
	s.Read += dev.Bytes - m.dev.Bytes
	s.IO += dev.Wait - m.dev.Wait
	s.Requests += feat.Requests - m.feat.Requests
	s.Hits += feat.Hits - m.feat.Hits
	s.Lists += nbrs.Requests - m.nbrs.Requests
	s.ListHits += nbrs.Hits - m.nbrs.Hits
	wait := stage(stats, "step").Starved - stage(m.stats, "step").Starved
	s.Wait += wait
	s.IOWait += min(wait, dev.Wait-m.dev.Wait)
	for _, name := range []string{"sample", "plan"} {
		s.Sample += stage(stats, name).Busy - stage(m.stats, name).Busy
	}
	for _, name := range []string{"read", "gather", "sweep"} {
		s.Gather += stage(stats, name).Busy - stage(m.stats, name).Busy
	}
	s.Compute += stage(stats, "step").Busy - stage(m.stats, "step").Busy
	for _, st := range stats.Stages {
		s.addStage(st, stage(m.stats, st.Name))
	}
	m.begun, m.dev, m.feat, m.nbrs, m.stats = now, dev, feat, nbrs, stats
}

// stop is the last lap.
func (m *meter) stop(s *epochSums) { m.lap(s) }

// stage is a stage's statistics: nothing if there is none of that name.
func stage(s sample.PipelineStats, name string) sample.StageStats {
	for _, st := range s.Stages {
		if st.Name == name {
			return st
		}
	}
	return sample.StageStats{}
}

// addStage adds what a stage did since before.
func (s *epochSums) addStage(now, before sample.StageStats) {
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

// stageTimes are the stages' times in a whole epoch.
func (s *epochSums) stageTimes() (all []runs.StageTimes) {
	for _, st := range s.Stages {
		t := runs.StageTimes{Name: st.Name, Workers: st.Workers, Busy: st.Busy.Seconds(),
			Starved: st.Starved.Seconds(), Blocked: st.Blocked.Seconds()}
		rest := max(0, float64(st.Workers)*s.Time.Seconds()-t.Busy-t.Starved-t.Blocked)
		if st.Name == "sample" || st.Name == "plan" || st.Name == "sweep" {
			t.Blocked += rest
		} else {
			t.Starved += rest
		}
		all = append(all, t)
	}
	return all
}

// epoch is the record of a whole epoch.
func (s *epochSums) epoch(epoch int) runs.Epoch {
	rec := runs.Epoch{Epoch: epoch, Loss: s.Loss / float64(s.Rows), Time: s.Time.Seconds(),
		Sampled: s.Edges, Read: s.Read, Nodes: s.Nodes, Batches: s.Batches,
		Sample: s.Sample.Seconds(), Gather: s.Gather.Seconds(), Compute: s.Compute.Seconds(),
		Wait: s.Wait.Seconds(), IO: s.IO.Seconds(), Stages: s.stageTimes()}
	rec.Train, _ = task.F1(s.Hit, s.Wrong,
		s.Missed) // no label predicted nor true is a 0 of no weight
	if s.Requests > 0 {
		rec.Hit = float64(s.Hits) / float64(s.Requests)
	}
	if s.Lists > 0 {
		hit := float64(s.ListHits) / float64(s.Lists)
		rec.NeighborHit, rec.Lists = &hit, s.Lists
	}
	if s.Time > 0 {
		rec.IOWait = s.IOWait.Seconds() / s.Time.Seconds()
	}
	return rec
}
