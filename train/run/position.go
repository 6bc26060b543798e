package run

import "gdb/train/runs"

// Position says how far a run has come, whatever it learns. A checkpoint holds it, together with
// what the job adds. Epochs and batches are counted from 0; Batch is the next one of Epoch, and may
// be one past the last.
type Position struct {
	Seed  uint64 `json:"seed"`
	Epoch uint64 `json:"epoch"`
	Batch uint64 `json:"batch"`
	Steps int    `json:"steps"` // that the optimizer took

	HasBest   bool    `json:"has_best"`
	Best      float64 `json:"best"`
	BestEpoch int     `json:"best_epoch"` // counted from 1
	SinceBest int     `json:"since_best"` // evaluations since the best one
	// Plateau counts the evaluations since the best one or since the rate was last halved, and
	// Halvings how often it was halved.
	Plateau  int `json:"plateau,omitempty"`
	Halvings int `json:"halvings,omitempty"`

	// Sets says with which splits the run began; nil if the checkpoint is older than that record.
	Sets runs.Sets `json:"sets,omitempty"`

	Done bool `json:"done"`
}
