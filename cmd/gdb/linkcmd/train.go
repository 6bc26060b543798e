// Package linkcmd is what the commands of gdb print of link prediction: training, evaluation and
// predictions of runs of --task link.
package linkcmd

import (
	"fmt"

	"gdb/cmd/gdb/cli"
	"gdb/train/link"
	"gdb/train/link/rank"
	"gdb/train/runs"
)

// FinishedOf returns the end of a run of links.
func FinishedOf(dir string, r *link.Result) *cli.Finished {
	return &cli.Finished{Line: lastLine(r), Done: doneOf(r), Next: Next(dir, r.Run)}
}

// done is the last line of --json.
type done struct {
	Event  string `json:"event"`
	Metric string `json:"metric"`
	// Test is null if there is no test split.
	Test      *float64 `json:"test"`
	Hits1     *float64 `json:"hits@1,omitempty"`
	Hits3     *float64 `json:"hits@3,omitempty"`
	Hits10    *float64 `json:"hits@10,omitempty"`
	MeanRank  *float64 `json:"mean_rank,omitempty"`
	Best      float64  `json:"best_val"`
	BestEpoch int      `json:"best_epoch"`
	Epochs    int      `json:"epochs"`
	Run       string   `json:"run"`
}

func doneOf(r *link.Result) *done {
	d := &done{Event: "done", Metric: runs.LinkMetric, Best: r.Best, BestEpoch: r.BestEpoch,
		Epochs: r.Epochs, Run: r.Run}
	if m := r.Test; m != nil {
		d.Test, d.Hits1, d.Hits3 = &m.MRR, &m.Hits1, &m.Hits3
		d.Hits10, d.MeanRank = &m.Hits10, &m.MeanRank
	}
	return d
}

// lastLine returns the last line on standard output.
func lastLine(r *link.Result) string {
	test := "-"
	if r.Test != nil {
		test = runs.Figure(r.Test.MRR, 4) + " " + hits(&r.Test.Metrics)
	}
	return fmt.Sprintf("test mrr %s (epoch %d, best val %s)", test, r.BestEpoch,
		runs.Figure(r.Best, 4))
}

// hits returns the shares of hits of some ranks.
func hits(m *rank.Metrics) string {
	return fmt.Sprintf("hits@1 %s @3 %s @10 %s", runs.Figure(m.Hits1, 3), runs.Figure(m.Hits3, 3),
		runs.Figure(m.Hits10, 3))
}

// Next returns commands that use a run of links.
func Next(dir, run string) [][]string {
	return [][]string{{"eval", dir, "--run", run},
		{"predict", dir, "--run", run, "--pairs", "pairs.csv", "--out", "scores.csv"}}
}
