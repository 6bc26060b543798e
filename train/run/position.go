package run

import "gdb/train/runs"

// Position is where a run stands, whatever it learns: a checkpoint holds it, beside what its job
// adds. Epochs and batches are counted from 0; Batch is the next one of Epoch, and may be one past
// the last.
type Position struct {
	Seed  uint64 `json:"seed"`
	Epoch uint64 `json:"epoch"`
	Batch uint64 `json:"batch"`
	Steps int    `json:"steps"` // of the optimizer

	HasBest   bool    `json:"has_best"`
	Best      float64 `json:"best"`
	BestEpoch int     `json:"best_epoch"` // counted from 1
	SinceBest int     `json:"since_best"` // evaluations since
	// Plateau is evaluations since the best one or the last halving of the rate, and Halvings the
	// number of these.
	Plateau  int `json:"plateau,omitempty"`
	Halvings int `json:"halvings,omitempty"`

	// Sets are the splits that the run began with; nil if it was made before they were kept.
	Sets runs.Sets `json:"sets,omitempty"`

	Done bool `json:"done"`
}
