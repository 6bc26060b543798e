package train

import (
	"fmt"

	"gdb/compute/backend"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/plan"
	"gdb/train/runs"
	"gdb/train/setting"
)

// Config holds the settings of a training.
type Config = setting.Node

// Begun describes a run of nodes that begins or goes on.
type Begun struct {
	Plan   *plan.Plan
	Config Config
	// Train is how many nodes are trained on. Unused names what the store has that the model
	// does not read.
	Train  uint64
	Unused []string
}

// Result describes the end of a run.
type Result struct {
	Run       string   `json:"run"`
	Metric    string   `json:"metric"`
	Test      *float64 `json:"test"` // nil if the store has no test split
	Best      float64  `json:"best_val"`
	BestEpoch int      `json:"best_epoch"`
	Epochs    int      `json:"epochs"`
	// Planned is what an epoch was forecast to cost, and Actual what the epochs of this process
	// cost. Both are nil if there was no forecast, or no epoch.
	Planned *plan.Forecast `json:"planned,omitempty"`
	Actual  *Totals        `json:"actual,omitempty"`
	Stopped bool           `json:"stopped"` // before the last epoch, for lack of improvement
	// Extends says whether more epochs may follow: see setting.Node.Extends.
	Extends bool `json:"-"`
	// OneSided says that almost all test nodes are predicted to be of one class; "" if not.
	OneSided string `json:"one_sided,omitempty"`
	// Steep tells of an early epoch whose loss is far above that of guessing, and what to do; "" if
	// there is none.
	Steep string `json:"steep,omitempty"`
}

// String returns the last line on standard output.
func (r *Result) String() string {
	test := "-"
	if r.Test != nil {
		test = runs.Figure(*r.Test, 4)
	}
	return fmt.Sprintf("test %s (epoch %d, best val %s)", test, r.BestEpoch,
		runs.Figure(r.Best, 4))
}

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
}

// addBatch adds the size of a batch.
func (s *epochSums) addBatch(b *sample.Batch) {
	s.Batches++
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
