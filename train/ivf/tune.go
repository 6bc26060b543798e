package ivf

import (
	"context"
	"errors"
	"math"

	"gdb/compute/kernel/pq"
	"gdb/internal/files"
)

const (
	// rerankMost is how many candidates are compared exactly, at most, for ten answers.
	rerankMost = 1024
	// codeCost and rowCost are about what a look-up of a code's part, and a candidate's row, take,
	// in nanoseconds: they weigh lists against candidates. An index must not depend on what was
	// measured where it was made.
	codeCost, rowCost = 0.05, 4000
	// spareRecall is by how much the measured recall must be above what is asked for, as a share of
	// what is missing from 1: it was measured on few queries.
	spareRecall = 0.1
)

// tune measures what searches find, and chooses the cheapest that find enough.
func (b *builder) tune(ctx context.Context) (best Tuning, err error) {
	at := b.Place
	at.Path = files.PartPath(b.Path)
	cache := b.shape.blocks() * blockBytes
	if limit := b.Budget.Limit(); limit > 0 {
		cache = min(cache, (limit-b.Budget.Used())/2)
	}
	x, err := Open(ctx, at, b.Budget, cache)
	if err != nil {
		return best, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	want := b.Recall + (1-b.Recall)*spareRecall
	least := math.Inf(1)
	perList := codeCost * float64(x.Parts) * pq.Group * float64(x.CodeGroups) / float64(x.Lists)
	for step, last := 0, 0; ; step++ {
		probes := min(int(math.Ceil(math.Pow(2, float64(step)/2))), x.Lists)
		if best.Recall >= want && (best.Probes < last || float64(probes)*perList >= least) {
			return best, nil // more lists cost more, and spare no candidates
		}
		b.step("measuring", step, 2*int(math.Log2(float64(x.Lists)))+1)
		ranks, asked, err := b.ranks(ctx, x, probes)
		if err != nil {
			return best, err
		}
		for rerank, found := Answers, 0; rerank <= rerankMost; rerank += max(1, rerank/8) {
			found = 0
			for _, r := range ranks {
				if r < rerank {
					found++
				}
			}
			t := Tuning{probes, rerank, float64(found) / float64(max(1, asked))}
			cost := float64(probes)*perList + float64(rerank)*rowCost
			switch {
			case t.Recall >= want && cost < least:
				best, least = t, cost
			case math.IsInf(least, 1) && t.Recall > best.Recall || best.Rerank == 0:
				best = t
			}
		}
		if last = probes; probes == x.Lists {
			return best, nil
		}
	}
}

// ranks returns at which place among the candidates each of the true answers of all queries is, as
// far as it is one, and the number of true answers.
func (b *builder) ranks(ctx context.Context, x *Index, probes int) (ranks []int, asked int,
	err error) {
	t := b.truth
	found, errs := make([][]Candidate, len(t.nodes)), make([]error, len(t.nodes))
	b.pool.Run(len(t.nodes), func(q int) {
		found[q], errs[q] = x.Candidates(ctx, Query{Row: t.rows[q*t.dim:][:t.dim],
			Probes: probes, Most: min(rerankMost, int(x.Vectors)),
			Allow: func(node uint32) bool { return node != t.nodes[q] }})
	})
	if err := errors.Join(errs...); err != nil {
		return nil, 0, err
	}
	for q, candidates := range found {
		places := make(map[uint32]int, len(candidates))
		for i, c := range candidates {
			places[c.Node] = i
		}
		for _, s := range t.of(q) {
			asked++
			if at, is := places[s.id]; is {
				ranks = append(ranks, at)
			}
		}
	}
	return ranks, asked, nil
}
