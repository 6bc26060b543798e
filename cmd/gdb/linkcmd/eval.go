package linkcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/kv"
	"gdb/layout"
	"gdb/train/link"
	"gdb/train/link/rank"
	"gdb/train/runs"
	"gdb/train/setting"
)

// EvalOptions are the flags of gdb eval.
type EvalOptions struct {
	Run, Split string
	Candidates int
	JSON       bool
	Where      setting.Where
}

// Eval is gdb eval of a run that predicts links.
func Eval(ctx context.Context, e *cli.App, st *layout.Store, dev blockdev.Device,
	o EvalOptions) (err error) {
	if o.Candidates < 0 {
		return cli.Usage(fmt.Errorf("eval: candidates %d: give at least 0", o.Candidates))
	}
	t, err := link.Open(ctx, st, dev, o.Run, link.Limits{Memory: e.Memory, Threads: e.Threads,
		Where: &o.Where})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	res, err := t.Evaluate(ctx, o.Split, o.Candidates)
	if err != nil {
		return err
	}
	if o.JSON {
		return evalJSON(e, t, res, o)
	}
	return evalText(e, t, res, o, among(st.Meta(), o.Candidates))
}

// evalJSON prints one object: the fields of the last line of training, and what else there is.
func evalJSON(e *cli.App, t *link.Trained, r *link.Evaluation, o EvalOptions) error {
	all := map[string]any{"run": o.Run, "split": o.Split, "epoch": t.Epoch,
		"metric": runs.LinkMetric, o.Split: r.MRR, "candidates": o.Candidates, "hits@1": r.Hits1,
		"hits@3": r.Hits3, "hits@10": r.Hits10, "mean_rank": r.MeanRank, "ranks": r.Ranks,
		"mrr": r.MRR, "raw": r.Raw, "heads": r.Heads, "tails": r.Tails,
		"recall@10": r.Recall10, "recall@20": r.Recall20, "ndcg@10": r.NDCG10,
		"ndcg@20": r.NDCG20, "map": r.MAP, "lists": r.Lists.Lists, "head_lists": r.HeadLists}
	if len(r.Relations) > 0 {
		all["relations"] = r.Relations
	}
	if r.AUC != nil {
		all["auc"] = *r.AUC
		for k, v := range r.HitsAt {
			all[fmt.Sprintf("ogb_hits@%d", k)] = v
		}
	}
	return e.PrintJSON(all)
}

// relationsShown is how many relations the text has, those with the most edges first.
const relationsShown = 20

// among says what ends are ranked among.
func among(m *kv.Meta, candidates int) string {
	text := "all entities"
	if candidates > 0 {
		text = fmt.Sprintf("%d entities", candidates)
	}
	if m.Typed() {
		text += " of the type"
	}
	return text
}

func evalText(e *cli.App, t *link.Trained, r *link.Evaluation, o EvalOptions,
	among string) error {
	w := &cli.Lines{W: e.Out}
	w.Printf("run %s, epoch %d, %s: ranks among %s, both ends, %d ranks\n", o.Run, t.Epoch, o.Split,
		among, r.Ranks)
	w.Printf("%-10s %8s %8s %8s %8s %10s\n", "", "mrr", "hits@1", "hits@3", "hits@10", "mean rank")
	for _, row := range []struct {
		name string
		m    *rank.Metrics
	}{{"filtered", &r.Metrics}, {"  heads", &r.Heads}, {"  tails", &r.Tails}, {"raw", &r.Raw}} {
		w.Printf("%-10s %s\n", row.name, figures(row.m))
	}
	w.Printf("%-10s %9s %9s %8s %8s %8s\n", "lists", "recall@10", "recall@20", "ndcg@10", "ndcg@20",
		"map")
	w.Printf("%-10s %s of %d heads\n", "  tails", listFigures(&r.Lists), r.Lists.Lists)
	w.Printf("%-10s %s of %d tails\n", "  heads", listFigures(&r.HeadLists), r.HeadLists.Lists)
	if r.AUC != nil {
		w.Printf("edges beside as many random pairs: auc %s", runs.Figure(*r.AUC, 4))
		for _, k := range []int{20, 50, 100} {
			w.Printf(", above all but %d %s", k-1, runs.Figure(r.HitsAt[k], 4))
		}
		w.Printf("\n")
	}
	relations := slices.Clone(r.Relations)
	slices.SortStableFunc(relations, func(a, b rank.RelationMetrics) int {
		return b.Ranks - a.Ranks
	})
	if len(relations) > 0 {
		w.Printf("\n%8s %8s %8s %8s %8s %9s %8s %8s  %s\n", "edges", "mrr", "hits@1", "hits@3",
			"hits@10", "recall@10", "ndcg@10", "map", "relation")
	}
	for i, m := range relations {
		if i == relationsShown {
			w.Printf("and %d relations more, all of them with --json\n", len(relations)-i)
			break
		}
		w.Printf("%8d %8s %8s %8s %8s %9s %8s %8s  %s\n", m.Ranks/2, runs.Figure(m.MRR, 4),
			runs.Figure(m.Hits1, 4), runs.Figure(m.Hits3, 4), runs.Figure(m.Hits10, 4),
			runs.Figure(m.Recall10, 4), runs.Figure(m.NDCG10, 4), runs.Figure(m.MAP, 4), m.Name)
	}
	return w.Err
}

// listFigures returns the columns of some lists.
func listFigures(l *rank.Lists) string {
	return fmt.Sprintf("%9s %9s %8s %8s %8s", runs.Figure(l.Recall10, 4),
		runs.Figure(l.Recall20, 4), runs.Figure(l.NDCG10, 4), runs.Figure(l.NDCG20, 4),
		runs.Figure(l.MAP, 4))
}

// figures returns the columns of some ranks.
func figures(m *rank.Metrics) string {
	return fmt.Sprintf("%8s %8s %8s %8s %10s", runs.Figure(m.MRR, 4), runs.Figure(m.Hits1, 4),
		runs.Figure(m.Hits3, 4), runs.Figure(m.Hits10, 4), runs.Figure(m.MeanRank, 1))
}
