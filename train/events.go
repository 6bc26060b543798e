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

// Config is the settings of a training.
type Config = setting.Node

// Begun describes a run of nodes that begins or goes on.
type Begun struct {
	Plan   *plan.Plan
	Config Config
	// Train is how many nodes are trained on, and Unused what the store has that the model does not
	// read.
	Train  uint64
	Unused []string
}

// Result is the end of a run.
type Result struct {
	Run       string   `json:"run"`
	Metric    string   `json:"metric"`
	Test      *float64 `json:"test"` // nil if the store has no test split
	Best      float64  `json:"best_val"`
	BestEpoch int      `json:"best_epoch"`
	Epochs    int      `json:"epochs"`
	// Planned and Actual are what an epoch was to cost and what the epochs of this process did:
	// nil if there was no plan, or no epoch.
	Planned *plan.Forecast `json:"planned,omitempty"`
	Actual  *Totals        `json:"actual,omitempty"`
	Stopped bool           `json:"stopped"` // before the last epoch, for lack of improvement
	// Extends says whether more epochs may follow: see setting.Node.Extends.
	Extends bool `json:"-"`
	// OneSided says that almost all test nodes are taken for one class; "" if not.
	OneSided string `json:"one_sided,omitempty"`
	// Steep tells of an epoch at the beginning whose loss is far over that of guessing, and what to
	// do; "" if there is none.
	Steep string `json:"steep,omitempty"`
}

// String is the last line on standard output.
func (r *Result) String() string {
	test := "-"
	if r.Test != nil {
		test = runs.Figure(*r.Test, 4)
	}
	return fmt.Sprintf("test %s (epoch %d, best val %s)", test, r.BestEpoch,
		runs.Figure(r.Best, 4))
}

// epochSums are counted over the steps of an epoch; a checkpoint keeps them.
type epochSums struct {
	loader.Sums
	Loss float64 `json:"loss"` // summed over Rows less Unknown
	Rows uint64  `json:"rows"`
	// Unknown is how many of Rows the unknown labels would fill.
	Unknown float64 `json:"unknown,omitempty"`
	Hit     uint64  `json:"hit"` // for the metric: micro-averaged counts
	Wrong   uint64  `json:"wrong"`
	Missed  uint64  `json:"missed"`
	// Of numbers: sums over the errors, of standardized labels.
	Squared  float64 `json:"squared,omitempty"`
	Absolute float64 `json:"absolute,omitempty"`
	Batches  int     `json:"batches"`
	Edges    uint64  `json:"edges"`
	Nodes    uint64  `json:"nodes"`
	// Launches is what the device was given in steps.
	Launches backend.Launches `json:"launches,omitzero"`
	// DeviceHits are the rows that a device had, and Sent the bytes that it was sent.
	DeviceHits uint64 `json:"device_hits,omitempty"`
	Sent       uint64 `json:"sent,omitempty"`
}

// addBatch takes in what a batch is.
func (s *epochSums) addBatch(b *sample.Batch) {
	s.Batches++
	s.Edges += uint64(len(b.Dense.Nbrs))
	s.Nodes += uint64(len(b.Dense.NodeIDs))
}

// addLoss takes in what a step gave.
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

// score is what predictions in training are scored by.
func (s *epochSums) score() *backend.Loss {
	return &backend.Loss{Rows: int(s.Rows), Hit: s.Hit, Wrong: s.Wrong, Missed: s.Missed,
		Squared: s.Squared, Absolute: s.Absolute}
}
