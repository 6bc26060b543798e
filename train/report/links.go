package report

import (
	"encoding/json"
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/train/link/rank"
	"gdb/train/runs"
	"gdb/train/setting"
)

// linkData reads what a run that predicts links recorded.
func linkData(dir runs.Dir) (*Data, error) {
	f, err := dir.ReadLink()
	if err != nil {
		return nil, err
	}
	d := &Data{Run: dir.Name(), Made: f.GDB, Settings: setting.SetTexts(f.Link)}
	if len(f.Test) > 0 {
		var r rank.Result
		if err := json.Unmarshal(f.Test, &r); err != nil {
			return nil, fmt.Errorf("report: run %s: %w", dir.Name(),
				dir.Corrupt(runs.FileName, err.Error()))
		}
		d.Ranks = rankRows(&r)
	}
	var last runs.LinkEpoch
	var scores, edges uint64
	var seconds, eval, wait float64
	var read, written int64
	err = dir.LinkEpochs(func(e *runs.LinkEpoch) error {
		d.Epochs = append(d.Epochs, runs.Epoch{Epoch: e.Epoch, Loss: e.Loss, Train: math.NaN(),
			Val: e.Val, Best: e.Best, Time: e.Time, Eval: e.Eval, Read: uint64(e.Read)})
		if e.Best {
			d.Best, d.Val = e.Epoch, e.Val
		}
		scores, edges = scores+e.Scores, edges+e.Edges
		seconds, eval, wait = seconds+e.Time, eval+e.Eval, wait+e.Wait
		read, written, last = read+e.Read, written+e.Written, *e
		return nil
	})
	d.Cost = [][2]string{{"epochs", fmt.Sprint(len(d.Epochs))},
		{"time of training", fmt.Sprintf("%.1f s", seconds)},
		{"time of evaluation", fmt.Sprintf("%.1f s", eval)},
		{"edges trained on", count(edges)}, {"edges and negatives scored", count(scores)}}
	if read+written > 0 {
		d.Cost = append(d.Cost, [][2]string{{"vectors read", mem.FormatSize(read)},
			{"vectors written", mem.FormatSize(written)},
			{"waiting for them", fmt.Sprintf("%.1f s", wait)}}...)
	}
	if last.RSSPeak > 0 {
		d.Cost = append(d.Cost, [2]string{"peak of resident memory", mem.FormatSize(last.RSSPeak)})
	}
	return d, err
}

// rankRows returns the figures of the test edges.
func rankRows(r *rank.Result) [][2]string {
	rows := [][2]string{{"test mrr", runs.Figure(r.MRR, 4)}, {"hits@1", runs.Figure(r.Hits1, 4)},
		{"hits@3", runs.Figure(r.Hits3, 4)}, {"hits@10", runs.Figure(r.Hits10, 4)},
		{"mean rank", runs.Figure(r.MeanRank, 1)}, {"ranks", count(uint64(r.Ranks))}}
	if r.Lists.Lists == 0 { // the run was tested before there were lists
		return rows
	}
	return append(rows, [][2]string{{"recall@10", runs.Figure(r.Recall10, 4)},
		{"recall@20", runs.Figure(r.Recall20, 4)},
		{"ndcg@10", runs.Figure(r.NDCG10, 4)}, {"ndcg@20", runs.Figure(r.NDCG20, 4)},
		{"map", runs.Figure(r.MAP, 4)}, {"lists of tails", count(uint64(r.Lists.Lists))}}...)
}
