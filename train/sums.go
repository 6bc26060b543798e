package train

import (
	"fmt"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/plan"
	"gdb/train/runs"
)

// epochSums are sums over the steps of an epoch; a checkpoint keeps them.
type epochSums struct {
	loader.Sums
	Loss float64 `json:"loss"` // summed over the known rows
	Rows uint64  `json:"rows"`
	// Unknown is how many of Rows the unknown labels amount to.
	Unknown float64 `json:"unknown,omitempty"`
	Hit     uint64  `json:"hit"` // for the metric: micro-averaged counts
	Wrong   uint64  `json:"wrong"`
	Missed  uint64  `json:"missed"`
	// Squared and Absolute are, for labels that are numbers, sums over the errors of
	// standardized labels.
	Squared  float64 `json:"squared,omitempty"`
	Absolute float64 `json:"absolute,omitempty"`
	Batches  int     `json:"batches"`
	Edges    uint64  `json:"edges"`
	Nodes    uint64  `json:"nodes"`
	// Launches counts what the device was given in steps.
	Launches backend.Launches `json:"launches,omitzero"`
	// DeviceHits counts the rows that the device kept, and Sent the bytes that were sent to it.
	DeviceHits uint64 `json:"device_hits,omitempty"`
	Sent       uint64 `json:"sent,omitempty"`
	// Stale is about hidden states of earlier steps.
	Stale runs.Stale `json:"stale,omitzero"`
}

// addBatch adds the size of a part of a batch.
func (s *epochSums) addBatch(b *sample.Batch) {
	s.Edges += uint64(len(b.Dense.Nbrs))
	s.Nodes += uint64(len(b.Dense.NodeIDs))
}

// addLoss adds the loss and the score of a step.
func (s *epochSums) addLoss(o backend.Loss) {
	s.Loss += o.Mean * (float64(o.Rows) - o.Unknown)
	s.Rows += uint64(o.Rows)
	s.Unknown += o.Unknown
	s.Hit += o.Hit
	s.Wrong += o.Wrong
	s.Missed += o.Missed
	s.Squared += o.Squared
	s.Absolute += o.Absolute
}

// score returns the sums from which predictions in training are scored.
func (s *epochSums) score() *backend.Loss {
	return &backend.Loss{Rows: int(s.Rows), Hit: s.Hit, Wrong: s.Wrong, Missed: s.Missed,
		Squared: s.Squared, Absolute: s.Absolute}
}

// stageTimes returns the times of the stages in a whole epoch.
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

// epoch returns the record of a whole epoch.
func (s *epochSums) epoch(epoch int) runs.Epoch {
	rec := runs.Epoch{Epoch: epoch, Loss: s.Loss / (float64(s.Rows) - s.Unknown),
		Time: s.Time.Seconds(), Sampled: s.Edges, Read: s.Read, Nodes: s.Nodes, Batches: s.Batches,
		Sample: s.Sample.Seconds(), Gather: s.Gather.Seconds(), Compute: s.Compute.Seconds(),
		Wait: s.Wait.Seconds(), IO: s.IO.Seconds(), Stages: s.stageTimes()}
	if launches := runs.Launches(s.Launches); launches.Calls > 0 {
		rec.Launches = &launches
	}
	if s.Requests > 0 {
		rec.Hit = float64(s.Hits) / float64(s.Requests)
	}
	if s.Sent > 0 {
		rec.Sent = s.Sent
		rec.DeviceHit = float64(s.DeviceHits) / float64(max(1, s.Nodes))
		rec.Missed = (1 - rec.DeviceHit) * (1 - rec.Hit)
	}
	if s.Stale != (runs.Stale{}) {
		stale := s.Stale
		rec.Stale = &stale
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

// Totals holds what an epoch cost on average.
type Totals struct {
	Epochs  int     `json:"epochs"`
	Read    float64 `json:"read_bytes"`
	Hit     float64 `json:"hit"`
	Sample  float64 `json:"sample_s"`
	Gather  float64 `json:"gather_s"`
	Compute float64 `json:"compute_s"`
	Time    float64 `json:"time"`
}

// add adds the record of an epoch to the means. The first epoch fills caches, so it is left
// out once there are others; but not if batches are prepared ahead, since it then has work
// for later epochs.
func (a *Totals) add(r *runs.Epoch, ahead bool) {
	if r.Epoch == 2 && a.Epochs == 1 && !ahead {
		*a = Totals{}
	}
	n := float64(a.Epochs)
	mean := func(to *float64, v float64) { *to = (*to*n + v) / (n + 1) }
	mean(&a.Read, float64(r.Read))
	mean(&a.Hit, r.Hit)
	mean(&a.Sample, r.Sample)
	mean(&a.Gather, r.Gather)
	mean(&a.Compute, r.Compute)
	mean(&a.Time, r.Time)
	a.Epochs++
}

// Compare returns the line that compares the plan with what epochs cost.
func (a *Totals) Compare(f *plan.Forecast) string {
	return fmt.Sprintf("plan/actual per epoch: read %s/%s, hit %.1f%%/%.1f%%, sample %.1fs/%.1fs, "+
		"gather %.1fs/%.1fs, compute %.1fs/%.1fs, time %.1fs/%.1fs", mem.FormatSize(f.Read),
		mem.FormatSize(int64(a.Read)), 100*f.Hit, 100*a.Hit, f.Sample, a.Sample, f.Gather,
		a.Gather, f.Compute, a.Compute, f.Time, a.Time)
}
