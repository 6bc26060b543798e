package kv

import "time"

// RunMeta describes one training run.
type RunMeta struct {
	Name    string
	Created time.Time
	Updated time.Time
	Status  string // running, done, interrupted, failed
	Model   string
	Epochs  int
	Best    float64 // the best validation metric
	Test    float64
	Metric  string
	// Validated and Tested say that Best and Test were measured. Runs that older versions wrote
	// have neither, and 0 for a metric that was not measured.
	Validated bool `json:",omitempty"`
	Tested    bool `json:",omitempty"`
	// Snapshot is the snapshot of the store that the run is of, and keeps.
	Snapshot uint64 `json:",omitempty"`
}

// BestScore returns the best validation metric, or nil if none was measured.
func (r *RunMeta) BestScore() *float64 {
	if r.Validated || r.Best != 0 {
		return &r.Best
	}
	return nil
}

// TestScore returns the metric of the test, or nil if none was measured.
func (r *RunMeta) TestScore() *float64 {
	if r.Tested || r.Test != 0 {
		return &r.Test
	}
	return nil
}
