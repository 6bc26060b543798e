package train

import (
	"encoding/json"
	"fmt"

	"gdb/train/runs"
	"gdb/train/setting"
	"gdb/train/task"
)

// EvalResult is an evaluation, with all metrics of classes, or of numbers, that cost nothing extra.
type EvalResult struct {
	Run    string  `json:"run"`
	Split  string  `json:"split"`
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
	Nodes  uint64  `json:"nodes"` // labeled nodes of the split
	Epoch  int     `json:"epoch"` // of the weights

	// One of these is nil.
	*task.ClassMetrics
	*task.NumberMetrics
}

// Names returns the names of the classes; nil if the labels are numbers.
func (r *EvalResult) Names() (names []string) {
	if r.ClassMetrics == nil {
		return nil
	}
	for _, c := range r.Classes {
		names = append(names, c.Class)
	}
	return names
}

// Tested returns the evaluation on the test split that a finished run keeps; nil if it has none.
func Tested(f *runs.File) (*EvalResult, error) {
	if len(f.Test) == 0 {
		return nil, nil
	}
	r := &EvalResult{}
	if err := json.Unmarshal(f.Test, r); err != nil {
		return nil, fmt.Errorf("train: the test in %s: %w", runs.FileName, err)
	}
	return r, nil
}

// Kept returns the evaluation that a run keeps, if it is what Evaluate would return for the split:
// of the test split, exact and complete. Otherwise it returns nil.
func Kept(f *runs.File, split string) (*EvalResult, error) {
	if split != "test" || f.Config.EvalMode == setting.EvalSampled {
		return nil, nil
	}
	r, err := Tested(f)
	if r == nil || r.ClassMetrics != nil && len(r.Classes) == 0 {
		return nil, err
	}
	return r, nil
}

// newEvalResult returns the metrics of predictions.
func newEvalResult(t task.Tally, metric string) (*EvalResult, error) {
	r := &EvalResult{Metric: metric, Nodes: t.Labeled()}
	var err error
	switch t := t.(type) {
	case *task.ClassTally:
		r.ClassMetrics, err = t.Metrics()
	case *task.NumberTally:
		r.NumberMetrics, err = t.Metrics()
	}
	if err == nil {
		r.Value, err = t.Metric(metric)
	}
	return r, err
}
