package partitioner

import (
	"context"
	"errors"
	"slices"
	"time"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/listfile"
)

// Quality says how good partitions are.
type Quality struct {
	// Cut is the share of the entries of lists whose neighbor is in another partition. Loops are
	// not counted.
	Cut float64 `json:"edge_cut"`
	// Nodes, Edges and Labels are the largest partition over the mean: by nodes, by entries of the
	// lists of its nodes, and by the nodes of the label for which it is most.
	Nodes  float64 `json:"node_balance"`
	Edges  float64 `json:"edge_balance"`
	Labels float64 `json:"label_balance"` // 0 where no node has a label
}

// Report says how nodes were dealt, how good the partitions are, and what that took.
type Report struct {
	Method Method `json:"method"`
	Parts  int    `json:"parts"`
	Passes int    `json:"passes"`
	Quality
	Seconds  float64 `json:"seconds"`
	Rate     float64 `json:"edges_per_s"` // entries of lists that were read; 0 of none
	PeakRSS  int64   `json:"peak_rss_bytes"`
	HasLabel bool    `json:"labeled"` // whether some nodes have labels that are balanced
}

// Measure deals the nodes of a graph as Deal does, and judges the partitions.
func Measure(ctx context.Context, g *Graph, opt Options) (*Parts, *Report, error) {
	begun := time.Now()
	p, err := Deal(ctx, g, opt)
	if err != nil {
		return nil, nil, err
	}
	r := &Report{Method: opt.Method, Parts: opt.Parts, Passes: opt.Passes,
		HasLabel: g.Labels != nil, Seconds: time.Since(begun).Seconds()}
	if opt.reads() {
		r.Rate = float64(opt.Passes) * float64(g.Entries) / r.Seconds
	}
	q, err := Judge(ctx, g, p.Of, opt.Parts)
	if err != nil {
		return nil, nil, errors.Join(err, p.Close())
	}
	r.Quality = *q
	_, r.PeakRSS = mem.RSS()
	return p, r, nil
}

// Judge reads the lists once more, and says how good partitions of a number of parts are. It takes
// the memory of sizes: see the package.
func Judge(ctx context.Context, g *Graph, of []uint16, parts int) (*Quality, error) {
	edges, cut, all := make([]uint64, parts), uint64(0), uint64(0)
	err := g.Scan(ctx, func(first kv.NodeID, _ bool, l *listfile.Lists) error {
		for i := range len(l.Off) - 1 {
			v := first + kv.NodeID(i)
			for _, u := range l.Nbrs[l.Off[i]:l.Off[i+1]] {
				if u == v {
					continue
				}
				if all++; of[u] != of[v] {
					cut++
				}
			}
			edges[of[v]] += uint64(l.Off[i+1] - l.Off[i])
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	nodes := make([]uint64, parts)
	for _, p := range of {
		nodes[p]++
	}
	q := &Quality{Cut: float64(cut) / float64(max(1, all)), Nodes: balance(nodes),
		Edges: balance(edges)}
	q.Labels, err = judgeLabels(ctx, g, of, parts)
	return q, err
}

// judgeLabels returns the worst balance of a label, without the nodes that have none, of labels
// that every partition can have ten nodes of; 1 if there is none.
func judgeLabels(ctx context.Context, g *Graph, of []uint16, parts int) (float64, error) {
	const enough = 10
	if g.Labels == nil {
		return 0, nil
	}
	worst := 1.0
	counts := make([][]uint64, g.Classes)
	for c := range counts {
		counts[c] = make([]uint64, parts)
	}
	if err := g.eachLabel(ctx, func(v uint64, c uint32) {
		if int(c) < g.Classes {
			counts[c][of[v]]++
		}
	}); err != nil {
		return 0, err
	}
	for c := range counts {
		if g.Count[c] >= enough*uint64(parts) {
			worst = max(worst, balance(counts[c]))
		}
	}
	return worst, nil
}

// balance returns the largest of some counts over their mean.
func balance(counts []uint64) float64 {
	sum := uint64(0)
	for _, n := range counts {
		sum += n
	}
	return float64(slices.Max(counts)) * float64(len(counts)) / float64(max(1, sum))
}
