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
	Test     *float64 `json:"test"`
	Hits1    *float64 `json:"hits@1,omitempty"`
	Hits3    *float64 `json:"hits@3,omitempty"`
	Hits10   *float64 `json:"hits@10,omitempty"`
	MeanRank *float64 `json:"mean_rank,omitempty"`
	// Recall10 and those after it are of the lists of tails.
	Recall10  *float64 `json:"recall@10,omitempty"`
	Recall20  *float64 `json:"recall@20,omitempty"`
	NDCG10    *float64 `json:"ndcg@10,omitempty"`
	NDCG20    *float64 `json:"ndcg@20,omitempty"`
	MAP       *float64 `json:"map,omitempty"`
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
		if l := &m.Lists; l.Lists > 0 {
			d.Recall10, d.Recall20, d.MAP = &l.Recall10, &l.Recall20, &l.MAP
			d.NDCG10, d.NDCG20 = &l.NDCG10, &l.NDCG20
		}
	}
	return d
}

// lastLine returns the last lines on standard output: of lists, and of ranks.
func lastLine(r *link.Result) string {
	lists, test := "", "-"
	if r.Test != nil {
		test = runs.Figure(r.Test.MRR, 4) + " " + hits(&r.Test.Metrics)
	}
	if r.Test != nil && r.Test.Lists.Lists > 0 {
		l := &r.Test.Lists
		lists = fmt.Sprintf("test recall@10 %s @20 %s ndcg@10 %s @20 %s map %s "+
			"(tails of %d heads)\n",
			runs.Figure(l.Recall10, 3), runs.Figure(l.Recall20, 3), runs.Figure(l.NDCG10, 3),
			runs.Figure(l.NDCG20, 3), runs.Figure(l.MAP, 3), l.Lists)
	}
	return fmt.Sprintf("%stest mrr %s (epoch %d, best val %s)", lists, test, r.BestEpoch,
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
